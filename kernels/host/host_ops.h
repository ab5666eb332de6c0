// What the two host backends share: memory, weight preparation and the ops that move rows or search a table.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "kernels/host/draw.h"
#include "lib/ops/ops.h"
#include "lib/tensor/stored_value.h"

namespace drama3 {

// Activations and codec rows are F32. Linear weights, tables and experts are used where they are stored (the
// mapped checkpoint); vectors are widened to F32 and convolutions packed [kernel, in, out], both owned here.
class HostOps : public Ops {
 public:
  DType activation_type() const override { return DType::kF32; }
  DType codec_type() const override { return DType::kF32; }

  Buffer allocate(DType type, const Shape& shape) override;
  void upload(const View& out, const View& host) override;
  void download(const View& host, const View& in) override;
  void send(int slot, const View& in) override;
  void receive(const View& host, int slot) override;
  void copy(const View& out, const View& in) override;
  void fill(const View& out, int byte) override;
  int64_t free_bytes() const override;  // what the system calls available memory
  bool weights_in_place() const override { return true; }

  View prepare_vector(const View& stored, float add) override;
  View prepare_table(const View& stored) override;
  Linear prepare_linear(const StoredMatrix& stored, const View& bias) override;
  Linear prepare_head(const View& stored, int64_t first, int64_t count, int64_t last) override;
  Experts prepare_experts(std::span<const Expert> experts) override;
  Conv prepare_conv(const HostConv& host, const Conv& sizes) override;
  ConvTranspose prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) override;

  void embed(const View& out, const RowSource& rows, const EmbedTables& tables) override;
  void embed_next(const View& out, const RowSource& next, const EmbedTables& tables,
                  int64_t codebook) override;
  void append_kv(const KvCache& cache, const View& key, const View& value, const View& position) override;
  void advance(const View& position, int64_t rows) override;
  void record_codes(const View& history, const View& codes, const View& frame) override;
  void lookup(const View& out, const View& codes, const View& table) override;
  void nearest(const View& codes, const View& in, const View& table) override;
  void pick(const View& code, const View& logits, const PickState& state, int64_t codebook) final;

 protected:
  // Fills the candidates, one per finite logit, with probabilities softmax((logit - top) / temperature) and
  // their indices; (l - top) / t, since l / t may overflow. The greatest logit is `top`.
  virtual void temper(std::span<Candidate> candidates, const float* logits, float top, float temperature) = 0;

  std::vector<Candidate> candidates_;  // of one draw; grows to the largest number of entries seen

 private:
  std::array<std::array<std::byte, kMailBytes>, kMailSlots> mail_{};
  std::list<Buffer> owned_;  // widened vectors, packed convolutions, gathered head rows
};

}  // namespace drama3
