#!/usr/bin/env bash
# Fuzzes every target of fuzz/: `fuzz.sh SECONDS-EACH [TARGET...]`; `fuzz.sh minimise` makes the corpus small again.
#
# Plain cargo with the stable compiler: coverage by LLVM's own pass, libFuzzer from the crate libfuzzer-sys. What the fuzzer finds anew is kept under
# target/fuzzing (SANITIZER=address adds the address sanitizer); fuzz/corpus is what each run starts from, and is kept small. An input that fails stays in
# target/fuzzing/failures, and its path is printed. Needs a C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/packages.sh

place=target/fuzzing
machine=$(rustc --print host-tuple)
sanitizer=${SANITIZER:-}

need_compiler() {
  command -v c++ >/dev/null || install_packages "which builds libFuzzer" g++ || true
  command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler (as root: apt-get install g++)" >&2; exit 1; }
}

# The pass and its arguments are those that cargo-fuzz gives. No inlining limits, no link-time optimization: what counts is that every edge counts.
build() {
  local flags="--cfg fuzzing -Cdebug-assertions -Coverflow-checks"
  export INSTRUMENT="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
  INSTRUMENT+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
  INSTRUMENT+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
  # The sanitizer is not stable; the compiler is told to allow it.
  [ -z "$sanitizer" ] || { flags+=" -Zsanitizer=$sanitizer"; export RUSTC_BOOTSTRAP=1; }
  # A target of its own, so that build scripts and macros are not instrumented.
  RUSTC_WRAPPER=$PWD/tools/instrument.sh RUSTFLAGS=$flags cargo build --quiet --locked --release --manifest-path fuzz/Cargo.toml --target "$machine" \
    --target-dir "$place/build$sanitizer" $(names | sed 's/^/--bin /')
}

names() { basename --suffix .rs fuzz/fuzz_targets/*.rs; }

program() { echo "$place/build$sanitizer/$machine/release/$1"; }

# fuzz SECONDS TARGET
fuzz() {
  local log="$place/$2.log"
  mkdir -p "$place/corpus/$2" "$place/failures/$2" "fuzz/corpus/$2"
  # A run that finds nothing is one line here; all that libFuzzer says is in the log.
  if "$(program "$2")" -max_total_time="$1" -max_len=9000 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$PWD/$place/failures/$2/" "$place/corpus/$2" "fuzz/corpus/$2" >"$log" 2>&1 </dev/null; then
    echo "fuzz: $2: $(summary "$log")"
  else
    tail -n 40 "$log"
    echo "fuzz: $2 FAILED: the input is $(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1); see $log" >&2
    return 1
  fi
}

# What was covered with the corpus alone, what at the end, and how many inputs that took.
summary() {
  local first last
  first=$(sed -n 's/.*INITED cov: \([0-9]*\).*/\1/p' "$1" | head -n 1)
  last=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$1" | tail -n 1)
  echo "$(sed -n 's/^stat::number_of_executed_units: //p' "$1") inputs, edges covered $first at first, $last at the end"
}

# Inputs that our own encoders write. Not instrumented: it is no fuzzer.
write_seeds() {
  cargo run --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "$place/check" --bin seeds -- "$place/seeds"
}

# minimise TARGET: the fewest inputs that cover what the whole corpus and the seeds cover.
minimise() {
  local fresh="$place/merged/$1"
  rm -rf "$fresh"
  mkdir -p "$fresh" "$place/corpus/$1" "fuzz/corpus/$1" "$place/seeds/$1"
  "$(program "$1")" -set_cover_merge=1 -max_len="${LENGTH_MAX:-9000}" "$fresh" "fuzz/corpus/$1" "$place/corpus/$1" "$place/seeds/$1" \
    >"$place/$1.merge.log" 2>&1 </dev/null
  rm -rf "fuzz/corpus/$1"
  mv "$fresh" "fuzz/corpus/$1"
  echo "fuzz: $1: $(find "fuzz/corpus/$1" -type f | wc -l) inputs, $(du -sk "fuzz/corpus/$1" | cut -f 1) KiB"
}

[ $# -gt 0 ] || { echo "usage: $0 SECONDS-EACH [TARGET...] | $0 minimise [TARGET...]" >&2; exit 2; }
what=$1
shift
need_compiler
mkdir -p "$place"
build
[ "$what" != minimise ] || write_seeds
[ "$what" = minimise ] || what="fuzz $what"
# As many at a time as there are processors: each has one thread.
export place machine sanitizer
export -f program fuzz summary minimise
printf '%s\n' ${@:-$(names)} | xargs -P "$(nproc)" -I '{}' bash -euo pipefail -c "$what {}"
