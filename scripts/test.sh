#!/usr/bin/env bash
# Every check, from a bare machine: packages, formatting, all tests in release (with CUDA compiled where nvcc is),
# and under the sanitizers (whole-program scripts with --quick, less of the same). Closes with "N passed, N failed" over all tests and steps.
# Usage: scripts/test.sh [--all-architectures] [format|release|asan-ubsan|tsan]...  (default: format release asan-ubsan)
set -u
cd "$(dirname "$0")/.."

# A compiler cache, where there is one, makes the second run of the day short.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi

passed=0
failed=0
cuda_architectures=90-real

# Counts a step's outcome and names it.
record() {
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi
}

check_format() {
  local formatter
  formatter=$(command -v clang-format-14 || command -v clang-format || true)
  if [ -z "$formatter" ] || ! "$formatter" --version | grep -q "version 14"; then
    echo "test: note: no clang-format 14 here; the formatting is not checked"
    return 0
  fi
  git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs "$formatter" --dry-run --Werror
}

# Compiles the CUDA backend too where there is an nvcc: it needs no GPU for that.
cuda_options() {
  if [ "$1" = release ] && { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null 2>&1; then
    echo "-DDRAMA3_CUDA=ON"
    [ "$cuda_architectures" = all ] || echo "-DCMAKE_CUDA_ARCHITECTURES=$cuda_architectures"
  else
    echo "-DDRAMA3_CUDA=OFF"
  fi
}

run_preset() {
  local log="build/$1/ctest.log" result
  # shellcheck disable=SC2046
  cmake --preset "$1" $(cuda_options "$1") && cmake --build --preset "$1" --parallel "$(nproc)"
  result=$?
  record "$1: build" $result
  [ $result -eq 0 ] || return
  ctest --preset "$1" --parallel "$(nproc)" 2>&1 | tee "$log"
  # "95% tests passed, 1 tests failed out of 20"
  local bad total
  read -r bad total < <(sed -nE 's/.* ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/p' "$log" | tail -1)
  if [ -z "${total:-}" ]; then record "$1: ctest" 1; return; fi
  passed=$((passed + total - bad))
  failed=$((failed + bad))
}

checks=()
for argument in "$@"; do
  case $argument in
    --all-architectures) cuda_architectures=all ;;
    format | release | asan-ubsan | tsan) checks+=("$argument") ;;
    *) echo "test: error: expected --all-architectures, format, release, asan-ubsan or tsan, got '$argument'" >&2; exit 2 ;;
  esac
done
[ ${#checks[@]} -gt 0 ] || checks=(format release asan-ubsan)

sh scripts/install_packages.sh
record "packages" $?
for check in "${checks[@]}"; do
  echo "== $check"
  if [ "$check" = format ]; then check_format; record format $?; else run_preset "$check"; fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
