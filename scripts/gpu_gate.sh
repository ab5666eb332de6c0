#!/usr/bin/env bash
# Everything that needs a GPU, in one command: builds (or takes a folder of built programs), runs the CUDA tests, the
# oracle on the golden data, compute-sanitizer on the tiny model and the full-size frame benchmark, and writes
# report.json and report.md.
# Usage: scripts/gpu_gate.sh [--bundle FOLDER] [--out FOLDER]
#   A bundle holds test_cuda, cuda_frame_bench and drama3-oracle, and lib/ with the libraries they need.
set -u
cd "$(dirname "$0")/.."

bundle=""
out="build/gpu_gate"
while [ $# -gt 0 ]; do
  case "$1" in
    --bundle) bundle="$2"; shift 2 ;;
    --out) out="$2"; shift 2 ;;
    *) echo "gpu_gate: error: expected --bundle FOLDER or --out FOLDER, got $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"

if [ -z "$bundle" ]; then
  cmake -S . -B build/gpu -DCMAKE_BUILD_TYPE=Release -DDRAMA3_CUDA=ON || exit 1
  cmake --build build/gpu --parallel "$(nproc)" --target test_cuda cuda_frame_bench drama3-oracle || exit 1
  tests=build/gpu/tests/cuda/test_cuda
  bench=build/gpu/tests/cuda/cuda_frame_bench
  oracle=build/gpu/apps/drama3-oracle
else
  export LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  tests=$bundle/test_cuda
  bench=$bundle/cuda_frame_bench
  oracle=$bundle/drama3-oracle
fi
export DRAMA3_GOLDEN="$PWD/tests/data/golden"

rows=""
failed=0
# Runs a step under a time limit, keeps its output, and notes its outcome.
step() {
  local name=$1 limit=$2 begin end code
  shift 2
  begin=$(date +%s.%N)
  timeout "$limit" "$@" >"$out/$name.txt" 2>&1
  code=$?
  end=$(date +%s.%N)
  [ "$code" -eq 0 ] || failed=$((failed + 1))
  rows="$rows$name $code $(awk "BEGIN { printf \"%.1f\", $end - $begin }")
"
  echo "$name: exit status $code"
}

step tests 300 "$tests"
step oracle 300 "$oracle" --reference "$DRAMA3_GOLDEN" --model "$DRAMA3_GOLDEN/tiny" --device cuda \
  --json "$out/oracle.json"
if command -v compute-sanitizer >/dev/null; then
  step memcheck 600 compute-sanitizer --tool memcheck --error-exitcode 9 "$tests"
  step racecheck 1200 compute-sanitizer --tool racecheck --error-exitcode 9 "$tests" \
    -tc="*layer fed*,*codec meets*,*ties*"
else
  echo "memcheck, racecheck: skipped, compute-sanitizer is not installed"
fi
step frames 300 "$bench"
step frames_without_overlap 300 "$bench" --no-overlap

commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
ROWS="$rows" OUT="$out" COMMIT="$commit" python3 - <<'PYTHON'
import datetime, json, os

out = os.environ["OUT"]
steps = [dict(zip(("step", "exit_status", "seconds"), line.split())) for line in os.environ["ROWS"].splitlines()]


def document(name):
    try:
        with open(os.path.join(out, name)) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


report = {
    "schema": "drama3-gpu-gate/1",
    "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    "commit": os.environ["COMMIT"],
    "steps": steps,
    "frames": document("frames.txt"),
    "frames_without_overlap": document("frames_without_overlap.txt"),
    "oracle": document("oracle.json"),
}
with open(os.path.join(out, "report.json"), "w") as file:
    json.dump(report, file, indent=1)
with open(os.path.join(out, "report.md"), "w") as file:
    file.write(f"# GPU gate, {report['date']}, commit {report['commit']}\n\n| step | exit status | seconds |\n|---|---|---|\n")
    for step in steps:
        file.write(f"| {step['step']} | {step['exit_status']} | {step['seconds']} |\n")
    frames = report["frames"]
    if frames and "frame_ms" in frames:
        file.write(f"\n{frames['device']}, driver {frames['driver']}: frame {frames['frame_ms']['median']} ms median, "
                   f"RTF {frames['rtf']}, {frames['launches_per_frame']} launches a frame.\n\n"
                   "| stage | us | MB | GB/s | share of the large projection | launches |\n|---|---|---|---|---|---|\n")
        for stage in frames["stages"]:
            file.write("| " + " | ".join(str(stage.get(key, "")) for key in ("stage", "us", "mb", "gb_s", "share",
                                                                            "launches")) + " |\n")
PYTHON
echo "$out/report.md and $out/report.json are written; $failed steps failed"
[ "$failed" -eq 0 ]
