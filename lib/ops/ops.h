// The op vocabulary: every call that a model part makes, at the level of rows, and the interface backends
// implement.
//
// Argument order: out, in, weights, state, scalars. Calls enqueue and return; download() and synchronize()
// wait. Activations are of activation_type() in backbone and tower and of codec_type() in the codec; sums are
// F32 or wider. The order of every sum depends on shapes only, never on rows of the call, threads or
// instruction set, so a row's bits are the same alone and in any batch. Views are [rows, columns] unless said
// otherwise.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "lib/ops/dims.h"
#include "lib/ops/sampling.h"
#include "lib/ops/state.h"
#include "lib/ops/weights.h"
#include "lib/tensor/buffer.h"
#include "lib/tensor/weight_source.h"

namespace drama3 {

// One output of several projections of the same rows.
struct Projection {
  View out;  // [rows, weight->out]
  const Linear* weight = nullptr;
};

// The rows that enter the backbone: text tokens, or audio frames where the id is -1.
struct RowSource {
  View ids;    // [rows] I32
  View codes;  // [rows, codebooks] I32; read where the id is -1, each code clamped to its table
};

// The embedding tables of backbone and tower.
struct EmbedTables {
  View text;   // [vocabulary, hidden] stored type
  View codes;  // [codebooks * code_vocabulary, hidden] stored type
  int64_t code_vocabulary = 0;
  int64_t semantic_start = 0;  // text row of semantic code 0
  int64_t semantic_count = 0;  // semantic codes
};

// Inputs, weights and sizes of one gated delta mixer (Gated DeltaNet; backbone spec section 4, steps 2 to 7).
struct DeltaMix {
  View qkv;      // [rows, channels] raw projection
  View z;        // [rows, values]
  View b;        // [rows, value_heads]
  View a;        // [rows, value_heads]
  View conv;     // [conv_taps, channels] F32, oldest tap first
  View a_log;    // [value_heads] F32
  View dt_bias;  // [value_heads] F32
  Norm norm;     // [value_dim]
  DeltaDims dims;
};

// Inputs, weights and sizes of one attention mixer: optional head norms, RoPE, cache append, attention, and
// an optional sigmoid gate on the output.
struct AttentionMix {
  View query;  // [rows, ...] heads laid out by query_layout
  View key;    // [rows, kv_heads * head_dim]
  View value;  // [rows, kv_heads * head_dim]
  HeadLayout query_layout;
  Norm query_norm;  // [head_dim]; empty weight = no norm
  Norm key_norm;
  Rope rope;
  AttendDims dims;
  View gate;  // same row layout as query, heads laid out by gate_layout; empty = no gate
  HeadLayout gate_layout;
};

// Weights and sizes of one mixture-of-experts block.
struct MoeMix {
  Linear router;  // [experts, hidden]
  Experts experts;
  Linear shared_gate;  // [1, hidden]
  Linear shared_gate_proj, shared_up_proj, shared_down_proj;
  int64_t top_k = 0;
  bool renormalize = true;  // divide the top_k probabilities by their sum
};

// Switches of a replay: the oracle turns quantisation off or forces the reference's routing.
struct MoeReplay {
  bool quantize_activations = true;  // FP8 experts see their inputs rounded to FP8 per 1 x 128 group
  View forced_indices;               // [rows, top_k] I32, or empty; weights still come from the logits
};

// A residual unit of the codec: y = conv1(snake(conv7(snake(x)))); out = x + y.
struct ResidualUnit {
  Snake snake0;
  Conv conv0;  // kernel 7, dilated
  Snake snake1;
  Conv conv1;  // kernel 1
};

constexpr int kMailSlots = 2;
constexpr int64_t kMailBytes = 256;

class Ops {
 public:
  virtual ~Ops() = default;

  // ---- backend ----
  virtual std::string_view name() const = 0;        // "ref", "cpu", "cuda"
  virtual DType activation_type() const = 0;        // F32, or BF16
  virtual DType codec_type() const = 0;             // F32, or F16
  virtual int64_t max_rows() const { return 128; }  // rows of the largest backbone or tower call

  // ---- memory ----
  // Zero-filled memory of this backend.
  virtual Buffer allocate(DType type, const Shape& shape) = 0;
  // Same shape; converts between F32 on the host and the backend's F32, F16 or BF16.
  virtual void upload(const View& out, const View& host) = 0;
  virtual void download(const View& host, const View& in) = 0;  // waits for the work before it
  // A download in two halves, so that a device need not stand still between: send() enqueues the copy of a
  // dense view of at most kMailBytes to one of kMailSlots slots; receive() waits for that copy alone and
  // reads the slot, as the same type.
  virtual void send(int slot, const View& in) = 0;
  virtual void receive(const View& host, int slot) = 0;
  // Whether calls return before their work is done, so that it pays to enqueue a step before the results of
  // the one before are read.
  virtual bool runs_ahead() const { return false; }
  // A second queue of the same device, for work that may run beside this one's: it reads the weights that
  // this one prepared, and nothing orders the two but synchronize(), download() and receive(). This one
  // itself where there is only one. Lives as long as this one.
  virtual Ops& beside() { return *this; }
  virtual void copy(const View& out, const View& in) = 0;  // same shape and type, same place
  virtual void fill(const View& out, int byte) = 0;        // every byte of a dense view
  virtual void synchronize() {}
  // Bytes that could be allocated now, and whether weights are used where they are mapped instead of copied
  // there.
  virtual int64_t free_bytes() const = 0;
  virtual bool weights_in_place() const = 0;
  // Bytes of this backend's memory that weights pass through on their way, gone once they are prepared.
  virtual int64_t loading_bytes() const { return 0; }
  // Runs a step that makes the same calls each time; a device may record it at the first call and replay it.
  // `key` names the step within this Ops; views and scalars baked into it must not change between calls.
  virtual void run_step(int key, const std::function<void()>& step) {
    (void)key;
    step();
  }

  // ---- weights ----
  // Where weights_in_place() is false, any number of threads may prepare weights at once.
  // [n] of any stored float type, widened to F32, plus `add` (exact order: F32 sum).
  virtual View prepare_vector(const View& stored, float add = 0.0f) = 0;
  // [n, width] kept in its stored type.
  virtual View prepare_table(const View& stored) = 0;
  // `bias` may be empty.
  virtual Linear prepare_linear(const StoredMatrix& stored, const View& bias = {}) = 0;
  // Rows first..first+count of a stored matrix, followed by one more row (the head's candidates).
  virtual Linear prepare_head(const View& stored, int64_t first, int64_t count, int64_t last) = 0;
  virtual Experts prepare_experts(std::span<const Expert> experts) = 0;
  virtual Conv prepare_conv(const HostConv& host, const Conv& sizes) = 0;
  virtual ConvTranspose prepare_conv_transpose(const HostConv& host, const ConvTranspose& sizes) = 0;

  // ---- rows in ----
  // out [rows, hidden]: text row, or (text[semantic_start + c0] + codes[1 * code_vocabulary + c1]) / sqrt(2).
  virtual void embed(const View& out, const RowSource& rows, const EmbedTables& tables) = 0;
  // out [rows, hidden]: what follows each row, as the tower's layer for `codebook` sees it: the text row of
  // the id, or codes[codebook * code_vocabulary + c_codebook] where the id is -1.
  virtual void embed_next(const View& out, const RowSource& next, const EmbedTables& tables,
                          int64_t codebook) = 0;

  // ---- norm ----
  // out = in * rsqrt(mean(in^2) + eps) * weight, per row. out may be in.
  virtual void rms_norm(const View& out, const View& in, const Norm& norm) = 0;
  // sum += delta (rounded to the activation type); out = rms_norm(sum).
  virtual void add_rms_norm(const View& out, const View& sum, const View& delta, const Norm& norm);
  // out = in * rsqrt(mean(in^2) + eps) * weight * silu(z), per head of weight's width.
  virtual void gated_rms_norm(const View& out, const View& in, const View& z, const Norm& norm) = 0;
  // out = (in - mean) / sqrt(variance + eps) * weight + bias, per row. out may be in.
  virtual void layer_norm(const View& out, const View& in, const View& weight, const View& bias,
                          float eps) = 0;

  // ---- linear and elementwise ----
  virtual void linear(const View& out, const View& in, const Linear& weight) = 0;
  // Several projections of the same rows; the same bits as one linear() each.
  virtual void project(std::span<const Projection> outs, const View& in);
  virtual void add(const View& out, const View& a, const View& b) = 0;  // out may be a or b
  virtual void scaled_add(const View& out, const View& x, const View& y,
                          const View& gain) = 0;  // x + gain[c] * y; out may be x
  virtual void swiglu(const View& out, const View& gate, const View& up) = 0;  // silu(gate) * up
  virtual void gelu(const View& out, const View& in) = 0;                      // exact, by erf; out may be in
  virtual void tanh(const View& out, const View& in) = 0;                      // out may be in

  // ---- gated delta rule ----
  // Depthwise causal convolution over tail and rows, taps summed oldest first, then silu; updates tail.
  virtual void conv_silu(const View& out, const View& in, const View& weight, const View& tail) = 0;
  // decay = exp(-exp(a_log) * softplus(a + dt_bias)), beta = sigmoid(b), F32; softplus is log1p(exp(u)), u
  // above 20.
  virtual void delta_gates(const View& decay, const View& beta, const DeltaMix& mix) = 0;
  // Row by row and per value head, q and k L2-normalised (eps 1e-6 inside the root), q scaled by
  // key_dim^-0.5: S = decay S; d = beta (v - S^T k); S += k d^T; out = S^T q. One formulation for every call
  // size.
  virtual void delta_rule(const View& out, const View& qkv, const View& decay, const View& beta,
                          const View& memory, const DeltaDims& dims) = 0;
  // Convolution, gates, recurrence and gated norm: out [rows, values].
  virtual void delta_mix(const View& out, const DeltaMix& mix, const DeltaState& state,
                         const DeltaScratch& scratch);

  // ---- attention ----
  // out [rows, heads * head_dim] = rope(norm(in)) per head; row r has position *position + r. Empty norm
  // weight: none.
  virtual void head_norm_rope(const View& out, const View& in, const HeadLayout& layout, const Norm& norm,
                              const Rope& rope, const View& position) = 0;
  // Stores row r's key and value at slot (*position + r) mod slots.
  virtual void append_kv(const KvCache& cache, const View& key, const View& value, const View& position) = 0;
  // out [rows, heads * head_dim]: softmax(scale q.k) v over the keys that row *position + r sees, in position
  // order.
  virtual void attend(const View& out, const View& query, const KvCache& cache, const View& position,
                      const AttendDims& dims) = 0;
  // out[h * head_dim + d] *= sigmoid(gate[h * stride + offset + d]).
  virtual void sigmoid_gate(const View& out, const View& gate, const HeadLayout& layout) = 0;
  // Head norms, RoPE, append, attention and gate: out [rows, heads * head_dim].
  virtual void attention_mix(const View& out, const AttentionMix& mix, const KvCache& cache,
                             const View& position, const AttentionScratch& scratch);
  // *position += rows.
  virtual void advance(const View& position, int64_t rows) = 0;

  // ---- mixture of experts ----
  // One FP8 group: amax = max(|x|, 1e-10); scale = amax / 448; code = e4m3(clamp(x / scale)), true divisions.
  // codes [rows, n] F8_E4M3, scales [rows, ceil(n/128)] F32.
  virtual void quantize_rows(const View& codes, const View& scales, const View& in) = 0;
  // Softmax over all experts in F32, top_k by descending probability, ties to the lower index.
  virtual void route(const Routing& out, const View& logits, const MoeMix& mix, const MoeReplay& replay) = 0;
  // Bytes of workspace that expert_ffn needs for so many rows.
  virtual int64_t expert_workspace(const MoeMix& mix, int64_t rows) const = 0;
  // out = sum over slots, in slot order, of weight * down(silu(gate x) * up x); FP8 experts see x and the
  // product quantised per 1 x 128 group, block sums of 128 terms scaled by (p * x_scale) * w_scale.
  virtual void expert_ffn(const View& out, const View& in, const Routing& routing, const MoeMix& mix,
                          const MoeReplay& replay, const View& workspace) = 0;
  // out = routed + sigmoid(gate) * shared, gate [rows, 1].
  virtual void combine_shared(const View& out, const View& routed, const View& shared, const View& gate) = 0;
  // Router, routed experts and shared expert: out [rows, hidden].
  virtual void moe(const View& out, const View& in, const MoeMix& mix, const MoeReplay& replay,
                   const MoeScratch& scratch);

  // ---- draws ----
  // code[0] = the entry drawn from logits [1, n] for the frame in state and this codebook, with the uniform
  // that Philox gives for (seed, frame, codebook); non-finite logits set state.failure and draw 0.
  virtual void pick(const View& code, const View& logits, const PickState& state, int64_t codebook) = 0;
  // history[*frame mod rows of history] = codes [1, codebooks].
  virtual void record_codes(const View& history, const View& codes, const View& frame) = 0;

  // ---- codec: rows are time steps ----
  // out [frames, width] = table[min(code, entries - 1)], codes a column [frames, 1] I32; negative codes read
  // entry 0.
  virtual void lookup(const View& out, const View& codes, const View& table) = 0;
  // out [rows / stride, out]; tail [history, in] holds the rows before the first and is updated to the last
  // ones.
  virtual void conv(const View& out, const View& in, const Conv& conv, const View& tail) = 0;
  // out [rows * stride, out]; tail [history, in].
  virtual void conv_transpose(const View& out, const View& in, const ConvTranspose& conv,
                              const View& tail) = 0;
  virtual void snake(const View& out, const View& in, const Snake& snake) = 0;  // out may be in
  // out may be in; scratch two views like in.
  virtual void residual_unit(const View& out, const View& in, const ResidualUnit& unit, const View& tail,
                             const View& scratch0, const View& scratch1);
  // Per row, the entry whose L2-normalised vector has the highest cosine with it, ties to the lower index.
  virtual void nearest(const View& codes, const View& in, const View& table) = 0;
};

}  // namespace drama3
