#!/usr/bin/env bash
# Fuzzes the ONNX importer for a bounded time, from the models and text files of the tests.
# usage: tests/fuzz/run_onnx.sh BUILD [SECONDS]      BUILD: folder of the preset `fuzz`, e.g. build/fuzz
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?"usage: run_onnx.sh BUILD [SECONDS]"}
corpus="$build/corpus-onnx"
mkdir -p "$corpus" "$build/crashes"
for file in "$top"/tests/onnx/models/*.onnx; do
  [ "$(stat -c %s "$file")" -gt 40000 ] || cp "$file" "$corpus"
done
for file in "$top"/tests/onnx/import/*.onnxtxt; do
  grep -v '^#' "$file" | sed '/./,$!d' > "$corpus/$(basename "$file")"
done
# LLVM's library is not instrumented, so containers that cross into it look broken to the container check.
ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=1 \
  "$build/bin/fuzz-onnx" -max_total_time="${2:-60}" -timeout=30 -rss_limit_mb=4096 -max_len=65536 \
  -artifact_prefix="$build/crashes/" "$corpus"
