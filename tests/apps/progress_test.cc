// The words of the progress bar, and messages that stay on one line.
#include "apps/progress.h"

#include <doctest/doctest.h>

#include "apps/messages.h"

namespace drama3 {

TEST_CASE("the bar shows audio seconds, real-time factor and time left") {
  CHECK(progress_text({.share = 0.5, .audio_seconds = 4, .elapsed_seconds = 2}) ==
        "[==========>         ] 4.0 s audio, RTF 0.50, 2 s left");
  CHECK(progress_text({}) == "[>                   ] 0.0 s audio");
  CHECK(progress_text({.share = 7, .audio_seconds = 1, .elapsed_seconds = 1}) ==
        "[====================] 1.0 s audio, RTF 1.00, 0 s left");
}

TEST_CASE("a message stays on one line") { CHECK(on_one_line("a\nb\tc\x7f") == "a\\x0ab\\x09c\\x7f"); }

}  // namespace drama3
