#!/usr/bin/env bash
# Gets OpenSSL's headers, by which the live target speaks TLS, where that can be done without asking.
set -euo pipefail

has_openssl() { command -v pkg-config && pkg-config --exists openssl; } >/dev/null

if ! has_openssl && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "setup-openssl: installing OpenSSL's headers"
  { apt-get update --quiet --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends libssl-dev pkg-config openssl; } || true
fi

if ! has_openssl; then
  if [ "${CI:-}" = true ]; then
    echo "setup-openssl: TLS is required here; install the packages 'libssl-dev' and 'pkg-config'" >&2
    exit 1
  fi
  echo "setup-openssl: SKIPPED: no OpenSSL headers, so TLS is neither built nor tested (as root: apt-get install libssl-dev pkg-config)"
fi
