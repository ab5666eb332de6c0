#!/usr/bin/env python3
"""drama3-say as a user of a CUDA device runs it, that device real or of fibers of the host: the embedded voice speaks as
on the CPU, and a device that does not exist is refused.

Usage: say_test.py SAY_ON_CUDA SAY MODEL
"""
import array
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import wave

FRAMES = 3
SAMPLES_PER_FRAME = 2048


def say(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def samples(path):
    with wave.open(str(path)) as file:
        return array.array("h", file.readframes(file.getnframes()))


def relative_l2(got, want):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))


def main():
    on_cuda, on_cpu, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        spoken = {}
        for program, device in ((on_cuda, "cuda"), (on_cpu, "cpu")):
            wav, report = pathlib.Path(folder, f"{device}.wav"), pathlib.Path(folder, f"{device}.json")
            outcome = say(program, "Hi.", "-m", model, "--device", device, "-n", str(FRAMES), "--seed", "1", "-o",
                          str(wav), f"--json={report}")
            assert outcome.returncode == 3, outcome.stderr  # cut
            assert json.loads(report.read_text())["device"].startswith(device), report.read_text()
            spoken[device] = samples(wav)
            assert len(spoken[device]) == FRAMES * SAMPLES_PER_FRAME, len(spoken[device])
        error = relative_l2(spoken["cuda"], spoken["cpu"])
        print(f"PCM on CUDA against the CPU's: relative L2 {error:.4f}")
        assert error < 0.1  # BF16 and F16 against F32, most of it near silence; another code would give about 1

    refused = say(on_cuda, "Hi.", "-m", model, "--device", "cuda:99", "-o", "-")
    assert refused.returncode == 1 and "expected a usable CUDA device, got cuda:0" in refused.stderr, refused.stderr
    assert "cuda:0" in say(on_cuda, "--list-devices").stdout
    print("passed")


main()
