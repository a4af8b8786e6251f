#!/usr/bin/env bash
# Gets what the tests need beside Rust: OpenSSL, the Chromium that opens the page of figures, Go for the outside checker of histories, tshark for sessions of the
# live target, libfabric, the clang that compiles for the kernel, Python packages that read records, and rustfmt and clippy.
set -euo pipefail

"$(dirname "$0")/setup-openssl.sh"

has_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null

install_chromium() {
  echo "setup-test: installing Chromium for the page test"
  apt-get update --quiet --quiet
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends chromium fonts-liberation
}

if ! has_chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  install_chromium || true
fi

if ! has_chromium; then
  if [ "${RACKWEAVE_REQUIRE_CHROMIUM:-}" = 1 ]; then
    echo "setup-test: the page test is required here and there is no Chromium; install the package 'chromium'" >&2
    exit 1
  fi
  echo "setup-test: SKIPPED: no Chromium, so the page of figures is not opened (as root: apt-get install chromium)"
fi

if ! command -v go >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "setup-test: installing Go for tools/porcupine and tools/ycsb"
  { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends golang-go; } || true
fi

if ! command -v go >/dev/null; then
  if [ "${CI:-}" = true ]; then
    echo "setup-test: Go is required here; install the package 'golang-go'" >&2
    exit 1
  fi
  echo "setup-test: SKIPPED: no Go, so Porcupine judges no histories and YCSB is not run (as root: apt-get install golang-go)"
fi

# Headers and a compiler of C, by which a test checks the layouts that crates/fabric declares.
if ! { [ -e /usr/include/rdma/fabric.h ] && command -v cc; } >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "setup-test: installing libfabric, by which doors access the memory of a JBOF"
  { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends libfabric-dev gcc libc6-dev; } || true
fi

if ! [ -e /usr/include/rdma/fabric.h ]; then
  if [ "${CI:-}" = true ]; then
    echo "setup-test: libfabric is required here; install the package 'libfabric-dev'" >&2
    exit 1
  fi
  echo "setup-test: SKIPPED: no libfabric, so no JBOF's memory is accessed by it (as root: apt-get install libfabric-dev)"
fi

if ! command -v tshark >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "setup-test: installing tshark, which dissects a session of the live target"
  { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends tshark; } || true
fi

if ! command -v tshark >/dev/null; then
  echo "setup-test: SKIPPED: no tshark, so no session of the live target is dissected (as root: apt-get install tshark)"
fi

if ! "$(dirname "$0")/setup-xdp.sh"; then
  if [ "${CI:-}" = true ]; then
    echo "setup-test: the switch's data path in the kernel is required here" >&2
    exit 1
  fi
  echo "setup-test: SKIPPED: no clang, so the switch's data path in the kernel is not tested (as root: apt-get install clang)"
fi

# The readers of records: a Python of its own, so that nothing else of the machine changes.
root="$(dirname "$0")/.."
readers="$root/target/python"
if ! "$readers/bin/python" -c 'import altair, duckdb, fsspec, marimo, maturin, mypy, pandas, perfetto, polars, pyarrow, pytest, vl_convert' 2>/dev/null; then
  echo "setup-test: installing the packages of tests/records/requirements.txt, for tests of records, traces, exports and the Python package, in $readers"
  if ! python3 -c 'import ensurepip' 2>/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends python3-venv; } || true
  fi
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
