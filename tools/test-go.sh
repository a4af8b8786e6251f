#!/usr/bin/env bash
# Tests the programs under tools/ that are written in Go, and has Porcupine judge what clients saw in two runs of ours: it has to say what our own judge says. Modules come through
# Go's own client, at the versions and sums in go.mod and go.sum. The program is that of the tests: building it alone would compile most of it again.
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

program=$PWD/../../target/debug/rackweave
[ -x "$program" ] || { echo "test-go: there is no $program; 'cargo test --workspace --no-run' builds it" >&2; exit 1; }

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
go build -o "$results/porcupine" .
cd ../..

# Plays an experiment and has both judge its history: `judged NAME EXPECTED`, where 0 is linearizable and 1 is not.
judged() {
  "$program" run "tools/porcupine/histories/$1.toml" --history --out "$results/$1" >/dev/null 2>&1 ||
    { echo "test-go: rackweave did not play $1" >&2; exit 1; }
  local violations ours=0 theirs=0
  violations=$(sed -n 's/.*"history_violations": \([0-9]*\).*/\1/p' "$results/$1/seed-1/summary.json")
  [ "$violations" = 0 ] || ours=1
  "$results/porcupine" -timeout 10m "$results/$1/seed-1/history.jsonl" || theirs=$?
  if [ "$ours" != "$2" ] || [ "$theirs" != "$2" ]; then
    echo "test-go: the history of $1 should be judged $2 (0: linearizable, 1: not); ours says $ours ($violations keys), Porcupine $theirs" >&2
    exit 1
  fi
}

judged ours 0
judged paper 1
