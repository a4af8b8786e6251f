#!/usr/bin/env bash
# Lets stock Linux hosts use our target as a disk: `run.sh [all|small]`.
#
# `small` boots this machine's own Debian kernel for the shortest steps. `all` gives it every step, then
# boots a later suite's kernel for secrets, TLS and two paths, and a still later one for TLS. CI does
# without those: they take a minute or two each, and fetch 170 MB each.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-all}" in
small) exec ./guest.sh own small ;;
all) ;;
*) echo "usage: $0 [all|small]" >&2; exit 2 ;;
esac

failed=
./guest.sh own all || failed=yes
# A rack inside the guest: this machine's kernel may be without netem.
./guest.sh own delays || failed=yes
./guest.sh new all || failed=yes
# Debian 13's tlshd has no SHA-384; Debian 14's has, and needs a later kernel than Debian 13's.
INTEROP_SUITE=forky ./guest.sh new tls || failed=yes
# Linux's target as a peer of `rackweave disk` and `rackweave attack`.
[ ! -x ./nvmet.sh ] || ./nvmet.sh "target/interop/${INTEROP_SUITE:-trixie}/kernel" || failed=yes
[ -z "$failed" ]
