#!/usr/bin/env python3
"""Fails unless the test that promises to launch every kernel does so, on fibers of the host.

Usage: kernels_covered.py TEST_CUDA_EMULATED
"""
import os
import re
import subprocess
import sys
import tempfile


def kernels(program):
    """Address -> name, without template arguments, of every kernel that the program holds."""
    symbols = subprocess.run(["nm", "--defined-only", "-C", program], capture_output=True, text=True, check=True).stdout
    found, begin = {}, None
    for line in symbols.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if name == "__executable_start":
            begin = int(address, 16)
        match = re.search(r"\b(\w+_kernel)\b", name) if kind in "tTwW" else None
        if match:
            found[int(address, 16)] = match[1]
    return {address - begin: name for address, name in found.items()}


def main():
    if len(sys.argv) != 2:
        sys.exit(f"kernels_covered: error: expected one program, got {len(sys.argv) - 1} arguments")
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "launched")
        subprocess.run([program, "-tc=*every kernel*"], check=True, env={**os.environ, "DRAMA3_LAUNCHED_KERNELS": path})
        with open(path) as file:
            launched = {int(line, 16) for line in file}
    known = kernels(program)
    names = {known[address] for address in launched if address in known}
    missing = set(known.values()) - names
    print(f"{len(names)} kernels launched; not launched: {', '.join(sorted(missing)) or 'none'}")
    if not names or missing:
        sys.exit(1)


if __name__ == "__main__":
    main()
