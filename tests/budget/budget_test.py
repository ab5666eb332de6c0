"""What drama3-say may cost: peak memory, and the time to load the tiny checkpoint and speak twenty frames.

Usage: budget_test.py SAY MODEL   (not under sanitizers: they change both)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SPARE_BYTES = 100 * 10**6  # allowed above the checkpoint's files and the caches
MOST_SECONDS = 2.0


def cache_bytes(model, rows):
    """Key/value caches and delta state of one sequence, F32, as the engine sizes them."""
    config = json.loads((model / "config.json").read_text())
    text, audio = config["text_config"], config["audio_decoder_config"]
    kinds = text["layer_types"]
    attention = kinds.count("full_attention") * 2 * text["num_key_value_heads"] * text["head_dim"] * rows * 4
    state = text["linear_num_value_heads"] * text["linear_key_head_dim"] * text["linear_value_head_dim"] * 4
    layers = audio["shared_enrichment_layers"] + audio["num_codebooks"] - 1
    tower = layers * 2 * audio["n_local_heads"] * audio["head_dim"] * rows * 4
    return attention + kinds.count("linear_attention") * state + tower


def main():
    say, model = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        command = [say, "The quick brown fox jumps over the lazy dog.", "--model", str(model), "--device", "cpu",
                   "--threads", "2", "--seed", "1", "-n", "20", "-q", "-o", os.path.join(folder, "out.wav")]
        best, peak = None, 0
        for _ in range(3):  # other work on the machine only ever slows a run down
            start = time.monotonic()
            process = subprocess.Popen(command)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - start
            if os.waitstatus_to_exitcode(status) not in (0, 3):
                sys.exit(f"drama3-say failed: {status}")
            best = seconds if best is None else min(best, seconds)
            peak = max(peak, usage.ru_maxrss * 1024)
    files = sum(path.stat().st_size for path in model.iterdir())
    allowed = files + cache_bytes(model, 4096) + SPARE_BYTES
    checks = [("peak memory", peak, allowed, "bytes"), ("load and twenty frames", best, MOST_SECONDS, "s")]
    failed = 0
    for name, got, most, unit in checks:
        good = got <= most
        failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {name}: {got:.6g} {unit}, at most {most:.6g} {unit}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
