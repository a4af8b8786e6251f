#!/usr/bin/env bash
# Gets what `make rtl` needs beside Rust: Verilator, a C++ compiler, and Python for its check of frames. Prints
# nothing when all are there.
set -euo pipefail

# need PROGRAM PACKAGE
need() {
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup-rtl: installing $2"
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "$2"
  else
    echo "setup-rtl: $1 is missing; as root: apt-get install $2" >&2
    exit 1
  fi
}

need verilator verilator
need c++ g++
need python3 python3
