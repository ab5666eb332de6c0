#!/usr/bin/env python3
"""drama3-say as a user of a CUDA device runs it, that device real or of fibers of the host: the embedded voice speaks as
on the CPU, and a device that does not exist is refused.

Usage: say_test.py SAY_ON_CUDA SAY MODEL
"""
import json
import math
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tool_process import HOP, Tally, Wav, run_tool  # noqa: E402

FRAMES = 3


def relative_l2(got, want):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def main():
    on_cuda, on_cpu, model = sys.argv[1:]
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        spoken = {}
        for program, device in ((on_cuda, "cuda"), (on_cpu, "cpu")):
            wav, report = pathlib.Path(folder, f"{device}.wav"), pathlib.Path(folder, f"{device}.json")
            outcome = run_tool(program, ["Hi.", "-m", model, "--device", device, "-n", str(FRAMES), "--seed", "1", "-o",
                                         str(wav), f"--json={report}"])
            if not tally.check(f"{device}: speaks, cut", outcome.code == 3, outcome):
                return tally.finish()
            named = json.loads(report.read_text())["device"]
            tally.check(f"{device}: the report's device", named.startswith(device), named)
            spoken[device] = Wav(wav.read_bytes()).samples
            tally.check(f"{device}: samples", len(spoken[device]) == FRAMES * HOP, len(spoken[device]))
        error = relative_l2(spoken["cuda"], spoken["cpu"])
        print(f"PCM on CUDA against the CPU's: relative L2 {error:.4f}")
        # BF16 and F16 against F32, most of it near silence; another code would give about 1.
        tally.check("the CPU's samples within 0.1", error < 0.1, error)

    refused = run_tool(on_cuda, ["Hi.", "-m", model, "--device", "cuda:99", "-o", "-"])
    tally.check("no such device", refused.code == 1 and "expected a usable CUDA device, got cuda:0" in refused.stderr,
                refused)
    devices = run_tool(on_cuda, ["--list-devices"])
    tally.check("the list of devices", b"cuda:0" in devices.stdout, devices)
    return tally.finish()


sys.exit(main())
