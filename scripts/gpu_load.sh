#!/usr/bin/env bash
# Measures the loading of a synthetic checkpoint onto a GPU: from memory (tmpfs) and from a disk, each beside plain
# reads of the same files by as many threads.
# Usage: scripts/gpu_load.sh PROGRAMS [MEMORY_FOLDER DISK_FOLDER]
#   PROGRAMS holds make_synthetic and cuda_load_bench. LAYERS (40) and DISK_LAYERS (40) are the backbone layers of the two
#   checkpoints: 41 GB at 40, about 1 GB less a layer. A folder given as "" is left out. Checkpoints are removed.
set -u
cd "$(dirname "$0")/.."
[ $# -ge 1 ] || { echo "gpu_load: error: expected the folder of the programs, got nothing" >&2; exit 2; }
programs=$1
failed=0

# Writes a checkpoint into a folder and loads it from there.
measure() {
  local folder=$1/drama3-synthetic layers=$2
  df -h "$1"
  if "$programs/make_synthetic" "$folder" --layers "$layers" --tokenizer tests/data/golden/tiny/tokenizer.json; then
    timeout "${LIMIT:-400}" "$programs/cuda_load_bench" "$folder" || failed=$((failed + 1))
  else
    failed=$((failed + 1))
  fi
  rm -rf "$folder"
}

[ -z "${2-/dev/shm}" ] || measure "${2-/dev/shm}" "${LAYERS:-40}"
[ -z "${3-/var/tmp}" ] || measure "${3-/var/tmp}" "${DISK_LAYERS:-40}"
[ "$failed" -eq 0 ]
