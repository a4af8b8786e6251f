#!/usr/bin/env bash
# Runs two commands beside each other: `beside.sh LATER COMMAND...`, where LATER is a line for a shell.
# It begins 15 s later, so that COMMAND, not LATER, gets cargo's lock at first. Tests wait a third of their time, which LATER uses.
# What LATER says is printed behind what COMMAND says. Fails if one of them does.
set -euo pipefail

later=$1
shift
log=$(mktemp)
(sleep 15; exec bash -c "$later") >"$log" 2>&1 &
other=$!
trap 'kill "$other" 2>/dev/null || true; rm -f "$log"' EXIT
"$@"
failed=0
wait "$other" || failed=$?
cat "$log"
exit "$failed"
