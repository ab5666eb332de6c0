#!/usr/bin/env python3
"""The full-size backbone through transformers on one GPU: a decode row eager and as a CUDA graph, and prompts.

Prints one JSON document. The model is transformers' Qwen3.5-MoE text model with random BF16 weights (its users keep the
experts in BF16 too), grouped_mm experts, a static cache, no head: what drama3 calls a backbone row. Needs torch and
transformers; gpu_gate.sh runs it where they are. With --device cpu and few layers it only shows that it runs.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    import transformers
    from transformers import StaticCache
    from transformers.models.qwen3_5_moe.configuration_qwen3_5_moe import Qwen3_5MoeTextConfig
    from transformers.models.qwen3_5_moe.modeling_qwen3_5_moe import Qwen3_5MoeTextModel
except ImportError as error:
    sys.exit(f"backbone_torch: error: packages: expected torch and transformers with Qwen3.5-MoE, got: {error}")

CONTEXT = 300  # rows before the decoded ones, as in cuda_frame_bench
CACHE = 512
PROMPTS = (128, 150)
TOLERANCE = 2e-2  # relative L2 between the graph's row and the eager one: BF16 sums in another order


def build(arguments):
    config = Qwen3_5MoeTextConfig(
        vocab_size=arguments.vocabulary, hidden_size=2048, num_hidden_layers=arguments.layers, num_attention_heads=16,
        num_key_value_heads=2, head_dim=256, linear_num_key_heads=16, linear_num_value_heads=32,
        linear_key_head_dim=128, linear_value_head_dim=128, moe_intermediate_size=512,
        shared_expert_intermediate_size=512, num_experts=arguments.experts, num_experts_per_tok=8)
    config._attn_implementation = "sdpa"
    config._experts_implementation = "grouped_mm"
    torch.manual_seed(1)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(arguments.device):
        return Qwen3_5MoeTextModel(config).eval()


class Sequence:
    """One sequence on a static cache, whose buffers keep their addresses from prompt to prompt."""

    def __init__(self, model, device):
        self.model, self.device = model, device
        self.cache = StaticCache(config=model.config, max_cache_len=CACHE)
        self.ids = torch.full((1, 1), 7, device=device)
        self.position = torch.zeros(1, 1, dtype=torch.long, device=device)
        self.slots = torch.arange(CACHE, device=device)
        self.out = None

    def prompt(self, rows):
        self.cache.reset()
        ids = (torch.arange(rows, device=self.device) * 17 % 700).view(1, rows)
        out = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True).last_hidden_state
        self.position.fill_(rows)
        return out

    def row(self):
        """A row as a user writes it."""
        out = self.model(input_ids=self.ids, past_key_values=self.cache, use_cache=True).last_hidden_state
        self.position += 1
        return out

    def recorded_row(self):
        """The same from device-side positions and masks only, so that it can be recorded."""
        mask = (self.slots <= self.position[0]).view(1, 1, 1, CACHE)
        masks = {"full_attention": mask, "linear_attention": None}
        self.out = self.model(input_ids=self.ids, position_ids=self.position, attention_mask=masks,
                              past_key_values=self.cache, use_cache=True).last_hidden_state
        self.position += 1
        return self.out


def synchronize(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def milliseconds(device, step, count):
    """Median and spread of a step after two for warming up."""
    times = []
    for turn in range(count + 2):
        synchronize(device)
        begin = time.perf_counter()
        step()
        synchronize(device)
        if turn >= 2:
            times.append((time.perf_counter() - begin) * 1e3)
    return round(statistics.median(times), 3), [round(min(times), 3), round(max(times), 3)]


def record(sequence):
    """The recorded row, after runs on another stream that load what a recording may not."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            sequence.recorded_row()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sequence.recorded_row()
    return graph


def relative_l2(got, want):
    return float((got.float() - want.float()).norm() / want.float().norm())


def measure(arguments):
    device = arguments.device
    begin = time.perf_counter()
    model = build(arguments)
    synchronize(device)
    report = {
        "torch": torch.__version__, "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else device,
        "layers": arguments.layers, "context": CONTEXT,
        "weights_gb": round(sum(p.numel() * p.element_size() for p in model.parameters()) * 1e-9, 2),
        "build_seconds": round(time.perf_counter() - begin, 1),
    }
    sequence = Sequence(model, device)
    for rows in PROMPTS:
        report[f"prompt_{rows}_ms"], report[f"prompt_{rows}_range"] = milliseconds(
            device, lambda count=rows: sequence.prompt(count), arguments.prompts)
    sequence.prompt(CONTEXT)
    report["row_eager_ms"], report["row_eager_range"] = milliseconds(device, sequence.row, arguments.rows)
    sequence.prompt(CONTEXT)
    want = sequence.row().clone()
    sequence.prompt(CONTEXT)
    step = sequence.recorded_row
    if device.startswith("cuda"):
        graph = record(sequence)
        step = graph.replay
        sequence.prompt(CONTEXT)
    step()
    report["recorded_row_relative_l2"] = relative_l2(sequence.out, want)
    if device.startswith("cuda"):
        report["row_graph_ms"], report["row_graph_range"] = milliseconds(device, step, 3 * arguments.rows)
        report["peak_gb"] = round(torch.cuda.max_memory_allocated() * 1e-9, 2)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=252416)
    parser.add_argument("--rows", type=int, default=20, help="decoded rows that are timed")
    parser.add_argument("--prompts", type=int, default=5, help="prompts of each length that are timed")
    arguments = parser.parse_args()
    with torch.inference_mode():
        report = measure(arguments)
    print(json.dumps(report))
    if not report["recorded_row_relative_l2"] <= TOLERANCE:
        sys.exit(f"backbone_torch: error: the recorded row: expected the eager row within {TOLERANCE}, got "
                 f"{report['recorded_row_relative_l2']:.3g}")


if __name__ == "__main__":
    main()
