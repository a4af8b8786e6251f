#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh environment without Rust, and runs its tests there.
# PROFILE=release builds the wheel that users get; the tests take what cargo has built for its own tests.
# CLUSTER=1 also runs the tests of a Ray cluster and of an object store, whose packages it installs.
set -euo pipefail
cd "$(dirname "$0")/.."

readers=target/python
if ! "$readers/bin/python" -c 'import maturin, pytest' 2>/dev/null; then
  [ "${CI:-}" != true ] || { echo "test-python: the packages of tests/records/requirements.txt are required here" >&2; exit 1; }
  echo "test-python: SKIPPED: no Python packages, so the Python package is not tested"
  exit 0
fi

cluster=(--ignore python/tests/test_cluster.py)
if [ "${CLUSTER:-}" = 1 ]; then
  "$readers/bin/pip" install --quiet --disable-pip-version-check --requirement python/tests/cluster-requirements.txt
  cluster=()
fi

wheels="$PWD/target/wheels"
rm -rf "$wheels"
export TLS=${TLS:-}
[ -n "${PROFILE:-}" ] || PATH="$PWD/tools/for-wheel:$PATH"
(cd python && "../$readers/bin/maturin" build --quiet --locked --profile "${PROFILE:-dev}" --out "$wheels")

# A fresh environment with the wheel alone. The libraries that read its results are those of the readers.
fresh=target/python-fresh
python3 -m venv --clear "$fresh"
"$fresh/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheels"/*.whl
libraries=$("$readers/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$libraries" > "$("$fresh/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/readers.pth"

# Nothing of Rust is in reach. The command line is compared with, if it was built.
program="$PWD/target/debug/rackweave"
[ -x "$program" ] && export RACKWEAVE_PROGRAM="$program"
PATH="$PWD/$fresh/bin:/usr/bin:/bin" "$fresh/bin/python" -m pytest --quiet -p no:cacheprovider python/tests "${cluster[@]}" "$@"
