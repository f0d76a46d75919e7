#!/usr/bin/env bash
# A build of the runtime alone, where CMake may not find MLIR and LLVM, links neither.
#
#   runtime_only.sh BUILD      a built folder of the preset asan-runtime or runtime-only
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: runtime_only.sh BUILD}
for package in MLIR LLVM; do
  grep -qx "CMAKE_DISABLE_FIND_PACKAGE_$package:UNINITIALIZED=ON" "$build/CMakeCache.txt" || {
    echo "$build may have found $package" >&2
    exit 1
  }
done
for tool in tessera-run tessera-dump; do
  libraries=$(ldd "$build/bin/$tool")
  if grep -Ei 'libMLIR|libLLVM' <<<"$libraries"; then
    echo "$tool links MLIR or LLVM" >&2
    exit 1
  fi
done
if grep -rnE '#include [<"](mlir|llvm)/' runtime tools/tessera-run tools/tessera-dump; then
  echo "runtime sources include MLIR or LLVM headers" >&2
  exit 1
fi
