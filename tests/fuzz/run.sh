#!/usr/bin/env bash
# Builds the fuzz targets (preset `fuzz`, clang) and runs each from its seeds for a bounded time.
# Exit status: 0 if every target ran without a crash, a time-out or a sanitizer report. Inputs that fail are kept in
# build/fuzz/crashes, named by target; a fixed one becomes a unit test of the part it broke.
#
#   tests/fuzz/run.sh [SECONDS [TARGET…]]      SECONDS for each target (60); TARGET: fuzz-artifact, fuzz-onnx, fuzz-pt2 (all)
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "usage: tests/fuzz/run.sh [SECONDS [TARGET…]]" >&2; exit 2; }
shift || true
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || targets=(fuzz-artifact fuzz-onnx fuzz-pt2)

build=build/fuzz
cmake --preset fuzz
cmake --build --preset fuzz --target fuzz-artifact-seeds "${targets[@]}"

# Fills the folder $2 with the seeds of the target $1, beside what earlier runs found.
seeds() {
  local file
  mkdir -p "$2"
  case $1 in
    fuzz-artifact) "$build/bin/fuzz-artifact-seeds" "$2" ;;
    fuzz-onnx)
      for file in tests/onnx/models/*.onnx; do
        [ "$(stat -c %s "$file")" -gt 40000 ] || cp "$file" "$2"
      done
      for file in tests/onnx/import/*.onnxtxt; do
        sed '/^#/d' "$file" | sed '/./,$!d' >"$2/$(basename "$file")"
      done ;;
    fuzz-pt2)
      for file in tests/pt2/programs/*.pt2; do
        cp "$file" "$2"
        # The two texts by themselves, a zero byte between them: what fuzz_pt2.cpp packs again.
        python3 - "$file" >"$2/$(basename "$file").json" <<'EOT'
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
read = lambda end: next(archive.read(name) for name in archive.namelist() if name.endswith(end))
texts = next(archive.read(name) for name in archive.namelist() if "/models/" in name), read("_weights_config.json")
sys.stdout.buffer.write(b"\0".join(texts))
EOT
      done ;;
    *) echo "run.sh: no fuzz target is called '$1'" >&2; return 2 ;;
  esac
}

# LLVM's library is not instrumented, so containers that cross into it look broken to the container check.
# A length that an input claims may be larger than the memory: the code under test must cope with a failed allocation.
export ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/crashes"
failed=()
for target in "${targets[@]}"; do
  corpus="$build/corpus/$target"
  seeds "$target" "$corpus"
  echo "== $target, $seconds s from $(find "$corpus" -type f | wc -l) inputs"
  "$build/bin/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$target-" "$corpus" </dev/null 2>&1 | tee "$build/$target.log" ||
    failed+=("$target")
done
[ "${#failed[@]}" -gt 0 ] || exit 0
# The reports once more, at the end, where they are found: what happened, where, and on which input.
for target in "${failed[@]}"; do
  echo "== report of $target"
  sed -nE '/(ERROR|WARNING): |runtime error:|^ALARM:/,$p' "$build/$target.log" | grep -vE $'^(stat|#[0-9]+\t)' | head -n 45
  grep -E '^SUMMARY: |Test unit written to ' "$build/$target.log" | tail -n 2
done
echo "failed: ${failed[*]}, inputs in $build/crashes" >&2
exit 1
