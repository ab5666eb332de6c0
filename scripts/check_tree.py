#!/usr/bin/env python3
"""Checks of the source tree that a compiler does not make: include arrows, first lines, sizes, words that do not merge.

Usage: scripts/check_tree.py   prints one line per fault and "N passed, N failed"; exits 1 when one failed.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the files of each part may include of ours; a part may always include itself. Data runs down the list.
ALLOWED = {
    "lib/base": [],
    "lib/tensor": ["lib/base"],
    "lib/ops": ["lib/base", "lib/tensor"],
    "lib/store": ["lib/base", "lib/tensor"],
    "lib/text": ["lib/base", "lib/tensor"],
    "lib/audio": ["lib/base", "lib/tensor"],
    "lib/backbone": ["lib/base", "lib/tensor", "lib/ops"],
    "lib/tower": ["lib/base", "lib/tensor", "lib/ops"],
    "lib/codec": ["lib/base", "lib/tensor", "lib/ops"],
    "lib/engine": ["lib"],
    "kernels/host": ["lib/base", "lib/tensor", "lib/ops"],
    "kernels/ref": ["lib/base", "lib/tensor", "lib/ops", "kernels/host"],
    "kernels/cpu": ["lib/base", "lib/tensor", "lib/ops", "kernels/host"],
    "kernels/cuda": ["lib/base", "lib/tensor", "lib/ops", "kernels/host"],
    "apps": ["lib"],
}
# The only file above the kernels that knows the backends.
BACKENDS = {"lib/engine/backend.cc": ["kernels"]}
GENERATED = ("drama3/",)
MOST_LINES = 500
# Files over the limit, each with its reason.
LONG_FILES = {}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|not implemented)\b")


def tracked(*patterns):
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, capture_output=True,
                           text=True, check=True)
    return [name for name in files.stdout.split("\n") if name and (ROOT / name).is_file()]


def part_of(name):
    matches = [part for part in ALLOWED if name.startswith(part + "/")]
    return max(matches, key=len) if matches else None


def include_faults(name, text):
    part = part_of(name)
    if part is None:
        return
    allowed = [part, *ALLOWED[part], *BACKENDS.get(name, [])]
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match or match[1].startswith(GENERATED):
            continue
        if not any(match[1].startswith(prefix + "/") for prefix in allowed):
            yield f"{name}:{number}: include of {match[1]} goes against the arrows; {part} may include {', '.join(allowed)}"


def shape_faults(name, text):
    lines = text.split("\n")
    first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    if not first.startswith(("// ", "# ", '"""')):
        yield f"{name}:1: expected one sentence that says what the file holds, got {first[:40]!r}"
    if len(lines) > MOST_LINES and name not in LONG_FILES:
        yield f"{name}: expected at most {MOST_LINES} lines, got {len(lines)}"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line) and name != "scripts/check_tree.py":
            yield f"{name}:{number}: unfinished work: {line.strip()[:60]}"


def device_faults(name, text):
    if name.startswith("lib/") and name != "lib/engine/backend.cc" and re.search(r"#\s*if.*DRAMA3_.*CUDA", text):
        yield f"{name}: the build switch of CUDA stands in lib/engine/backend.cc and CMake only"


def main():
    files = tracked("*.h", "*.cc", "*.cu", "*.cuh", "*.py", "*.sh")
    faults = []
    for name in files:
        text = (ROOT / name).read_text(encoding="utf-8")
        for check in (include_faults, shape_faults, device_faults):
            faults += check(name, text)
    for fault in faults:
        print(fault)
    failed = {fault.split(":")[0] for fault in faults}
    print(f"{len(files) - len(failed)} passed, {len(failed)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
