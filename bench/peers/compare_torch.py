"""The full-size shapes of drama3_bench_ops through PyTorch on the same CPU threads in the same run, as ratios.

Ours is measured before and after PyTorch, and the better of the two figures counts on either side, since a shared
machine only ever slows one down. PyTorch keeps no FP8 products on the CPU: it gets the same matrices as BF16, which
is what its users run, twice the bytes; the last column takes that out by comparing bytes per second.
Needs torch (pip install torch); no test needs it.
"""
import argparse
import json
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("compare_torch: error: torch: expected an installed package, got none; pip install torch")

HIDDEN, TOWER_FFN, EXPERT_FFN, TOP_K = 2048, 9728, 512, 8
WORKING_SET = 768 << 20  # bytes that the weights rotate through, as in drama3_bench_ops


def ours(program, threads):
    """Name -> (seconds, bytes) of every benchmark at this thread count, and the read bandwidth of the run."""
    text = subprocess.run([program, "--benchmark_format=json", f"--benchmark_filter=/threads:{threads}/"],
                          capture_output=True, text=True, check=True).stdout
    entries = json.loads(text)["benchmarks"]
    times = {e["name"].split("/threads")[0]: (e["bytes"] / e["GB/s"] / 1e9, e["bytes"]) for e in entries}
    return times, max(e["read GB/s"] for e in entries)


def rotating(rows, columns):
    """Matrices of this shape that together exceed every cache."""
    count = max(2, WORKING_SET // (rows * columns * 2))
    pool = torch.empty(count, rows, columns, dtype=torch.bfloat16)
    pool.fill_(0.01)
    return pool


def undisturbed_seconds(step, least=40, budget=1.0):
    """Seconds that a tenth of the calls stay within, as drama3_bench_ops counts."""
    for turn in range(3):
        step(turn)
    samples, begin, turn = [], time.perf_counter(), 3
    while len(samples) < least or time.perf_counter() - begin < budget:
        start = time.perf_counter()
        step(turn)
        samples.append(time.perf_counter() - start)
        turn += 1
    return sorted(samples)[len(samples) // 10]


def product(rows, columns):
    """Seconds of one row times a matrix, and the bytes of the matrix."""
    pool = rotating(rows, columns)
    x = torch.full((1, columns), 0.5, dtype=torch.bfloat16)
    seconds = undisturbed_seconds(lambda turn: torch.nn.functional.linear(x, pool[turn % len(pool)]))
    return seconds, rows * columns * 2


def experts():
    """Seconds of eight experts for one row (gate, up, SiLU, down, weighted sum), and their bytes."""
    gate, up, down = (rotating(*shape) for shape in ((EXPERT_FFN, HIDDEN), (EXPERT_FFN, HIDDEN), (HIDDEN, EXPERT_FFN)))
    x = torch.full((1, HIDDEN), 0.5, dtype=torch.bfloat16)
    linear, silu = torch.nn.functional.linear, torch.nn.functional.silu

    def step(turn):
        total = torch.zeros(1, HIDDEN)
        for slot in range(TOP_K):
            e = (turn * TOP_K + slot) % len(gate)
            total += linear(silu(linear(x, gate[e])) * linear(x, up[e]), down[e]) * 0.125

    return undisturbed_seconds(step), TOP_K * 3 * HIDDEN * EXPERT_FFN * 2


PEERS = {
    "gemv/bf16_2048x9728": lambda: product(TOWER_FFN, HIDDEN),
    "gemv/bf16_9728x2048": lambda: product(HIDDEN, TOWER_FFN),
    "gemv/fp8_2048x8192": lambda: product(8192, HIDDEN),
    "experts/fp8_8_of_256": experts,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="drama3_bench_ops of a build with -DDRAMA3_BUILD_BENCH=ON")
    parser.add_argument("--threads", type=int, default=1, help="1 or the number of cores (those are measured)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    before, read_before = ours(arguments.program, arguments.threads)
    if not before:
        sys.exit(f"compare_torch: error: --threads: expected 1 or the number of cores, got {arguments.threads}")
    with torch.inference_mode():
        peers = {name: peer() for name, peer in PEERS.items() if name in before}
    after, read_after = ours(arguments.program, arguments.threads)
    print(f"torch {torch.__version__}, {arguments.threads} thread(s), read {max(read_before, read_after):.1f} GB/s\n")
    print("| shape                | drama3 us | spread of its two runs | torch us | torch / drama3 | ratio of GB/s |")
    print("|:---------------------|----------:|-----------------------:|---------:|---------------:|--------------:|")
    for name, (seconds, peer_bytes) in peers.items():
        best, bytes_ours = min(before[name], after[name])
        spread = max(before[name][0], after[name][0]) / best - 1
        rate = (bytes_ours / best) / (peer_bytes / seconds)
        print(f"| {name:20} | {best * 1e6:9.1f} | {spread:20.0%}   | {seconds * 1e6:8.1f} | {seconds / best:14.2f} | "
              f"{rate:13.2f} |")


if __name__ == "__main__":
    main()
