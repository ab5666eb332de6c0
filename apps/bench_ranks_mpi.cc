// The processes of mpirun, in a build with MPI.
#define OMPI_SKIP_MPICXX 1  // the C interface alone
#include <mpi.h>

#include <cstdlib>

#include "apps/bench_ranks.h"
#include "lib/base/error.h"

namespace drama3::bench {
namespace {

// The largest record of one rank; an int counts what MPI sends.
constexpr size_t kLargestRecord = size_t{1} << 28;

class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    if (started_by_mpirun()) {
      MPI_Init(nullptr, nullptr);
      MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
      MPI_Comm_size(MPI_COMM_WORLD, &size_);
      MPI_Comm machine = MPI_COMM_NULL;
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine);
      MPI_Comm_rank(machine, &local_rank_);
      MPI_Comm_size(machine, &local_size_);
      MPI_Comm_free(&machine);
    }
  }
  ~MpiRanks() override {
    if (started_by_mpirun()) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  std::vector<std::string> gather(const std::string& text) override {
    if (size_ == 1) return {text};
    if (text.size() > kLargestRecord)
      fail("rank ", rank_, ": expected a record below 256 MiB, got ", text.size());
    const int bytes = static_cast<int>(text.size());
    if (rank_ != 0) {
      MPI_Send(text.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      return {};
    }
    std::vector<std::string> texts{text};
    for (int from = 1; from < size_; ++from) {
      MPI_Status status;
      int count = 0;
      MPI_Probe(from, 0, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &count);
      std::string& received = texts.emplace_back(static_cast<size_t>(count), '\0');
      MPI_Recv(received.data(), count, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return texts;
  }

 private:
  static bool started_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
};

}  // namespace

std::unique_ptr<Ranks> open_ranks() { return std::make_unique<MpiRanks>(); }

}  // namespace drama3::bench
