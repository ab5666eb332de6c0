"""The checks of scripts/check_tree.py pass on this tree and fail on sources that break each rule."""
import importlib.util
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_tree.py"
spec = importlib.util.spec_from_file_location("check_tree", SCRIPT)
check_tree = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_tree)

BROKEN = [
    ("include_faults", "lib/tensor/view.h", '// A view.\n#include "lib/ops/ops.h"\n'),
    ("include_faults", "lib/tower/tower.h", '// A tower.\n#include "lib/backbone/state.h"\n'),
    ("include_faults", "kernels/cpu/norm.cc", '// A norm.\n#include "kernels/ref/dot.h"\n'),
    ("include_faults", "lib/engine/engine.cc", '// An engine.\n#include "kernels/cpu/cpu_ops.h"\n'),
    ("shape_faults", "lib/base/x.h", "#pragma once\n"),
    ("shape_faults", "lib/base/x.h", "// Long.\n" + "\n" * 500),
    ("shape_faults", "lib/base/x.h", "// Unfinished.\n// " + "TO" + "DO later\n"),
    ("device_faults", "lib/engine/model.cc", "// A model.\n#ifdef DRAMA3_WITH_CUDA\n"),
]
SOUND = [
    ("include_faults", "lib/engine/backend.cc", '// Backends.\n#include "kernels/cpu/cpu_ops.h"\n'),
    ("include_faults", "lib/tower/tower.h", '// A tower.\n#include "lib/ops/ops.h"\n#include <vector>\n'),
]

failed = 0
for check, name, text in BROKEN:
    if not list(getattr(check_tree, check)(name, text)):
        print(f"not refused: {check} {name} {text[:40]!r}")
        failed += 1
for check, name, text in SOUND:
    if list(getattr(check_tree, check)(name, text)):
        print(f"refused: {check} {name} {text[:40]!r}")
        failed += 1
if subprocess.run([sys.executable, SCRIPT]).returncode != 0:
    failed += 1
total = len(BROKEN) + len(SOUND) + 1
print(f"{total - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
