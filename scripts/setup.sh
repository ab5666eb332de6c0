#!/bin/sh
# From a bare Debian or Ubuntu machine to a spoken sentence: installs packages, builds, writes hello.wav.
set -eu
cd "$(dirname "$0")/.."

sh scripts/install_packages.sh
# Without a GPU the CUDA backend would only take time to build.
cuda=OFF
if nvidia-smi -L >/dev/null 2>&1; then cuda=AUTO; fi
cmake --preset release -DDRAMA3_CUDA=$cuda
cmake --build --preset release --parallel "$(nproc)"
build/release/apps/drama3-say "Hello, world!" -o hello.wav
echo "hello.wav is written; now try: build/release/apps/drama3-say --help"
