#!/usr/bin/env bash
# Says what to do when Rust is missing or older than the workspace asks for, and what is left out without OpenSSL's headers.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
  echo "Rackweave needs Rust $wanted or newer, and there is no cargo on PATH: install it with rustup (https://rustup.rs)." >&2
  exit 1
fi

found=$(rustc --version | cut -d ' ' -f 2)
oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort --version-sort | head -n 1)
if [ "$oldest" != "$wanted" ]; then
  echo "Rackweave needs Rust $wanted or newer, and this is $found: run 'rustup update stable'." >&2
  exit 1
fi

if ! command -v pkg-config >/dev/null || ! pkg-config --exists openssl; then
  echo "Without OpenSSL's headers the live target is built without TLS (Debian: apt-get install libssl-dev pkg-config)." >&2
fi
