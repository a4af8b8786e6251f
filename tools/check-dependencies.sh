#!/usr/bin/env bash
# Checks licences and sources of all dependencies (deny.toml), known vulnerabilities where the
# database of advisories can be fetched, that no dependency is unused,
# and that every file of ours has a copyright and a licence (REUSE.toml).
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$(tools/setup-tools.sh):$PATH

cargo-shear
reuse lint --quiet || { reuse lint >&2; exit 1; }
cargo-deny --log-level error check --hide-inclusion-graph licenses sources bans
if cargo-deny --log-level off fetch db 2>/dev/null; then
  cargo-deny --log-level error check --disable-fetch advisories
else
  echo "check-dependencies: SKIPPED: no database of advisories (https://github.com/RustSec/advisory-db)"
fi
