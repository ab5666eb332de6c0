// drama3-bench as a function, so that tests can run it inside their own process.
#pragma once

namespace drama3 {

// Speaks a corpus, measures and judges as the arguments say; returns the exit code.
int bench_main(int argc, char** argv);

}  // namespace drama3
