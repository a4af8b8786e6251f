#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a fresh environment without Rust, and runs its tests there.
# PROFILE=release builds the wheel that users get. WITH_TESTS=1 builds it together with the tests of the workspace: at once where they are built.
# Sweeps are also played on a Ray cluster: CLUSTER=small has one node, CLUSTER=1 two nodes and an object store. Their
# packages are installed. Without it the small one runs where Ray is installed. CI has CLUSTER=ci: one node, without the tests
# that depend on how fast the machine is.
set -euo pipefail
cd "$(dirname "$0")/.."

readers=target/python
if ! "$readers/bin/python" -c 'import maturin, pytest' 2>/dev/null; then
  [ "${CI:-}" != true ] || { echo "test-python: the packages of tests/records/requirements.txt are required here" >&2; exit 1; }
  echo "test-python: SKIPPED: no Python packages, so the Python package is not tested"
  exit 0
fi

needed=python/tests/cluster-requirements.txt
if [ "${CI:-}" = true ]; then
  CLUSTER=${CLUSTER:-ci}
elif [ -z "${CLUSTER:-}" ] && "$readers/bin/python" -c 'import ray' 2>/dev/null; then
  CLUSTER=small
fi
cluster=() left_out=()
case "${CLUSTER:-none}" in
  none) cluster=(--ignore python/tests/test_cluster.py) ;;
  small) left_out=(an_object_store_takes_the_results) ;;
  ci) left_out=(an_object_store_takes_the_results both_cores_work ctrl_c_ends_a_sweep_on_a_cluster
    a_frozen_worker_is_killed_and_its_point_played_again a_point_whose_workers_all_freeze_fails_and_says_so) ;;
  1) ;;
  *) echo "test-python: CLUSTER is '$CLUSTER'; allowed are small, ci and 1" >&2; exit 2 ;;
esac
for name in "${left_out[@]}"; do
  cluster+=(--deselect "tests/test_cluster.py::test_$name")
done
if [ "${CLUSTER:-none}" = small ] || [ "${CLUSTER:-none}" = ci ]; then
  "$readers/bin/pip" install --quiet --disable-pip-version-check "$(grep '^ray==' "$needed")"
elif [ "${CLUSTER:-none}" = 1 ]; then
  "$readers/bin/pip" install --quiet --disable-pip-version-check --requirement "$needed"
fi
export RACKWEAVE_CLUSTER="${CLUSTER:-none}"

wheels="$PWD/target/wheels"
rm -rf "$wheels"
export TLS=${TLS:-}
[ "${WITH_TESTS:-}" != 1 ] || PATH="$PWD/tools/for-wheel:$PATH"
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
