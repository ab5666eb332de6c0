#!/usr/bin/env python3
"""The rules of drama3-say's command line, each asked of the program by a run that breaks or needs only it."""
import argparse
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tool_process  # noqa: E402
from tool_process import SayRunner, Tally, Wav, run_tool  # noqa: E402

SHORT = ["--seed", "7", "-n", "4"]  # a run that ends soon; cut or not, its audio is whole


def streams_and_lists(runner):
    """Rule 1 and 9: data on stdout, the rest on stderr; lists at once."""
    for arguments in [["--help"], ["-h"], ["--version"], ["--quiet", "--help"]]:
        outcome = runner.say(arguments, environment={"DRAMA3_MODEL": "/nowhere"})
        runner.check(f"{arguments}: exit 0", outcome.code == 0 and outcome.stdout, outcome)
        runner.check(f"{arguments}: nothing on stderr", outcome.stderr == "", outcome)
        runner.check(f"{arguments}: under half a second", outcome.seconds < 0.5 * tool_process.time_scale, outcome)
    runner.check("help begins with examples", runner.say(["--help"]).stdout.startswith(b"Examples:\n  # "))
    lines = runner.say(["--version"]).stdout.decode().splitlines()
    runner.check("version: first line", lines[0].split(" ")[0] == "drama3-say" and lines[0].count(".") == 2, lines)
    for number, name in enumerate(["commit", "compiler", "CUDA", "CPU paths", "embedded voice"], 1):
        runner.check(f"version: {name}", lines[number].startswith(name + ": "), lines)


def refusals(runner):
    """Rules 2 and 3: exit 2, the argument's name, --help; nothing left behind."""
    cases = [
        (["-hello", "-o", "x.wav"], "'-hello'.*put -- before a text that begins with a dash"),
        (["hi", "-o=x.wav"], "'-o=x.wav'"), (["hi", "--out=x.wav", "--mod=y"], "'--mod=y'"),
        (["hi", "-o", "x.wav", "--seed", "1", "--seed", "1"], "--seed: expected once"),
        (["hi", "-o", "x.wav", "--seed", "-1"], "--seed.*from 0 to 18446744073709551615.*leave"),
        (["hi", "-o", "x.wav", "--seed", "010"], "--seed"), (["hi", "-o", "x.wav", "--seed", "0x10"], "--seed"),
        (["hi", "-o", "x.wav", "--seed", "18446744073709551616"], "--seed"),
        (["hi", "-o", "x.wav", "--temperature", "nan"], "--temperature"),
        (["hi", "-o", "x.wav", "--frobnicate"], "'--frobnicate'"), (["hi", "-o"], "-o"), (["hi"], "-o out.wav"),
        (["hi", "there", "-o", "x.wav"], "quotes"), (["hi", "-f", "t.txt", "-o", "x.wav"], "--file"),
        (["hi", "-o", "x.ogg"], "x.ogg.*wav, flac or pcm"), (["hi", "-o", "noextension"], "wav, flac or pcm"),
        (["hi", "-o", "x.wav", "--format", "mp3"], "wav, flac, pcm"), (["hi", "-o", "x.wav", "-q", "-v"], "--verbose"),
    ]
    for arguments, pattern in cases:
        outcome = runner.fail_clean(f"{arguments}", arguments, pattern, limit=1)
        runner.check(f"{arguments}: exit 2", outcome.code == 2, outcome)
        runner.check(f"{arguments}: one line that points to --help", outcome.stderr.count("\n") == 1 and
                     outcome.stderr.endswith("see drama3-say --help\n"), outcome)


def text_with_a_dash(runner):
    outcome = runner.say(["--dump-tokens", "--", "-hello"])
    runner.check("-- lets a text begin with a dash", outcome.code == 0 and outcome.stdout.split(), outcome)


def environment(runner, model):
    """Rule 4: flag before environment; a bad value names its variable."""
    good = runner.say(["hi", "--dump-tokens"], environment={"DRAMA3_MODEL": model})
    runner.check("DRAMA3_MODEL is used", good.code == 0 and "note: model" not in good.stderr, good)
    flag = runner.say(["hi", "--dump-tokens", "-m", model], environment={"DRAMA3_MODEL": "/nowhere"})
    runner.check("--model beats DRAMA3_MODEL", flag.code == 0 and flag.stdout == good.stdout, flag)
    for name, value in [("DRAMA3_MODEL", "/nowhere"), ("DRAMA3_THREADS", "0"), ("DRAMA3_DEVICE", "toaster"),
                        ("DRAMA3_CPU", "mmx")]:
        runner.fail_clean(f"{name}={value}", ["hi", "-o", "x.wav", *SHORT], name, environment={name: value})


def models(runner, model):
    """Rule 5."""
    outcome = runner.fail_clean("--model /nowhere", ["hi", "-o", "x.wav", "-m", "/nowhere"], "huggingface-cli download")
    for name in ["config.json", "tokenizer.json", "safetensors", "codec.pth"]:
        runner.check(f"--model /nowhere: looked for {name}", name in outcome.stderr, outcome)
    runner.fail_clean("--model FILE", ["hi", "-o", "x.wav", "-m", "/dev/null"], "expected a folder")
    (runner.path / "linked").symlink_to(model)
    outcome = runner.say(["hi", "--dump-tokens", "-m", "linked"])
    runner.check("a linked model folder", outcome.code == 0, outcome)
    (runner.path / "linked").unlink()
    outcome = runner.say(["hi", "--dump-tokens"])
    runner.check("without --model one line says what is used", outcome.code == 0 and
                 outcome.stderr.count("note: model: the ") == 1, outcome)


def verified(runner, model):
    """--verify: digests of all files, and a NaN code in an FP8 weight refused."""
    model = Path(model)
    outcome = runner.say(["hi", "-o", "x.wav", "-m", str(model), "--verify", *SHORT])
    listed = dict(reversed(line.split("  ", 1)) for line in outcome.stderr.splitlines() if re.match("[0-9a-f]{64}  ", line))
    expected = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in model.iterdir() if file.is_file()}
    runner.check("--verify: digests", outcome.code in (0, 3) and listed == expected, outcome)
    folder = runner.path / "nan"
    folder.mkdir()
    damaged = None
    for file in model.iterdir():
        (folder / file.name).symlink_to(file)
        data = bytearray(file.read_bytes()) if file.suffix == ".safetensors" and not damaged else b""
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")]) if data else {}
        for name, tensor in header.items():
            if tensor.get("dtype") == "F8_E4M3" and not damaged:
                damaged = name
                data[8 + int.from_bytes(data[:8], "little") + tensor["data_offsets"][0] + 5] = 0x7f
                (folder / file.name).unlink()
                (folder / file.name).write_bytes(data)
    outcome = runner.say(["hi", "-o", "x.wav", "-m", "nan", *SHORT])
    runner.check("a NaN code is found only on demand", outcome.code in (0, 3), outcome)
    (runner.path / "x.wav").unlink(missing_ok=True)
    runner.fail_clean("--verify: NaN code", ["hi", "-o", "x.wav", "-m", "nan", "--verify", "-q"],
                      re.escape(f"{damaged}: expected finite numbers, got NaN or infinity at index 5"))
    shutil.rmtree(folder)
    for other in ["--dump-tokens", "--list-devices"]:
        outcome = runner.say(["hi", "--verify", other] if other == "--dump-tokens" else ["--verify", other])
        runner.check(f"--verify with {other}", outcome.code == 2 and "--verify: " in outcome.stderr, outcome)


def devices(runner):
    """Rule 6."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    outcome = runner.say(["--list-devices"], environment=hidden)
    runner.check("--list-devices lists only the CPU", outcome.code == 0 and
                 [line.split()[0] for line in outcome.stdout.splitlines()] == [b"cpu"], outcome)
    listed = json.loads(runner.say(["--list-devices", "--json"], environment=hidden).stdout)
    runner.check("--list-devices --json is an array", [entry["id"] for entry in listed] == ["cpu"], listed)
    outcome = runner.say(["hi", "-o", "x.wav", *SHORT], environment=hidden)
    runner.check("auto says what it took", "note: device cpu: " in outcome.stderr, outcome)
    for device in ["cuda", "gpu", "cuda:7", "7"]:
        outcome = runner.fail_clean(f"--device {device}", ["hi", "-o", "x.wav", "--device", device],
                                    r"no (usable )?(CUDA|GPU)|device 7|cuda:7", limit=5, environment=hidden)
        runner.check(f"--device {device}: exit 1", outcome.code == 1, outcome)


def verbosity(runner):
    """Rule 7."""
    quiet = runner.say(["hi", "-o", "x.wav", "-q", *SHORT])
    runner.check("-q leaves nothing but errors", quiet.stderr == "", quiet)
    normal = runner.say(["hi", "-o", "x.wav", *SHORT])
    runner.check("one closing line", normal.stderr.splitlines()[-1].startswith("wrote x.wav: ") and
                 "seed 7" in normal.stderr, normal)
    runner.check("no bar without a terminal", "\r" not in normal.stderr, normal)
    verbose = runner.say(["hi", "-o", "x.wav", "-v", *SHORT])
    runner.check("-v adds stages", "stages: prompt" in verbose.stderr, verbose)
    one = runner.say(["hi", "-o", "one.pcm", "-t", "1", *SHORT])
    two = runner.say(["hi", "-o", "two.pcm", "-t", "2", *SHORT])
    runner.check("threads do not change the bytes", one.code == two.code and
                 (runner.path / "one.pcm").read_bytes() == (runner.path / "two.pcm").read_bytes(), two)


def json_documents(runner):
    """Rule 8 and the keys of section 2."""
    keys = ("text_tokens chunks frames samples sample_rate seconds seed finish_reason warnings output format sha256 "
            "device threads load_seconds first_audio_seconds compute_seconds rtf version").split()
    for option in ["--json", "--json=-", "--json=r.json"]:
        outcome = runner.say(["hi", "-o", "x.wav", option, *SHORT])
        text = (runner.path / "r.json").read_bytes() if option.endswith("r.json") else outcome.stdout
        runner.check(f"{option}: nothing else on stdout", option != "--json=r.json" or outcome.stdout == b"", outcome)
        document = json.loads(text)
        runner.check(f"{option}: schema first", list(document)[0] == "schema" and
                     document["schema"] == "drama3-say/1", list(document))
        runner.check(f"{option}: all keys", not [key for key in keys if key not in document], list(document))
        runner.check(f"{option}: frames and samples", document["samples"] == 2048 * document["frames"], document)
    piped = runner.say(["hi", "-o", "-", "--json", *SHORT])
    runner.check("with -o - the document goes to stderr", piped.stdout[:4] == b"RIFF" and
                 '"schema": "drama3-say/1"' in piped.stderr, piped)
    broken = runner.say(["hi", "-o", "nodir/x.wav", "--json"])
    runner.check("a failure is a document", json.loads(broken.stdout)["error"]["exit_code"] == broken.code == 1, broken)
    usage = runner.say(["hi", "--seed=-1", "-o", "x.wav", "--json"])
    document = json.loads(usage.stdout)
    runner.check("a wrong command line is a document", document["schema"] == "drama3-say/1" and
                 document["error"]["exit_code"] == usage.code == 2 and "--seed" in document["error"]["message"], usage)
    silent = runner.say(["hi", "-o", "nodir/x.wav", "--json=r2.json"])
    runner.check("a failure leaves no document in a file", not (runner.path / "r2.json").exists(), silent)


def texts(runner):
    """Section 2: where the words come from."""
    outcome = runner.say(["", "--dump-tokens"])
    runner.check("an empty TEXT is not an absent one", outcome.code == 1 and "nothing to" in outcome.stderr, outcome)
    (runner.path / "words").write_text("hi")
    outcome = runner.say(["words", "--dump-tokens"])
    runner.check("TEXT that names a file warns", outcome.code == 0 and "warning: " in outcome.stderr and
                 "-f words" in outcome.stderr, outcome)
    by_file = runner.say(["-f", "words", "--dump-tokens"]).stdout
    for arguments, stdin in [(["hi"], b""), (["-"], b"hi"), ([], b"hi"), (["-f", "-"], b"hi"), (["--text", "hi"], b""),
                             (["--input-file=words"], b"")]:
        outcome = runner.say([*arguments, "--dump-tokens"], stdin=stdin)
        runner.check(f"{arguments} gives the same tokens", outcome.stdout == by_file and by_file, outcome)
    for magic in [b"RIFF1234", b"fLaC", b"OggS", b"ID3"]:
        (runner.path / "song").write_bytes(magic + b"\0\1\2")
        runner.fail_clean(f"-f on {magic}", ["-f", "song", "-o", "x.wav"], "-f is the text to read, -o the audio")
    runner.fail_clean("-f on a missing x.flac", ["-f", "x.flac", "-o", "x.wav"], "-f is the text to read")
    runner.fail_clean("-f on a folder", ["-f", ".", "-o", "x.wav"], "Is a directory")
    master, slave = pty.openpty()
    outcome = run_tool(runner.program, ["-o", "x.wav"], stdin=None, cwd=runner.path, timeout=10,
                       preexec_fn=lambda: os.dup2(slave, 0))
    os.close(master)
    os.close(slave)
    runner.check("no text and a terminal: usage", outcome.code == 2 and "TEXT" in outcome.stderr, outcome)


def outputs(runner):
    """Section 2: where the audio goes."""
    reference = runner.say(["hi", "-o", "x.wav", *SHORT])
    wav = Wav((runner.path / "x.wav").read_bytes())
    runner.check("a WAV file", reference.code in (0, 3) and not wav.problem, wav.problem)
    body = (runner.path / "x.wav").read_bytes()[44:]
    target = runner.path / "mode.wav"
    target.write_bytes(b"old")
    target.chmod(0o640)
    (runner.path / "link.wav").symlink_to("mode.wav")
    runner.say(["hi", "-o", "link.wav", *SHORT])
    runner.check("mode kept, link followed", stat.S_IMODE(target.stat().st_mode) == 0o640 and
                 (runner.path / "link.wav").is_symlink() and target.read_bytes()[44:] == body)
    piped = runner.say(["hi", "-o", "-", *SHORT])
    runner.check("WAV on a pipe", piped.stdout[4:8] == b"\xff" * 4 == piped.stdout[40:44] and piped.stdout[44:] == body,
                 piped)
    with open(runner.path / "redirected.wav", "wb") as file:
        runner.say(["hi", "-o", "-", *SHORT], stdout=file)
    runner.check("WAV on redirected stdout is a whole file",
                 (runner.path / "redirected.wav").read_bytes() == (runner.path / "x.wav").read_bytes())
    raw = runner.say(["hi", "-o", "-", "--format", "pcm", *SHORT])
    runner.check("pcm is the samples", raw.stdout == body, raw)
    for name in ["a.pcm", "a.raw"]:
        runner.say(["hi", "-o", name, *SHORT])
        runner.check(f"{name} is the samples", (runner.path / name).read_bytes() == body)
    runner.say(["hi", "-o", "a.flac", *SHORT])
    runner.check("flac by extension", (runner.path / "a.flac").read_bytes()[:4] == b"fLaC")
    runner.say(["hi", "-o", "b.flac", "--format", "wav", *SHORT])
    runner.check("the flag beats the extension", (runner.path / "b.flac").read_bytes()[:4] == b"RIFF")
    os.mkfifo(runner.path / "fifo")
    reader = subprocess.Popen(["cat", str(runner.path / "fifo")], stdout=subprocess.PIPE)
    runner.say(["hi", "-o", "fifo", *SHORT])
    runner.check("a FIFO is written directly", reader.communicate()[0][44:] == body and
                 stat.S_ISFIFO((runner.path / "fifo").stat().st_mode))


def cut_and_repeated(runner):
    """Exit 3, and seeds."""
    for _ in range(5):  # without a seed, the random checkpoint ends by itself in one run of twenty
        cut = runner.say(["Hello there, how are you?", "-o", "x.wav", "-n", "12", "--json", "--temperature", "1"])
        document = json.loads(cut.stdout)
        if cut.code == 3:
            break
    runner.check("a cut output is exit 3 with its audio", cut.code == 3 and document["finish_reason"] == "length" and
                 document["frames"] == 12 and not Wav((runner.path / "x.wav").read_bytes()).problem, cut)
    runner.check("a cut output warns", "warning: " in cut.stderr and "limit" in cut.stderr and document["warnings"], cut)
    seed = document["seed"]
    runner.check("a drawn seed is below 2^32", 0 <= seed < 2**32, seed)
    again = runner.say(["Hello there, how are you?", "-o", "y.wav", "-n", "12", "--seed", str(seed), "--temperature", "1"])
    runner.check("the reported seed repeats the bytes",
                 (runner.path / "x.wav").read_bytes() == (runner.path / "y.wav").read_bytes(), again)


def signals(runner):
    """Rule 2: clean up, then die by the signal; a lost reader is SIGPIPE without a word."""
    for number in [signal.SIGINT, signal.SIGTERM]:
        (runner.path / "s.wav").write_bytes(b"old output")
        before = sorted(os.listdir(runner.path))
        process = subprocess.Popen([str(runner.program), "hi " * 2000, "-o", "s.wav", "--seed", "7"],
                                   cwd=runner.path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and sorted(os.listdir(runner.path)) == before:
            time.sleep(0.01)  # until the temporary file is there
        runner.check(f"{number.name}: a temporary file while speaking", sorted(os.listdir(runner.path)) != before)
        process.send_signal(number)
        process.communicate(timeout=20)
        runner.check(f"{number.name}: dies by it", process.returncode == -number, process.returncode)
        runner.check(f"{number.name}: nothing left, old output kept", sorted(os.listdir(runner.path)) == before and
                     (runner.path / "s.wav").read_bytes() == b"old output", os.listdir(runner.path))
    process = subprocess.Popen([str(runner.program), "hi " * 2000, "-o", "-", "--seed", "7"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(100)
    process.stdout.close()
    complaint = process.stderr.read().decode()
    process.wait(timeout=20)
    runner.check("a lost reader: dies by SIGPIPE", process.returncode == -signal.SIGPIPE, process.returncode)
    runner.check("a lost reader: no message", "error" not in complaint and "wrote" not in complaint, complaint)


def terminal(runner):
    master, slave = pty.openpty()
    process = subprocess.Popen([str(runner.program), "hi", "-o", "x.wav", "-n", "30", "--seed", "7"], cwd=runner.path,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    process.wait()
    os.close(master)
    runner.check("a bar on a terminal", b"\r[" in shown and b" s audio, RTF " in shown and b"\x1b[K" in shown, shown)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--say", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--time-scale", type=float, default=1)
    arguments = parser.parse_args()
    tool_process.time_scale = arguments.time_scale
    tally = Tally()
    for group in [streams_and_lists, refusals, text_with_a_dash, environment, models, verified, devices, verbosity,
                  json_documents, texts, outputs, cut_and_repeated, signals, terminal]:
        runner = SayRunner(arguments.say, tally)
        group(*[runner, arguments.model][:group.__code__.co_argcount])
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
