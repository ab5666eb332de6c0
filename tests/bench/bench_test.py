"""The drama3-bench program on the tiny random checkpoint: exit codes, documents, baselines, threads, ranks."""
import argparse
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import wave

ITEMS = [("cut-01", "Hello.", 3, 14), ("cut-02", "A second text, a little longer.", 4, 9),
         ("cut-03", "And a third one.", 5, 16), ("cut-04", "The last of four.", 6, 13)]


def corpus_text(finish="length", items=ITEMS):
    """A corpus of capped items: the random checkpoint never ends by itself."""
    return json.dumps({"schema": "drama3-corpus/1", "items": [
        {"id": name, "category": "cut", "text": text, "settings": {"temperature": 0.8}, "seed": seed,
         "max_frames": frames, "finish_reason": finish} for name, text, seed, frames in items]})


QUICK = ["test_document_and_gates", "test_errors"]


class Bench:
    def __init__(self, arguments, folder):
        self.program, self.model, self.mpirun = arguments.program, arguments.model, arguments.mpirun
        self.folder = folder
        self.corpus = folder / "corpus.json"
        self.corpus.write_text(corpus_text())

    def command(self, *extra, corpus=None):
        return [self.program, f"--corpus={corpus or self.corpus}", "-m", self.model, "--device", "cpu", *extra]

    def run(self, *extra, corpus=None, environment=None, prefix=()):
        return subprocess.run([*prefix, *self.command(*extra, corpus=corpus)], capture_output=True, text=True,
                              env={**os.environ, **(environment or {})}, timeout=300)

    def document(self, *extra, **named):
        result = self.run("--json", "-", *extra, **named)
        assert result.returncode == 0, f"expected exit 0, got {result.returncode}: {result.stdout}{result.stderr}"
        return json.loads(result.stdout)

    def digests(self, *extra, **named):
        return {row["id"]: row["sha256"] for row in self.document(*extra, **named)["results"]}

    def ranks(self, count):
        return [self.mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(count)]


def test_document_and_gates(bench):
    document = bench.document()
    assert document["schema"] == "drama3-bench/1" and next(iter(document)) == "schema"
    assert document["totals"]["requests"] == 8 and document["totals"]["valid_requests"] == 8
    gates = {gate["name"]: gate for gate in document["gates"]}
    assert gates["capped-exactly"]["checked"] == 8
    assert all(gate["failed"] == 0 for gate in gates.values()), gates
    assert [row["frames"] for row in document["results"]] == [frames for _, _, _, frames in ITEMS]
    for row in document["results"]:
        assert row["valid"] and row["finish_reason"] == "length" and len(row["samples"]["compute_seconds"]) == 2


def test_table_alone_on_standard_output(bench):
    result = bench.run("--filter", "cut-0[12]")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("| request"), result.stdout
    assert re.search(r"\n\d+ passed, 0 failed, 2 not checked\n\Z", result.stdout), result.stdout
    assert "rule: " in result.stderr and "load average" in result.stderr


def test_same_digests_whatever_threads_and_instruction_set(bench):
    usual = bench.digests("-t", "1", "--passes", "1", "--warmup", "0")
    assert bench.digests("-t", "2", "--passes", "1") == usual
    assert bench.digests("--passes", "1", environment={"DRAMA3_CPU": "avx2"}) == usual
    # Few frames: three threads may be more than the machine has, and the scalar path is slow.
    brief = bench.folder / "brief.json"
    brief.write_text(corpus_text(items=[("brief", "Hi.", 8, 3)]))
    usual = bench.digests("--passes", "1", corpus=brief)
    assert bench.digests("-t", "3", "--passes", "1", corpus=brief) == usual
    assert bench.digests("--passes", "1", corpus=brief, environment={"DRAMA3_CPU": "scalar"}) == usual


def test_digest_is_of_the_saved_samples(bench):
    saved = bench.folder / "saved"
    digests = bench.digests("--save", str(saved))
    for name, digest in digests.items():
        with wave.open(str(saved / f"{name}.wav")) as audio:
            samples = audio.readframes(audio.getnframes())
        assert hashlib.sha256(samples).hexdigest() == digest, name


def test_a_failed_gate_is_exit_4_and_invalid(bench):
    endless = bench.folder / "endless.json"
    endless.write_text(corpus_text("stop"))
    result = bench.run("--filter", "cut-01", corpus=endless)
    assert result.returncode == 4, result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith("| cut-01"))
    assert "INVALID" in row and "ends-by-itself failed" in row and "±" not in row, row
    ceiling = bench.run("--max-rtf", "0.000001", "--filter", "cut-01")
    assert ceiling.returncode == 4 and "rtf-ceiling" in ceiling.stdout and "INVALID" not in ceiling.stdout


def test_baseline_is_recorded_only_when_asked_and_compared_after(bench):
    baselines = bench.folder / "baselines"
    assert not baselines.exists()
    assert bench.run("--update-baseline", "--passes", "1").returncode == 0
    (file,) = baselines.iterdir()
    before = file.read_text()
    document = bench.document("--passes", "1")
    assert next(g for g in document["gates"] if g["name"] == "baseline")["checked"] == 5
    assert file.read_text() == before
    recorded = json.loads(before)
    recorded["items"]["cut-02"]["sha256"] = "0" * 64
    file.write_text(json.dumps(recorded))
    result = bench.run("--passes", "1")
    assert result.returncode == 4 and "| cut-02" in result.stdout and "baseline failed" in result.stdout
    endless = bench.folder / "endless.json"
    endless.write_text(corpus_text("stop"))
    tampered = file.read_text()
    refused = bench.run("--update-baseline", "--passes", "1", corpus=endless)
    assert refused.returncode == 4 and file.read_text() == tampered, refused.stderr
    absent = bench.run("--baseline", str(bench.folder / "none.json"), "--passes", "1")
    assert absent.returncode == 1 and "--update-baseline" in absent.stderr, absent.stderr


def test_reports(bench):
    page, text = bench.folder / "report.html", bench.folder / "report.md"
    result = bench.run("--report", str(page), "--report", str(text), "--show", "cut-01", "--filter", "cut-0[12]")
    assert result.returncode == 0, result.stderr
    html = page.read_text()
    assert html.startswith("<!DOCTYPE html>") and html.count("<svg") == 4 and "data:image/bmp" in html
    assert not re.search(r"https?:|<script|<link|src=|@import", html)
    assert "## Gates" in text.read_text()


def test_errors(bench):
    for arguments, code in ((("--report", "x.pdf"), 2), (("--passes", "0"), 2), (("--filter", "none"), 1),
                            (("--report", "/nonexistent/x.md"), 1), (("--device", "cuda:77"), 1)):
        result = bench.run(*arguments) if arguments[0] != "--device" else subprocess.run(
            [bench.program, "--corpus", "-m", bench.model, *arguments], capture_output=True, text=True)
        assert result.returncode == code and result.stderr.count("error: ") == 1, (arguments, result)
        assert result.stdout == ""


def test_ranks_give_one_report_with_the_same_digests(bench):
    usual = bench.digests()
    document = bench.document(prefix=bench.ranks(2))
    assert {row["id"]: row["sha256"] for row in document["results"]} == usual
    assert document["context"]["processes"] == 2 and document["totals"]["requests"] == 8
    assert next(g for g in document["gates"] if g["name"] == "stream-first")["checked"] == 2


def test_a_rank_that_dies_is_named_and_the_run_fails(bench):
    process = subprocess.Popen([*bench.ranks(2), *bench.command("-v", "--passes", "100")], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seen = ""
    for line in process.stdout:
        seen += line
        found = re.search(r"rank 1 of 2: process (\d+)", line)
        if found:
            break
    time.sleep(0.5)
    os.kill(int(found.group(1)), signal.SIGKILL)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    assert re.search(r"process rank 1\b.*signal 9", rest), rest


def test_a_rank_that_fails_is_named(bench):
    # mpirun can give each rank its own environment: rank 1 gets a model that is not there.
    result = subprocess.run(
        [*bench.ranks(1), bench.program, f"--corpus={bench.corpus}", "-m", bench.model, "--device", "cpu", ":", "-n",
         "1", bench.program, f"--corpus={bench.corpus}", "-m", "/nonexistent", "--device", "cpu"],
        capture_output=True, text=True, timeout=300)
    assert result.returncode == 1, result
    assert "error: rank 1: " in result.stderr and "/nonexistent" in result.stderr, result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--mpirun", default="", help="mpirun of a build with MPI")
    parser.add_argument("--quick", action="store_true", help="a few tests with a quarter of the frames, for slow builds")
    arguments = parser.parse_args()
    if arguments.quick:
        ITEMS[:] = [(name, text, seed, frames // 4) for name, text, seed, frames in ITEMS]
    passed = failed = skipped = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        if ("rank" in name and not arguments.mpirun) or (arguments.quick and name not in QUICK):
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(Bench(arguments, pathlib.Path(folder)))
                passed += 1
            except Exception as error:  # every kind of failure counts, and the others still run
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped (build without MPI, or --quick)")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
