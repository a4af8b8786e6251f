#!/usr/bin/env bash
# Type-checks the program with the least Rust version that Cargo.toml names.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml).0

if rustc --version | grep -q "^rustc $wanted "; then
  echo "check-least-rust: Rust $wanted is the one that builds here, so its builds and tests are the check"
  exit 0
fi
if ! rustc "+$wanted" --version >/dev/null 2>&1 && ! rustup toolchain install "$wanted" --profile minimal; then
  echo "check-least-rust: SKIPPED: Rust $wanted cannot be had here"
  exit 0
fi
cargo "+$wanted" check --locked --package cli --target-dir target/least "$@"
