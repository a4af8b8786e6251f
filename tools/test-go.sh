#!/usr/bin/env bash
# Tests the programs under tools/ that are written in Go. Their modules come through Go's own client, at the versions and sums in go.mod and go.sum.
set -euo pipefail
cd "$(dirname "$0")/porcupine"

if ! command -v go >/dev/null; then
  if [ "${CI:-}" = true ]; then
    echo "test-go: CI has no Go; tools/setup-test.sh installs it" >&2
    exit 1
  fi
  echo "test-go: SKIPPED: no Go, so Porcupine is neither tested nor asked (as root: apt-get install golang-go)"
  exit 0
fi

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "test-go: not formatted: $unformatted" >&2; exit 1; }
go vet ./...
go test ./...
