#!/usr/bin/env bash
# What cargo calls in place of rustc for each crate of the fuzzers (RUSTC_WRAPPER): with the options in INSTRUMENT for
# what is fuzzed, and as it is for all else that these crates bring, which would take longer to build and is not asked.
set -euo pipefail

fuzzed=" base blox bytes kv live nom nvme redis_protocol runtime scalio serde_json volumes "
name=
has_target=
for argument; do
  [ "${before:-}" != --crate-name ] || name=$argument
  # What runs while others are built is not fuzzed, and cargo names no target for it.
  [ "$argument" != --target ] || has_target=1
  before=$argument
done
case "$has_target$fuzzed" in
  1*" $name "*) exec "$@" $INSTRUMENT ;;
  # The fuzzers themselves have names of their own.
  1*) [ "${CARGO_PKG_NAME:-}" != nvme-fuzz ] || exec "$@" $INSTRUMENT ;;
esac
exec "$@"
