#!/usr/bin/env python3
"""Reads what the steps of gpu_gate.sh left in a folder and writes report.json and report.md there.

Usage: scripts/gpu_report.py FOLDER COMMIT
"""
import datetime
import json
import pathlib
import re
import sys

TAIL_LINES = 12


def text(path):
    return path.read_text(errors="replace") if path.is_file() else ""


def document(path):
    try:
        return json.loads(text(path))
    except ValueError:
        return None


def messages(output):
    """The figures that doctest's MESSAGE lines carry."""
    return re.findall(r"MESSAGE: (.*)", output)


def read(folder, commit):
    steps = []
    for line in text(folder / "steps.txt").splitlines():
        name, status, seconds = line.split()
        steps.append({"step": name, "exit_status": int(status), "seconds": float(seconds)})
    return {
        "schema": "drama3-gpu-gate/2",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
        "clocks": {when: text(folder / f"clocks_{when}.txt").strip() for when in ("before", "after")},
        "steps": steps,
        "tests": messages(text(folder / "tests.txt")),
        "layers": messages(text(folder / "layers.txt")),
        "oracle": document(folder / "oracle.json"),
        "ops": document(folder / "ops.json"),
        "frames": document(folder / "frames.txt"),
        "frames_without_overlap": document(folder / "frames_without_overlap.txt"),
        "torch": document(folder / "torch.txt"),
        "load": [line for line in text(folder / "load.txt").splitlines() if line.startswith("|") or " GB in " in line],
    }


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def oracle_lines(name, oracle):
    """One line for what passed, one for each comparison that did not."""
    rows = oracle.get("results") or []
    missed = [row for row in rows if not row.get("passed", True)]
    lines = [f"{name}: {len(rows) - len(missed)} of {len(rows)} comparisons passed."]
    return lines + [f"- missed: {json.dumps(row)[:400]}" for row in missed] + [""]


def frame_lines(frames):
    lines = [", ".join(f"{key} {value}" for key, value in frames.items() if not isinstance(value, (list, dict))), ""]
    for name, figures in frames.items():
        if isinstance(figures, dict):
            lines += [f"- {name}: " + ", ".join(f"{key} {value}" for key, value in figures.items())]
    lines += [""]
    if frames.get("stages"):
        heads = list(dict.fromkeys(key for stage in frames["stages"] for key in stage))
        lines += table(heads, [[stage.get(key, "") for key in heads] for stage in frames["stages"]])
    return lines


def torch_lines(torch, frames):
    lines = ["PyTorch: " + ", ".join(f"{key} {value}" for key, value in torch.items()), ""]
    ours = [stage["us"] for stage in (frames or {}).get("stages", []) if stage["stage"] == "backbone row"]
    for key in ("row_eager_ms", "row_graph_ms"):
        if ours and torch.get(key):
            lines.append(f"- {key} / backbone row of drama3: {torch[key] * 1e3 / ours[0]:.1f}")
    if frames and frames.get("prompt_150_ms") and torch.get("prompt_150_ms"):
        ratio = torch["prompt_150_ms"] / frames["prompt_150_ms"]
        lines.append(f"- prompt_150_ms / prompt of drama3 with its tower: {ratio:.1f}")
    return lines + [""]


def markdown(report, folder):
    lines = [f"# GPU gate, {report['date']}, commit {report['commit']}", ""]
    lines += [f"Clocks {when} the benchmark: {value}" for when, value in report["clocks"].items() if value] + [""]
    lines += table(("step", "exit status", "seconds"), [step.values() for step in report["steps"]])
    for step in report["steps"]:
        if step["exit_status"] != 0:
            output = text(folder / f"{step['step']}.txt") + text(folder / f"{step['step']}.err")
            lines += [f"{step['step']} ends with:", "```", *output.splitlines()[-TAIL_LINES:], "```", ""]
    for name in ("tests", "layers"):
        if report[name]:
            lines += [f"What {name} say:", *[f"- {line}" for line in report[name]], ""]
    for name in ("oracle", "ops"):
        if report[name]:
            lines += oracle_lines(name, report[name])
    for name in ("frames", "frames_without_overlap"):
        if report[name]:
            lines += [f"## {name.replace('_', ' ')}", "", *frame_lines(report[name])]
    if report["torch"]:
        lines += torch_lines(report["torch"], report["frames"])
    if report["load"]:
        lines += ["## load", "", *report["load"]]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(f"gpu_report: error: expected a folder and a commit, got {len(sys.argv) - 1} arguments")
    folder = pathlib.Path(sys.argv[1])
    report = read(folder, sys.argv[2])
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "report.md").write_text(markdown(report, folder))


if __name__ == "__main__":
    main()
