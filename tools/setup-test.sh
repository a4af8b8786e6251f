#!/usr/bin/env bash
# Gets what the tests need beside Rust: OpenSSL, the Chromium that opens the page of figures, Go for the outside checker of histories, tshark for sessions of the
# live target, libfabric, clients of Redis, the clang that compiles for the kernel, Python packages that read records, and rustfmt and clippy.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

"$(dirname "$0")/setup-openssl.sh"

has_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

has_chromium || install_packages "for the page test" chromium fonts-liberation || true
if ! has_chromium; then
  if [ "${RACKWEAVE_REQUIRE_CHROMIUM:-}" = 1 ]; then
    echo "setup-test: the page test is required here and there is no Chromium; install the package 'chromium'" >&2
    exit 1
  fi
  echo "setup-test: SKIPPED: no Chromium, so the page of figures is not opened (as root: apt-get install chromium)"
fi

command -v go >/dev/null || install_packages "for tools/porcupine and tools/ycsb" golang-go || true
command -v go >/dev/null || missing "no Go, so Porcupine judges no histories and YCSB is not run" golang-go

# Headers and a compiler of C, by which a test checks the layouts that crates/fabric declares.
{ [ -e /usr/include/rdma/fabric.h ] && command -v cc >/dev/null; } ||
  install_packages "by which doors access the memory of a JBOF" libfabric-dev gcc libc6-dev || true
[ -e /usr/include/rdma/fabric.h ] || missing "no libfabric, so no JBOF's memory is accessed by it" libfabric-dev

command -v redis-cli >/dev/null || install_packages "clients of the store" redis-tools || true
command -v redis-cli >/dev/null || missing "no clients of Redis, so the store is tested without them" redis-tools

command -v tshark >/dev/null || install_packages "which dissects a session of the live target" tshark || true
command -v tshark >/dev/null ||
  echo "setup-test: SKIPPED: no tshark, so no session of the live target is dissected (as root: apt-get install tshark)"

"$(dirname "$0")/setup-xdp.sh" || missing "no clang, so the switch's data path in the kernel is not tested" clang

# The readers of records: a Python of its own, so that nothing else of the machine changes.
root="$(dirname "$0")/.."
readers="$root/target/python"
if ! "$readers/bin/python" -c 'import altair, duckdb, fsspec, marimo, maturin, mypy, pandas, perfetto, polars, pyarrow, pytest, redis, vl_convert' 2>/dev/null; then
  echo "setup-test: installing the packages of tests/records/requirements.txt, for tests of records, traces, exports, stores and the Python package, in $readers"
  python3 -c 'import ensurepip' 2>/dev/null || install_packages "for Python packages" python3-venv || true
  { python3 -m venv "$readers" && "$readers/bin/pip" install --quiet --disable-pip-version-check --requirement "$root/tests/records/requirements.txt"; } || {
    if [ "${CI:-}" = true ]; then
      echo "setup-test: the packages of tests/records/requirements.txt are required here" >&2
      exit 1
    fi
    echo "setup-test: SKIPPED: no Python packages, so no records are read in DuckDB, Polars and pandas"
  }
fi

for component in rustfmt clippy; do
  if ! cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1; then
    command -v rustup >/dev/null || { echo "setup-test: cargo has no $component; install it" >&2; exit 1; }
    rustup component add "$component"
  fi
done
