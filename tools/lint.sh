#!/usr/bin/env bash
# What cargo calls in place of rustc for a crate of ours (RUSTC_WORKSPACE_WRAPPER): clippy-driver, which compiles and
# lints. Then rustdoc reads the same crate beside the same libraries, for which `cargo doc` checks all dependencies
# anew. CLIPPY_ARGS says that warnings are errors.
set -euo pipefail

clippy-driver "$@"
shift

arguments=()
is_crate=
while [ $# -gt 0 ]; do
  case "$1" in
    # Neither tests nor build scripts have documents, and cargo only asks rustc for its version without --emit.
    --test | build_script_*) exit 0 ;;
    --emit=*) is_crate=1 ;;
    --out-dir) shift ;;
    bin) arguments+=("$1" --document-private-items) ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[ -n "$is_crate" ] || exit 0
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
rustdoc "${arguments[@]}" -D warnings --out-dir "$pages"
