#!/bin/sh
# Every check, from a bare machine: packages, formatting, all tests in release and under the sanitizers.
# Usage: scripts/test.sh [format|release|asan-ubsan|tsan]...   (default: format release asan-ubsan)
set -eu
cd "$(dirname "$0")/.."

check_format() {
  formatter=$(command -v clang-format-14 || true)
  if [ -z "$formatter" ]; then
    echo "test: note: no clang-format-14 here; the formatting is not checked"
    return
  fi
  git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs "$formatter" --dry-run --Werror
}

run_preset() {
  cmake --preset "$1"
  cmake --build --preset "$1" --parallel "$(nproc)"
  ctest --preset "$1"
}

sh scripts/install_packages.sh
[ $# -gt 0 ] || set -- format release asan-ubsan
for check in "$@"; do
  echo "== $check"
  case $check in
    format) check_format ;;
    release | asan-ubsan | tsan) run_preset "$check" ;;
    *) echo "test: error: expected format, release, asan-ubsan or tsan, got '$check'" >&2; exit 2 ;;
  esac
done
echo "all checks passed: $*"
