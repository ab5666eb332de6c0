#!/usr/bin/env bash
# Builds the CUDA programs that gpu_gate.sh runs and packs them, stripped, with the libraries they need, for
# a machine that has a GPU but not this project's packages.
# Usage: scripts/gpu_bundle.sh FILE.tar.gz
#   CUDAARCHS chooses the architectures (default 90-real). On the other machine, in a checkout:
#   scripts/gpu_gate.sh --bundle FILE.tar.gz
set -euo pipefail
[ $# -eq 1 ] || { echo "gpu_bundle: error: expected one FILE.tar.gz, got $# arguments" >&2; exit 2; }
archive=$(realpath -m "$1")
cd "$(dirname "$0")/.."

programs="tests/cuda/test_cuda tests/cuda/cuda_frame_bench tests/cuda/cuda_load_bench tests/synthetic/make_synthetic
  apps/drama3-oracle apps/drama3-say"

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1
fi
# The path is stored in the programs, not set in the environment, so that nothing else there loads these libraries;
# the old kind of it also serves what the libraries need themselves.
export LDFLAGS="${LDFLAGS:-} -Wl,--disable-new-dtags"
# shellcheck disable=SC2016
cmake -S . -B build/bundle -G Ninja -DCMAKE_BUILD_TYPE=Release -DDRAMA3_CUDA=ON \
  "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS:-90-real}" '-DCMAKE_BUILD_RPATH=$ORIGIN/lib'
# shellcheck disable=SC2046,SC2086
cmake --build build/bundle --parallel "$(nproc)" --target $(basename -a $programs)

stage=build/bundle/stage
rm -rf "$stage"
mkdir -p "$stage/lib" "$(dirname "$archive")"
for program in $programs; do
  strip -o "$stage/$(basename "$program")" "build/bundle/$program"
  # Every machine brings its C and C++ libraries, and the driver's must be its own.
  ldd "build/bundle/$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcuda|libnvidia-[^/]*)\.so' || true
done | sort -u | while read -r library; do
  strip --strip-unneeded -o "$stage/lib/$(basename "$library")" "$library"
done
git describe --always --dirty --abbrev=12 >"$stage/commit" 2>/dev/null || echo unknown >"$stage/commit"
tar -C "$stage" -czf "$archive" .
du -h "$archive"
