#!/usr/bin/env python3
"""The shared cases S01-S14, S17 and the parts of S18 that need no GPU: failures that users of speech tools met.

On the embedded voice everything is asked. On the tiny random checkpoint, which speaks noise without end, outputs
are cut by --max-frames, and what needs real speech is skipped by name.
"""
import argparse
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tool_process  # noqa: E402
from tool_process import HOP, SayRunner, Tally, Wav, run_tool, sha256  # noqa: E402

HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}
FERRY = "The ferry leaves at six and the last one back is at ten."
LONG = " ".join(f"Entry {i}: the lamp in room {2 * i + 5} was left on, so the night guard wrote it down."
                for i in range(1, 61))
NOTHING = r"empty|nothing to (say|speak)"


class Cases(SayRunner):
    """The cases; each method is one of them."""

    def __init__(self, arguments, tally):
        super().__init__(arguments.say, tally)
        self.source = Path(arguments.source)
        self.oracle = arguments.oracle
        voice = self.source / "corpus" / "voice-mini"
        self.real = voice.is_dir() and not arguments.quick
        self.model = voice if self.real else self.source / "tests" / "data" / "golden" / "tiny"
        self.cap = [] if self.real else ["-n", "2" if arguments.quick else "12"]
        if not self.real:
            HIDDEN["DRAMA3_MODEL"] = str(self.model)
        self.done = (0,) if self.real else (0, 3)

    def speak(self, arguments, output="x.wav", **settings):
        """A run that has to succeed; its outcome, WAV and JSON document."""
        cap = [] if "-n" in arguments or "--max-frames" in arguments else self.cap
        outcome = self.say([*arguments, "-o", output, "--json", *cap], environment=HIDDEN, **settings)
        if not self.check(f"{arguments}: speaks", outcome.code in (0, 3), outcome):
            return outcome, None, None
        return outcome, Wav((self.path / output).read_bytes()), json.loads(outcome.stdout)

    def same(self, what, first, second):
        self.check(what, sha256(self.path / first) == sha256(self.path / second), f"{first} and {second} differ")

    def skip_without_voice(self, what):
        if not self.real:
            self.tally.skip(what, "needs the embedded voice (and no --quick)")
        return not self.real

    def s01_empty(self):
        for text in ["", "   ", "\t\r\n", "\u00a0\u3000\u200b"]:
            self.fail_clean(f"S01 {text!r}", [text, "-o", "x.wav"], NOTHING, limit=2)
        self.fail_clean("S01 empty stdin", ["-", "-o", "x.wav"], NOTHING, limit=2)
        self.fail_clean("S01 /dev/null", ["-f", "/dev/null", "-o", "x.wav"], NOTHING, limit=2)
        for text in ["...", "?!", "\U0001f642\U0001f389\U0001f469\u200d\U0001f469\u200d\U0001f467"]:
            self.fail_clean(f"S01 {text!r}", [text, "-o", "x.wav"], NOTHING, limit=2)

    def s02_bad_utf8(self):
        bad = [(b"Good \xff\xfe morning \xc3", "5")]
        bad += [(b"Good " + tail, "5") for tail in [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]]
        for data, offset in bad:
            (self.path / "bad.txt").write_bytes(data)
            pattern = rf"UTF-8.*\b{offset}\b|\b{offset}\b.*UTF-8"
            for way, arguments, stdin in [("file", ["-f", "bad.txt"], b""), ("stdin", ["-"], data),
                                          ("argument", [os.fsencode(data)], b"")]:
                self.fail_clean(f"S02 {data!r} by {way}", [*arguments, "--dump-tokens"], pattern, output=None, stdin=stdin)

    def s03_token_injection(self):
        plain = "Please read this aloud and keep going until the harbour lights."
        for token in ["<|im_end|>", "<|im_start|>", "<|semantic:5|>", "<|audio_start|>"]:
            text = plain.replace("aloud ", f"aloud {token} ")
            pattern = token.replace("|", r"\|").split(":")[0]
            self.fail_clean(f"S03 {token}", [text, "--dump-tokens"], pattern, output=None)
            self.fail_clean(f"S03 {token} spoken", [text, "-o", "x.wav"], pattern)
        outcome = self.say([plain, "--dump-tokens"])
        self.check("S03 without a token", outcome.code == 0 and len(outcome.stdout.split()) > 10, outcome)

    def s04_lines(self):
        lines = ["One fine day it rained.", "The bus was late again.", "Nobody minded much."]
        unix = "".join(line + "\n" for line in lines)
        (self.path / "lf.txt").write_text(unix)
        (self.path / "win.txt").write_bytes(b"\xef\xbb\xbf" + unix.replace("\n", "\r\n").encode())
        tokens = [self.say(["-f", name, "--dump-tokens"]).stdout for name in ["lf.txt", "win.txt"]]
        self.check("S04 BOM and CRLF give the same tokens", tokens[0] and tokens[0] == tokens[1], tokens)
        ways = [("lf.wav", ["-f", "lf.txt"], b""), ("win.wav", ["-f", "win.txt"], b""), ("arg.wav", [unix], b""),
                ("stdin.wav", ["-"], unix.encode())]
        for output, arguments, stdin in ways:
            _, wav, _ = self.speak([*arguments, "--seed", "5"], output, stdin=stdin)
            self.same(f"S04 {output}", "lf.wav", output)
        self.check("S04 one output file each", len(list(self.path.glob("*.wav"))) == 4)
        if not self.skip_without_voice("S04 length of three lines"):
            _, one, _ = self.speak([lines[0], "--seed", "5"], "one.wav")
            self.check("S04 all lines are spoken", wav.seconds >= 2 * one.seconds, f"{wav.seconds} {one.seconds}")

    def s05_seed(self):
        _, wav, report = self.speak([FERRY, "--seed", "42"], "a.wav")
        self.check("S05 WAV-OK", not wav.problem, wav.problem)
        self.speak([FERRY, "--seed", "42"], "b.wav")
        self.same("S05 one seed, the same bytes", "a.wav", "b.wav")
        self.speak([FERRY, "--seed", "43"], "c.wav")
        self.check("S05 another seed differs", sha256(self.path / "a.wav") != sha256(self.path / "c.wav"))
        for output in ["d.wav", "e.wav"]:
            self.speak([FERRY, "--seed", "0"], output)
        self.same("S05 seed 0", "d.wav", "e.wav")
        _, _, drawn = self.speak(["Hi."], "f.wav")
        self.speak(["Hi.", "--seed", str(drawn["seed"])], "g.wav")
        self.same("S05 the reported seed repeats", "f.wav", "g.wav")
        for seed in ["abc", "-1", "18446744073709551616"]:
            self.fail_clean(f"S05 --seed {seed}", ["hi", "-o", "x.wav", "--seed", seed], "--seed")
        if not self.skip_without_voice("S05 SPEECH(56)"):
            self.check("S05 SPEECH(56)", 0.035 * 56 <= report["seconds"] <= 0.2 * 56 + 2, report["seconds"])

    def s06_ranges(self):
        wrong = {"--temperature": ["nan", "inf", "-0.1"], "--top-p": ["0", "1.01", "nan"],
                 "--top-k": ["-1", "2.5", "x"], "--max-frames": ["0", "-4"]}
        for option, values in wrong.items():
            for value in values:
                self.fail_clean(f"S06 {option} {value}", ["hi", "-o", "x.wav", option, value],
                                rf"{option}: expected a .*(from \d|of at least|above \d)", limit=2)
        for arguments in [["--temperature", "0"], ["--top-p", "1"], ["--top-k", "1"], ["--top-k", "1000000"]]:
            _, wav, _ = self.speak(["Hello there.", *arguments, "-n", "8", "--seed", "1"])
            self.check(f"S06 {arguments} is accepted", wav is not None)

    def s07_header(self):
        _, wav, report = self.speak([FERRY, "--seed", "42"])
        self.check("S07 WAV-OK", not wav.problem, wav.problem)
        self.check("S07 length as in JSON", abs(len(wav.samples) - report["seconds"] * 44100) <= 1, report["seconds"])
        if not self.skip_without_voice("S07 edges and silence"):
            self.check("S07 no edge click", max(abs(wav.samples[0]), abs(wav.samples[-1])) <= 3000)
            self.check("S07 no long silence", wav.longest_silence() < 2, wav.longest_silence())

    def s08_pipe(self):
        text = "First we pack. Then we load the van. Last we lock the door."
        piped = self.say([text, "--seed", "9", "-o", "-", *self.cap], environment=HIDDEN)
        self.speak([text, "--seed", "9"], "f.wav")
        self.check("S08 exit code", piped.code in self.done, piped)
        self.check("S08 one header", piped.stdout[:4] == b"RIFF" and piped.stdout.count(b"RIFF") == 1)
        self.check("S08 sizes", piped.stdout[40:44] in (b"\xff" * 4, struct.pack("<I", len(piped.stdout) - 44)))
        self.check("S08 the same samples", piped.stdout[44:] == (self.path / "f.wav").read_bytes()[44:])
        self.check("S08 the log is on stderr", piped.stderr != "", piped)

    def s09_seams(self):
        if not self.oracle:
            self.tally.skip("S09", "there is no drama3-oracle in this build")
            return
        golden = self.source / "tests" / "data" / "golden"
        outcome = run_tool(self.oracle, ["--model", str(golden / "tiny"), "--reference", str(golden), "--stage", "codec"])
        self.check("S09 codec stage, whole and in windows", outcome.code == 0, outcome.stdout.decode()[-500:])

    def s10_long(self):
        (self.path / "long.txt").write_text(LONG)
        pieces = self.say(["-f", "long.txt", "--dump-tokens"]).stdout.splitlines()
        self.check("S10 a long text is spoken in pieces", len(pieces) > 1, len(pieces))
        arguments = ["-f", "long.txt", "--seed", "3"]
        _, wav, report = self.speak(arguments, timeout=1500)
        joined = "".join(chunk["text"] for chunk in report["chunks"])
        self.check("S10 the pieces joined are the text", joined == LONG, joined[:200])
        if self.skip_without_voice("S10 finish, length and silence"):
            return
        self.check("S10 every piece ends by itself", all(c["finish_reason"] == "stop" for c in report["chunks"]))
        self.check("S10 length", 150 <= report["seconds"] <= 700, report["seconds"])
        self.check("S10 no long silence", wav.longest_silence() < 3, wav.longest_silence())

    def s11_cap(self):
        outcome, wav, report = self.speak([LONG[:300], "--max-frames", "40", "--seed", "3"])
        self.check("S11 exit 3", outcome.code == 3, outcome)
        self.check("S11 forty frames", report["frames"] == 40 and len(wav.samples) == 40 * HOP, report["frames"])
        self.check("S11 WAV-OK", not wav.problem, wav.problem)
        self.check("S11 says so", report["finish_reason"] == "length" and "limit" in outcome.stderr, outcome)

    def linked_model(self, name, without=()):
        """A folder of links to a sharded model's files, less some."""
        folder = self.path / name
        folder.mkdir()
        for file in (self.source / "tests" / "data" / "golden" / "tiny").iterdir():
            if file.name not in without:
                (folder / file.name).symlink_to(file)
        return folder

    def s12_missing(self):
        for name in ["model-00002-of-00002.safetensors", "config.json", "tokenizer.json", "codec.pth"]:
            folder = self.linked_model("without-" + name, [name])
            self.fail_clean(f"S12 without {name}", ["hi", "-o", "x.wav", "-m", folder.name], name.replace(".", r"\."),
                            limit=10)

    def s13_damaged(self):
        shard = "model-00001-of-00002.safetensors"
        whole = (self.source / "tests" / "data" / "golden" / "tiny" / shard).read_bytes()
        length, = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8:8 + length])
        name = next(key for key in header if key != "__metadata__")
        header[name]["dtype"] = "F64"
        edited = json.dumps(header, separators=(",", ":")).encode()
        edited += b" " * (-len(edited) % 8)
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
        damages = [("short", whole[:-(1 << 20)], shard), ("pointer", pointer, "LFS"),
                   ("length", b"\xff" * 8 + whole[8:], shard),
                   ("F64", struct.pack("<Q", len(edited)) + edited + whole[8 + length:], name)]
        for kind, data, pattern in damages:
            folder = self.linked_model(kind, [shard])
            (folder / shard).write_bytes(data)
            self.fail_clean(f"S13 {kind}", ["hi", "-o", "x.wav", "-m", kind], pattern.replace(".", r"\."), limit=10)

    def s14_no_gpu(self):
        for device in ["cuda", "7"]:
            self.fail_clean(f"S14 --device {device}", ["Hello", "-o", "x.wav", "--device", device],
                            r"no (usable )?(CUDA|GPU)|device 7|cuda:7", limit=5, environment=HIDDEN)
        outcome = self.say(["--list-devices"], environment=HIDDEN)
        self.check("S14 --list-devices", outcome.code == 0 and
                   [line.split()[0] for line in outcome.stdout.splitlines()] == [b"cpu"], outcome)
        self.tally.skip("S14 with 1 GiB free", "needs a GPU")

    def s17_outputs(self):
        outcome = self.say(["Hello.", "-o", "/dev/full", *self.cap], environment=HIDDEN)
        self.check("S17 /dev/full", outcome.code == 1 and "/dev/full" in outcome.stderr and
                   "No space left on device" in outcome.stderr, outcome)
        limit = 32 << 10

        def small_disk():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        self.fail_clean("S17 file size limit", [LONG, "-o", "x.wav", "-n", "20"], r"x\.wav: .*File too large",
                        preexec_fn=small_disk, environment=HIDDEN)
        self.full_file_system()
        self.fail_clean("S17 no folder", ["Hello.", "-o", "nodir/x.wav"], r"nodir/x\.wav.*No such file or directory",
                        limit=2, output=None)
        self.fail_clean("S17 a folder", ["Hello.", "-o", "/tmp"], "/tmp.*Is a directory", limit=2, output=None)
        locked = self.path / "locked.wav"
        locked.write_bytes(b"keep")
        locked.chmod(0o444)
        self.fail_clean("S17 read-only file", ["Hello.", "-o", "locked.wav"], r"locked\.wav.*Permission denied",
                        limit=2, output=None)
        self.check("S17 read-only file is kept", locked.read_bytes() == b"keep")

    def full_file_system(self):
        mount = self.path / "small"
        mount.mkdir()
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(mount)], capture_output=True)
        if made.returncode:
            self.tally.skip("S17 full file system", "mounting needs root")
            return
        try:
            self.fail_clean("S17 full file system", [LONG, "-o", "small/x.wav", "-n", "20"],
                            r"small/x\.wav.*No space left on device", output=None, environment=HIDDEN)
            self.check("S17 full file system: nothing left", os.listdir(mount) == [], os.listdir(mount))
        finally:
            subprocess.run(["umount", str(mount)], check=True)

    def s18_first_contact(self):
        for program in filter(None, [self.program, self.oracle]):
            for option in ["--help", "--version"]:
                outcome = run_tool(program, [option])
                self.check(f"S18 {program} {option}", outcome.code == 0 and outcome.stdout and outcome.seconds < 0.5 * tool_process.time_scale,
                           outcome)
            self.check(f"S18 {program} --version names what is built for CUDA",
                       b"\nCUDA: " in run_tool(program, ["--version"]).stdout)
        files = [*self.source.glob("CMakeLists.txt"), *self.source.glob("*/CMakeLists.txt"),
                 *self.source.glob("cmake/*")]
        fetching = [str(file) for file in files
                    if any(word in file.read_text() for word in ["FetchContent", "ExternalProject", "file(DOWNLOAD"])]
        self.check("S18 no network at configure or build", not fetching, fetching)
        old = self.path / "old"
        shutil.copytree(self.source / "cmake", old / "cmake")
        first = (self.source / "CMakeLists.txt").read_text()
        (old / "CMakeLists.txt").write_text(first.replace("VERSION 3.25", "VERSION 9.25", 1))
        outcome = run_tool("cmake", ["-S", str(old), "-B", str(old / "build")])
        self.check("S18 too old a CMake names what it needs", outcome.code != 0 and "9.25" in outcome.stderr, outcome)
        nvcc = old / "nvcc"
        nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
        nvcc.chmod(0o755)
        (old / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(old LANGUAGES CXX)\n"
                                            "include(cmake/cuda.cmake)\n")
        outcome = run_tool("cmake", ["-S", str(old), "-B", str(old / "build"), f"-DDRAMA3_NVCC={nvcc}"])
        self.check("S18 too old an nvcc leaves CUDA out, and says so",
                   outcome.code == 0 and b"left out" in outcome.stdout and b"12.4" in outcome.stdout, outcome)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--say", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--quick", action="store_true", help="take the tiny checkpoint and two frames, five times the time limits")
    parser.add_argument("--only", help="the beginning of a case's name, for example s05")
    arguments = parser.parse_args()
    tool_process.time_scale = 5 if arguments.quick else 1
    tally = Tally()
    for name in sorted(name for name in dir(Cases) if name[0] == "s" and name[1:3].isdigit()):
        if not arguments.only or name.startswith(arguments.only):
            getattr(Cases(arguments, tally), name)()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
