#!/usr/bin/env bash
# Everything that needs a GPU, in one command of at most eight minutes once the programs are there: builds them (or
# takes a bundle of scripts/gpu_bundle.sh), runs the CUDA tests, the oracle on the golden data, drama3-say, layers of full
# size, the frame benchmark, PyTorch beside it, compute-sanitizer and the load benchmark, and writes report.json and report.md.
# Usage: scripts/gpu_gate.sh [--bundle FILE.tar.gz|FOLDER] [--out FOLDER] [--only STEP,STEP,...] [--seconds N]
set -u
cd "$(dirname "$0")/.."

bundle=""
out="build/gpu_gate"
only=""
seconds=470
while [ $# -gt 0 ]; do
  case "$1" in
    --bundle | --out | --only | --seconds)
      [ $# -ge 2 ] || { echo "gpu_gate: error: $1: expected a value, got none" >&2; exit 2; }
      declare "${1#--}=$2"; shift 2 ;;
    *) echo "gpu_gate: error: expected --bundle, --out, --only or --seconds, got $1" >&2; exit 2 ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)

if [ -z "$bundle" ]; then
  cmake -S . -B build/gpu -DCMAKE_BUILD_TYPE=Release -DDRAMA3_CUDA=ON || exit 1
  cmake --build build/gpu --parallel "$(nproc)" \
    --target test_cuda cuda_frame_bench cuda_load_bench make_synthetic drama3-oracle drama3-say || exit 1
  bundle=build/gpu/programs
  mkdir -p "$bundle"
  for program in tests/cuda/{test_cuda,cuda_frame_bench,cuda_load_bench} tests/synthetic/make_synthetic \
    apps/drama3-oracle apps/drama3-say; do
    ln -sf "$PWD/build/gpu/$program" "$bundle/"
  done
  git describe --always --dirty --abbrev=12 >"$bundle/commit" 2>/dev/null || echo unknown >"$bundle/commit"
elif [ -f "$bundle" ]; then
  mkdir -p build/gpu_bundle && tar -xzf "$bundle" -C build/gpu_bundle || exit 1
  bundle=build/gpu_bundle
fi
tests=$bundle/test_cuda
bench=$bundle/cuda_frame_bench
oracle=$bundle/drama3-oracle
commit=$(cat "$bundle/commit" 2>/dev/null || echo unknown)
export DRAMA3_GOLDEN="$PWD/tests/data/golden"

readonly last_second=$((SECONDS + seconds))
: >"$out/steps.txt"
failed=0
# Runs a step under a time limit, keeps its output, and notes its outcome; what the total leaves no time for failed.
step() {
  local name=$1 limit=$2 left=$((last_second - SECONDS)) begin code
  shift 2
  case ",${only:-$name}," in *",$name,"*) ;; *) return ;; esac
  [ "$limit" -le "$left" ] || limit=$left
  begin=$(date +%s.%N)
  if [ "$limit" -gt 0 ]; then
    timeout --kill-after=5 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    code=$?
  else
    echo "no time was left" >"$out/$name.err"
    code=124
  fi
  [ "$code" -eq 0 ] || failed=$((failed + 1))
  echo "$name $code $(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $begin }")" | tee -a "$out/steps.txt"
}

clocks=(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader)

step tests 120 "$tests" -tce="*full size*"
step oracle 60 "$oracle" --reference "$DRAMA3_GOLDEN" --model "$DRAMA3_GOLDEN/tiny" --device cuda \
  --json "$out/oracle.json"
step say 40 python3 tests/cuda/say_test.py "$bundle/drama3-say" "$bundle/drama3-say" corpus/voice-mini
step record_ops 20 "$oracle" --reference "$DRAMA3_GOLDEN" --model "$DRAMA3_GOLDEN/tiny" --device ref \
  --stage tokenizer --dump "$out/recorded_ops"
step ops 20 "$oracle" --reference "$out/recorded_ops" --model "$DRAMA3_GOLDEN/tiny" --device cuda --op all \
  --json "$out/ops.json"
step clocks_before 10 "${clocks[@]}"
step frames 90 "$bench"
if python3 -c "import torch" 2>/dev/null; then
  HF_HUB_OFFLINE=1 step torch 100 python3 bench/peers/backbone_torch.py
fi
step clocks_after 10 "${clocks[@]}"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    step "$tool" 100 compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" -tc="*every kernel*"
  done
fi

step layers 150 "$tests" -tc="*full size*"
step frames_without_overlap 60 "$bench" --no-overlap

# A part of the full size: 10 GB in memory, 4 GB on the disk.
step load 100 env LAYERS=8 DISK_LAYERS=2 bash scripts/gpu_load.sh "$bundle"

python3 scripts/gpu_report.py "$out" "$commit" || failed=$((failed + 1))
cat "$out/report.md"
echo "$out/report.md and $out/report.json are written; $failed steps failed"
[ "$failed" -eq 0 ]
