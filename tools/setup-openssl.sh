#!/usr/bin/env bash
# Gets OpenSSL's headers, by which the live target speaks TLS, where that can be done without asking.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

has_openssl() { command -v pkg-config && pkg-config --exists openssl; } >/dev/null

has_openssl || install_packages "by which the live target speaks TLS" libssl-dev pkg-config openssl || true
has_openssl || missing "no OpenSSL headers, so TLS is neither built nor tested" "libssl-dev pkg-config"
