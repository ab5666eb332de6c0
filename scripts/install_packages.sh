#!/bin/sh
# Installs what building and testing need from the distribution's packages (Debian, Ubuntu); skips what is there.
set -eu

needed="cmake g++ ninja-build pkg-config git ca-certificates python3 libcli11-dev libsndfile1-dev
  nlohmann-json3-dev doctest-dev libhwy-dev libpcre2-dev libutf8proc-dev libzip-dev libssl-dev libbenchmark-dev"
wanted="clang-format-14 ccache"

is_installed() {
  dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install_packages: error: expected apt-get (Debian 12, Ubuntu 24.04 or newer), got none; install the" \
    "equivalents of:" $needed >&2
  exit 1
fi

missing=""
for package in $needed; do
  is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install_packages: error: expected root or sudo, got neither; run as" \
    "root: apt-get install$missing" >&2; exit 1; }
  as_root="sudo"
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update
for package in $wanted; do
  if ! is_installed "$package" && apt-cache show "$package" >/dev/null 2>&1; then missing="$missing $package"; fi
done
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
