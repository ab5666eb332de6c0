"""Runs drama3 tools as processes and judges what they did: FAIL-CLEAN, WAV-OK and other checks, counted."""
import hashlib
import os
import re
import struct
import subprocess
import tempfile
import time
from pathlib import Path

time_scale = 1  # sanitizers are slow; a test that runs under them raises it
HOP = 2048
SAMPLE_RATE = 44100


class Tally:
    """Counts checks; prints the failed and the skipped ones."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, what, holds, detail=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {str(detail)[:600]}", flush=True)
        return bool(holds)

    def skip(self, what, why):
        self.skipped += 1
        print(f"skipped {what}: {why}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else ""))
        return 1 if self.failed else 0


class Outcome:
    """What one run of a tool left behind."""

    def __init__(self, done, seconds):
        self.code = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr.decode("utf-8", "replace")
        self.seconds = seconds

    def __str__(self):
        return f"exit {self.code} in {self.seconds:.2f} s, stderr: {self.stderr}"


def run_tool(program, arguments, stdin=b"", environment=None, timeout=120, **settings):
    """One run; the environment is ours without DRAMA3_*, plus what is given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DRAMA3_")}
    clean.update(environment or {})
    start = time.monotonic()
    settings.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([str(program), *arguments], input=stdin, stderr=subprocess.PIPE, env=clean, timeout=timeout,
                          **settings)
    return Outcome(done, time.monotonic() - start)


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Wav:
    """A WAV file's fields and samples; problem says why it is not WAV-OK, or is empty."""

    def __init__(self, data):
        self.problem = ""
        self.samples = ()
        if len(data) < 44 or data[:4] != b"RIFF" or data[8:16] != b"WAVEfmt " or data[36:40] != b"data":
            self.problem = f"no header of ours: {data[:44]!r}"
            return
        self.riff_size, = struct.unpack("<I", data[4:8])
        self.layout = struct.unpack("<HHIIHH", data[20:36])
        self.data_size, = struct.unpack("<I", data[40:44])
        body = data[44:]
        self.samples = struct.unpack(f"<{len(body) // 2}h", body[:len(body) // 2 * 2])
        self.seconds = len(self.samples) / SAMPLE_RATE
        self.problem = self._problem(data)

    def _problem(self, data):
        if self.riff_size != len(data) - 8:
            return f"RIFF size {self.riff_size} in a file of {len(data)} bytes"
        if self.data_size != len(data) - 44:
            return f"data size {self.data_size} in a file of {len(data)} bytes"
        if self.layout != (1, 1, SAMPLE_RATE, 2 * SAMPLE_RATE, 2, 16):
            return f"format {self.layout}"
        if not self.samples or len(self.samples) % HOP:
            return f"{len(self.samples)} samples are no whole number of hops"
        if max(map(abs, self.samples)) <= 500:
            return "peak at most 500"
        if max(abs(b - a) for a, b in zip(self.samples, self.samples[1:])) >= 50000:
            return "a step of 50000 or more"
        return ""

    def longest_silence(self):
        """Seconds of the longest run of samples within +-30."""
        longest = run = 0
        for sample in self.samples:
            run = run + 1 if abs(sample) <= 30 else 0
            longest = max(longest, run)
        return longest / SAMPLE_RATE


class SayRunner:
    """drama3-say in a scratch folder, with the checks that the cases share."""

    def __init__(self, program, tally):
        self.program = Path(program).resolve()
        self.tally = tally
        self.folder = tempfile.TemporaryDirectory(prefix="drama3-cases-")
        self.path = Path(self.folder.name)

    def say(self, arguments, **settings):
        return run_tool(self.program, arguments, cwd=self.path, **settings)

    def check(self, what, holds, detail=""):
        return self.tally.check(what, holds, detail)

    def fail_clean(self, what, arguments, pattern, limit=None, output="x.wav", **settings):
        """The run fails with our words, leaves no new file and the old output as it was."""
        target = self.path / output if output else None
        for existing in [False, True] if target else [False]:
            if existing:
                target.write_bytes(b"old output")
            before = sorted(os.listdir(self.path))
            outcome = self.say(arguments, **settings)
            name = f"{what}{' over an old file' if existing else ''}"
            self.check(f"{name}: fails cleanly", 1 <= outcome.code <= 125, outcome)
            lines = [line for line in outcome.stderr.splitlines() if ": note:" not in line]
            self.check(f"{name}: says why", lines and len(lines) <= 3 and "terminate called" not in outcome.stderr and
                       lines[-1].startswith("drama3-say: error:"), outcome)
            self.check(f"{name}: matches {pattern}", re.search(pattern, outcome.stderr, re.IGNORECASE), outcome)
            if limit:
                self.check(f"{name}: within {limit} s", outcome.seconds < limit * time_scale, outcome)
            self.check(f"{name}: leaves nothing", sorted(os.listdir(self.path)) == before, os.listdir(self.path))
            if existing:
                self.check(f"{name}: keeps the old file", target.read_bytes() == b"old output")
                target.unlink()
        return outcome
