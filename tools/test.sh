#!/usr/bin/env bash
# Runs all tests: builds what is missing, then lit, unit tests, end-to-end tests, sanitizers, style.
# Its last line is "N passed, N failed".
#
#   tools/test.sh             everything, as CI does
#   tools/test.sh --quick     the release build's tests only
#   tools/test.sh --sanitize  all tests on a build of the whole tree under AddressSanitizer and UBSan, nothing else:
#                             about 30 min of CPU time to build from nothing and 5 to run, which CI's time does not allow
#   tools/test.sh --install   packs the tools into dist/ and tries them on a fresh Debian without compilers, nothing else: needs
#                             root and debootstrap, takes minutes
set -uo pipefail
cd "$(dirname "$0")/.."

mode=all
case "${1:-}" in
  "") ;;
  --quick | --sanitize | --install) mode=${1#--} ;;
  *) echo "usage: tools/test.sh [--quick | --sanitize | --install]" >&2; exit 2 ;;
esac

tools/setup.sh || { echo "0 passed, 1 failed"; exit 1; }

lit=/usr/lib/llvm-22/bin/lit
logs=build/test-logs
mkdir -p "$logs"
passed=0
failed=0
since=0

# add <label> <passed> <failed>: counts a suite and prints its line, with the seconds since the last one.
add() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  printf '%-34s %5d passed, %d failed (%d s)\n' "$1" "$2" "$3" "$((SECONDS - since))"
  since=$SECONDS
}

# finish: prints the counts and ends with their verdict.
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

# check <label> <command…>: one test that is the command's exit status. Of a failed one the last lines are printed
# (report_lines, 40).
check() {
  local label=$1 log
  shift
  log="$logs/${label//[^a-zA-Z0-9]/-}.log"
  if "$@" >"$log" 2>&1; then
    add "$label" 1 0
  else
    tail -n "${report_lines:-40}" "$log"
    add "$label" 0 1
  fi
}

build() { # preset targets…
  local preset=$1
  shift
  cmake --preset "$preset" >"$logs/configure-$preset.log" 2>&1 && cmake --build --preset "$preset" --target "$@" \
    >"$logs/build-$preset.log" 2>&1 || {
    grep -E 'error|FAILED' "$logs/build-$preset.log" "$logs/configure-$preset.log" | head -n 40
    return 1
  }
}

run_lit() { # label preset
  local report="$logs/lit-$2.json"
  rm -f "$report"
  "$lit" -q -o "$report" "build/$2/tests" >"$logs/lit-$2.log" 2>&1
  [ -f "$report" ] || { tail -n 20 "$logs/lit-$2.log"; add "$1" 0 1; return; }
  local counts
  counts=$(python3 - "$report" <<'PY'
import json, sys
codes = [test["code"] for test in json.load(open(sys.argv[1]))["tests"]]
good = sum(code in ("PASS", "XFAIL") for code in codes)
bad = sum(code not in ("PASS", "XFAIL", "UNSUPPORTED", "EXCLUDED", "SKIPPED") for code in codes)
print(good, bad if codes else 1)
PY
  )
  read -r good bad <<<"${counts:-0 1}"
  [ "$bad" -eq 0 ] || tail -n 80 "$logs/lit-$2.log"
  add "$1" "$good" "$bad"
}

run_units() { # label preset
  local report="$PWD/$logs/ctest-$2.xml" counts
  rm -f "$report"
  ctest --test-dir "build/$2" -j 2 --output-on-failure --output-junit "$report" >"$logs/ctest-$2.log" 2>&1
  [ -f "$report" ] || { tail -n 20 "$logs/ctest-$2.log"; add "$1" 0 1; return; }
  counts=$(python3 - "$report" <<'PY'
import sys
import xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
total, bad = int(suite.get("tests")), int(suite.get("failures"))
skipped = int(suite.get("skipped") or 0) + int(suite.get("disabled") or 0)
print(total - bad - skipped, bad if total else 1)
PY
  )
  read -r good bad <<<"${counts:-0 1}"
  [ "$bad" -eq 0 ] || grep -E '\*\*\*|Failure|error:|Error' "$logs/ctest-$2.log" | head -n 60
  add "$1" "$good" "$bad"
}

# run_python <preset> <suffix of the labels>: the tests in Python, two files at a time.
run_python() {
  local folder log counts label
  for folder in end_to_end models; do
    log="$logs/$folder-$1.log"
    TESSERA_BIN="$PWD/build/$1/bin" /usr/bin/python3 tests/support/run_unittests.py -j 2 "tests/$folder" >"$log" 2>&1
    counts=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p')
    read -r good bad <<<"${counts:-0 1}"
    [ "$bad" -eq 0 ] || tail -n 120 "$log"
    [ "$folder" = models ] && label="recorded models" || label="end to end"
    add "$label$2" "$good" "$bad"
  done
}

# What the sanitizers need beside LLVM's library is built into the executables, see tools/cmake/AsanOptions.cpp.
export UBSAN_OPTIONS=print_stacktrace=1
if [ "$mode" = sanitize ]; then
  if build asan all; then
    run_lit "lit (asan, ubsan)" asan
    run_units "unit tests (asan, ubsan)" asan
    run_python asan " (asan, ubsan)"
  else
    add "sanitizer build" 0 1
  fi
  finish
fi

if [ "$mode" = install ]; then
  check "tools are packed" tools/package.sh
  check "packed tools work elsewhere" tests/install/clean_root.sh dist
  finish
fi

# The release build and everything that runs on it.
if ! build release all; then
  echo "the release build failed, nothing was tested"
  echo "0 passed, 1 failed"
  exit 1
fi
echo "release build: $SECONDS s"
since=$SECONDS
run_lit "lit (release)" release
run_units "unit tests (release)" release
run_python release ""
check "ops and passes are documented" /usr/bin/python3 tests/support/check_registry.py
check "generated docs in step" tools/gen-docs.sh --check

if [ "$mode" = all ]; then
  check "no compiler warnings" bash -c '! grep -E "warning:" build/test-logs/build-release.log'
  check "clang-format" tests/support/check_format.sh
  check "clang-tidy (runtime)" tests/support/check_tidy.sh build/release
  # The runtime reads untrusted files and shares memory between threads, so CI builds it under the sanitizers; the whole
  # tree is for --sanitize. clang without optimisation builds it in half the time that gcc takes, which --sanitize uses.
  if build asan-runtime all; then
    check "runtime builds without MLIR" tests/support/runtime_only.sh build/asan-runtime
    run_units "unit tests (asan, ubsan)" asan-runtime
  else
    add "sanitizer build" 0 1
  fi
  report_lines=120 check "fuzzers, a short run" tests/fuzz/run.sh 20
  report_lines=120 check "fault drills, a short run" env TESSERA_BIN="$PWD/build/release/bin" tests/faults/run.sh 1
fi
finish
