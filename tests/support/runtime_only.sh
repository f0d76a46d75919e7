#!/usr/bin/env bash
# The runtime and tessera-run build with the compiler switched off, and link neither MLIR nor LLVM. Not optimised, and
# without the CUDA plugin, whose sources are the same in every build: nothing here runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset runtime-only -DTESSERA_TESTS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON \
  -DTESSERA_CUDA=OFF -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG"
cmake --build --preset runtime-only
for tool in tessera-run tessera-dump; do
  libraries=$(ldd "build/runtime-only/bin/$tool")
  if grep -Ei 'libMLIR|libLLVM' <<<"$libraries"; then
    echo "$tool links MLIR or LLVM" >&2
    exit 1
  fi
done
if grep -rnE '#include [<"](mlir|llvm)/' runtime tools/tessera-run tools/tessera-dump; then
  echo "runtime sources include MLIR or LLVM headers" >&2
  exit 1
fi
