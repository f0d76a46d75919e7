#!/usr/bin/env bash
# Runs all ONNX node tests that are at hand and rewrites the list of those that pass and docs/onnx-ops.md.
# usage: tests/onnx/conformance/update.sh BUILD [FOLDER...]
#   BUILD   build folder, e.g. build/release
#   FOLDER  more node tests, e.g. <site-packages>/onnx/backend/test/data/node of the Python package onnx (the checked-in
#           files were made with 1.17 and 1.19, in this order); Debian's libonnx-testdata always comes first
set -euo pipefail
top=$(cd "$(dirname "$0")/../../.." && pwd)
build=${1:?"usage: update.sh BUILD [FOLDER...]"}
shift
list=$(mktemp)
"$build/bin/onnx-conformance" /usr/share/libonnx-testdata/data/node "$@" --list="$list" --table="$top/docs/onnx-ops.md"
{
  echo "# ONNX node tests that pass. Made by update.sh; a test that stops passing fails the test suite."
  cat "$list"
} > "$top/tests/onnx/conformance/passing.txt"
rm "$list"
