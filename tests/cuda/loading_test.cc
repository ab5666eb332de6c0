// Weights on their way to the device: the same image however they are read, and errors that name the file.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <list>

#include "kernels/cuda/linear.cuh"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/moe.cuh"
#include "kernels/cuda/staging.h"
#include "lib/base/system_calls.h"
#include "tests/audio/scratch_folder.h"
#include "tests/cuda/rig.h"

using namespace drama3;
using namespace drama3::cuda_test;

namespace {

// Copies of all tensors in plain memory: nothing is read from a file while weights are staged.
class MemorySource final : public WeightSource {
 public:
  explicit MemorySource(WeightSource& files) : files_(files) {}
  View need(const TensorRequest& request) override { return copied(files_.need(request)); }
  std::optional<View> find(const TensorRequest& request) override {
    const auto view = files_.find(request);
    return view ? std::optional<View>(copied(*view)) : std::nullopt;
  }
  std::optional<Shape> shape_of(std::string_view name) const override { return files_.shape_of(name); }
  StoredMatrix need_matrix(const std::vector<std::string>& spellings, int64_t rows, int64_t cols) override {
    const StoredMatrix matrix = files_.need_matrix(spellings, rows, cols);
    return {.weight = copied(matrix.weight), .scale = matrix.scale.empty() ? View{} : copied(matrix.scale)};
  }

 private:
  View copied(View view) {
    const auto* from = static_cast<const std::byte*>(view.data);
    view.data = copies_.emplace_back(from, from + view.bytes()).data();
    return view;
  }
  WeightSource& files_;
  std::list<std::vector<std::byte>> copies_;
};

// The bytes on the device of all weights, one after the other.
class Image {
 public:
  explicit Image(Ops& ops) { ops.synchronize(); }
  void add(const void* device, size_t bytes) {
    const size_t begin = bytes_.size();
    bytes_.resize(begin + bytes);
    REQUIRE(cudaMemcpy(bytes_.data() + begin, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  }
  void add(const View& view) {
    if (!view.empty()) add(view.data, view.bytes());
  }
  // biases: 0 = one for each row; a transposed convolution has fewer, repeated.
  void add(const std::shared_ptr<const void>& packed, int64_t biases = 0) {
    const auto& matrix = *static_cast<const PackedMatrix*>(packed.get());
    add(matrix.data,
        static_cast<size_t>(matrix.tiles()) * kTile * static_cast<size_t>(matrix.steps) * kStepK * 2);
    const auto count = static_cast<size_t>(biases > 0 ? biases : matrix.n);
    if (matrix.bias != nullptr) add(matrix.bias, count * sizeof(float));
  }
  void add(const Experts& experts) {
    const auto& packed = *static_cast<const PackedExperts*>(experts.packed.get());
    const size_t matrix = static_cast<size_t>(packed.experts) * static_cast<size_t>(packed.hidden) *
                          static_cast<size_t>(packed.ffn);
    add(packed.gate_up, 2 * matrix);
    add(packed.down, matrix);
    for (const float* scale : {packed.gate_scale, packed.up_scale, packed.down_scale})
      add(scale, matrix / (kGroup * kGroup) * sizeof(float));
  }
  void add(const backbone::Weights& weights) {
    add(weights.embedding);
    add(weights.head.packed);
    for (const backbone::LayerWeights& layer : weights.layers) {
      add(layer.input_norm.weight);
      add(layer.delta.conv);
      for (const Linear* linear :
           {&layer.delta.qkv, &layer.delta.z, &layer.delta.out, &layer.attention.query_gate,
            &layer.attention.out, &layer.moe.router, &layer.moe.shared_down_proj}) {
        if (linear->packed != nullptr) add(linear->packed);
      }
      add(layer.moe.experts);
    }
  }
  void add(const tower::Weights& weights) {
    add(weights.code_embeddings);
    for (const auto* layers : {&weights.shared, &weights.residual}) {
      for (const tower::LayerWeights& layer : *layers) {
        for (const Linear* linear : {&layer.combine, &layer.out, &layer.gate, &layer.up, &layer.down})
          add(linear->packed);
        add(layer.out_norm.weight);
      }
    }
    for (const Linear& head : weights.heads) add(head.packed);
  }
  void add(const codec::Weights& weights) {
    for (const codec::Quantizer& quantizer : weights.quantizers) {
      add(quantizer.table);
      add(quantizer.out.packed);
    }
    for (const codec::Upsample& stage : weights.decoder.upsamples) {
      add(stage.up.packed, stage.up.out);
      add(stage.block.depthwise.weight);
      add(stage.block.down.packed);
    }
    for (const codec::DecoderBlock& block : weights.decoder.blocks) {
      add(block.up.packed, block.up.out);
      for (const auto& unit : block.units) add(unit.conv0.packed);
    }
    add(weights.decoder.post.layers.back().qkv.packed);
  }
  bool operator==(const Image& other) const { return bytes_ == other.bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

Image image_of(Ops& ops, const Model& model) {
  Image image(ops);
  image.add(model.backbone);
  image.add(model.tower);
  image.add(model.codec);
  return image;
}

// The golden checkpoint in a folder of its own.
class CopiedCheckpoint {
 public:
  CopiedCheckpoint() {
    for (const auto& entry : std::filesystem::directory_iterator(golden_path("tiny"))) {
      std::filesystem::copy_file(entry.path(), folder_ / entry.path().filename().string());
    }
  }
  std::string path() const { return folder_ / ""; }
  std::string shard() const { return folder_ / "model-00001-of-00002.safetensors"; }
  bool takes_direct_reads() const {
    const int fd = sys::open_direct(shard().c_str());
    if (fd >= 0) ::close(fd);
    return fd >= 0;
  }

 private:
  ScratchFolder folder_;
};

struct Loaded {
  explicit Loaded(const CopiedCheckpoint& checkpoint, const CudaOptions& options = {})
      : ops(make_cuda_ops(options)), model(*ops, checkpoint.path(), {}) {}
  std::unique_ptr<Ops> ops;
  Model model;
};

// The sentence of the Error that loading throws.
std::string refusal(Ops& ops, const CopiedCheckpoint& checkpoint) {
  try {
    const Model model(ops, checkpoint.path(), {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Any of the weight files: they are read side by side.
bool names_file_and_byte(const std::string& sentence, const CopiedCheckpoint& checkpoint) {
  return sentence.starts_with(checkpoint.path()) &&
         sentence.find(": cannot read at byte ") != std::string::npos;
}

// Part by part on one thread, from plain memory.
Image plain_image(const CopiedCheckpoint& checkpoint) {
  const std::unique_ptr<Ops> ops = make_cuda_ops({});
  Loaded sizes(checkpoint);  // for the config only
  Checkpoint files(checkpoint.path());
  CodecFile codec_file(files.codec_path());
  MemorySource source(files), codec_source(codec_file);
  const backbone::Weights backbone = backbone::load_weights(*ops, source, sizes.model.config.backbone);
  const tower::Weights tower = tower::load_weights(*ops, source, sizes.model.config.tower);
  const codec::Weights codec =
      codec::load_weights(*ops, codec_source, sizes.model.config.codec, codec::Parts::kDecoder);
  Image image(*ops);
  image.add(backbone);
  image.add(tower);
  image.add(codec);
  const ReadCounts read = cuda_counters(*ops).read;
  CHECK(read.copied > 0);
  CHECK(read.direct + read.cached == 0);
  return image;
}

}  // namespace

TEST_CASE("cuda: the staged image is that of a plain load, read directly, through the cache, or refused" *
          doctest::skip(no_device())) {
  const CopiedCheckpoint checkpoint;
  const Image plain = plain_image(checkpoint);
  REQUIRE(plain.size() > 10 << 20);

  Loaded direct(checkpoint, {.direct = DirectReads::kAlways});
  CHECK(image_of(*direct.ops, direct.model) == plain);
  const ReadCounts read = cuda_counters(*direct.ops).read;
  if (checkpoint.takes_direct_reads()) CHECK(read.direct > 10 << 20);

  Loaded cached(checkpoint, {.direct = DirectReads::kNever});
  CHECK(image_of(*cached.ops, cached.model) == plain);
  CHECK(cuda_counters(*cached.ops).read.direct == 0);
  CHECK(cuda_counters(*cached.ops).read.cached > 10 << 20);

  for (const SystemCall call : {SystemCall::kOpenDirect, SystemCall::kReadDirect}) {
    set_fault({.call = call, .nth = 1, .error_number = EINVAL, .from_there_on = true});
    Loaded refused(checkpoint, {.direct = DirectReads::kAlways});
    clear_faults();
    CHECK(image_of(*refused.ops, refused.model) == plain);
    CHECK(cuda_counters(*refused.ops).read.direct == 0);
    CHECK(cuda_counters(*refused.ops).read.cached > 10 << 20);
  }
}

TEST_CASE(
    "cuda: a file that cannot be read fails the load with its name and the byte, and the next one loads" *
    doctest::skip(no_device())) {
  const CopiedCheckpoint checkpoint;
  const std::unique_ptr<Ops> ops = make_cuda_ops({.direct = DirectReads::kAlways});
  if (checkpoint.takes_direct_reads()) {
    set_fault({.call = SystemCall::kReadDirect, .nth = 1, .error_number = EIO});
    const std::string sentence = refusal(*ops, checkpoint);
    clear_faults();
    CHECK_MESSAGE(names_file_and_byte(sentence, checkpoint), sentence);
  }
  set_fault({.call = SystemCall::kRead, .nth = UINT64_MAX});
  { const Model model(*ops, checkpoint.path(), {}); }
  const uint64_t reads = system_call_count(SystemCall::kRead);
  set_fault({.call = SystemCall::kOpenDirect, .nth = 1, .error_number = EINVAL, .from_there_on = true});
  set_fault({.call = SystemCall::kRead, .nth = reads, .error_number = EIO});
  const std::string sentence = refusal(*ops, checkpoint);
  clear_faults();
  CHECK_MESSAGE(names_file_and_byte(sentence, checkpoint), sentence);
  const Model model(*ops, checkpoint.path(), {});
  Loaded fresh(checkpoint);
  CHECK(image_of(*ops, model) == image_of(*fresh.ops, fresh.model));
}

TEST_CASE("cuda: a file that is cut while its weights stream is a short read, with its name" *
          doctest::skip(no_device())) {
  const CopiedCheckpoint checkpoint;
  const std::unique_ptr<Ops> ops = make_cuda_ops({});
  Checkpoint files(checkpoint.path());
  const View table = *files.find_any("model.embed_tokens.weight");
  const std::string shard = mapped_place(table.data, table.bytes())->file->path();
  std::filesystem::resize_file(shard, mapped_place(table.data, table.bytes())->offset + 5000);
  std::string sentence;
  try {
    ops->prepare_table(table);
    ops->synchronize();
  } catch (const Error& error) {
    sentence = error.what();
  }
  CHECK_MESSAGE(sentence.find(shard + ": short read: expected ") == 0, sentence);
  CHECK_MESSAGE(sentence.find("got 5000") != std::string::npos, sentence);
}

TEST_CASE("cuda: pieces of all sizes and places come out of the ring whole and in order" *
          doctest::skip(no_device())) {
  const CopiedCheckpoint checkpoint;
  const MappedFile file(checkpoint.shard());
  const std::vector<std::byte> memory(file.bytes().begin(), file.bytes().end());
  const auto total = static_cast<int64_t>(memory.size());
  for (const DirectReads direct : {DirectReads::kAlways, DirectReads::kUncached, DirectReads::kNever}) {
    StagingRing ring(nullptr, direct);
    std::vector<std::vector<std::byte>> got;
    std::vector<std::pair<int64_t, int64_t>> wanted;
    uint64_t state = 1;
    for (int i = 0; i < 300; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto bytes = std::min<int64_t>(total, int64_t{1} << (state >> 33) % 23) - (i % 3 == 0 ? 1 : 0);
      const int64_t begin = bytes == total ? 0 : static_cast<int64_t>(state >> 20) % (total - bytes);
      if (bytes == 0) continue;
      wanted.emplace_back(begin, bytes);
      const std::byte* from = (i % 5 == 0 ? memory.data() : file.bytes().data()) + begin;
      ring.pass(from, bytes, [&got, bytes = bytes](const void* at) {
        CHECK(reinterpret_cast<uintptr_t>(at) % 16 == 0);
        std::vector<std::byte>& copy = got.emplace_back(static_cast<size_t>(bytes));
        REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
        REQUIRE(cudaMemcpy(copy.data(), at, copy.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
      });
    }
    ring.finish();
    REQUIRE(got.size() == wanted.size());
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      wrong += std::memcmp(got[i].data(), memory.data() + wanted[i].first, got[i].size()) != 0;
    }
    CHECK(wrong == 0);
    CHECK(ring.counts().cached + ring.counts().direct + ring.counts().copied > 0);
  }
}

TEST_CASE("cuda: memory that the driver refuses leaves usage, peak and count as they were" *
          doctest::skip(no_device())) {
  const MemoryBudget& budget = MemoryBudget::process();
  const int64_t used = budget.used(), peak = budget.peak(), allocations = budget.allocations();
  std::string sentence;
  try {
    device_memory(int64_t{1} << 50, nullptr);
  } catch (const Error& error) {
    sentence = error.what();
  }
  CHECK_MESSAGE(sentence.find("device memory: expected 1125899906842624 bytes, got ") == 0, sentence);
  CHECK(budget.used() == used);
  CHECK(budget.peak() == peak);
  CHECK(budget.allocations() == allocations);
}
