#!/usr/bin/env bash
# Installs mdbook below target/ unless it is there: about 70 s of CPU without optimization.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
if command -v mdbook >/dev/null || [ -x target/mdbook/bin/mdbook ]; then
  exit 0
fi
CARGO_TARGET_DIR=target/mdbook/build cargo install mdbook --version "$version" --locked --debug \
  --no-default-features --features search --root target/mdbook
