// A run of one process, in a build without MPI.
#include <cstdlib>

#include "apps/bench_ranks.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

class SingleRank final : public Ranks {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
};

}  // namespace

std::unique_ptr<Ranks> open_ranks() {
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size != nullptr && std::string(size) != "1") {
    fail("mpirun: expected a build with MPI for ", size, " processes, got one without; configure with ",
         "-DDRAMA3_MPI=ON");
  }
  return std::make_unique<SingleRank>();
}

}  // namespace drama3::bench
