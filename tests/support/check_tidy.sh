#!/usr/bin/env bash
# clang-tidy finds nothing in the runtime.
#
# The sources of one folder are checked as one unit, since most of the time goes into the headers they share: about a
# minute instead of seven. Files with local names that occur twice in their folder are checked one by one.
# The compiler's sources are not checked here: each takes over ten seconds, because of MLIR's headers.
# usage: check_tidy.sh [BUILD]      BUILD: a configured and built folder, for generated headers (build/release)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
[ -f "$build/runtime/artifact/artifact_generated.h" ] || { echo "check_tidy.sh: $build is not built" >&2; exit 2; }
units="$build/tidy"
rm -rf "$units"
mkdir -p "$units"

while read -r file; do
  folder=$(dirname "$file")
  case $file in
    runtime/device/cpu/* | runtime/state/Safetensors.cpp) folder=${file%.cpp} ;;
  esac
  echo "#include \"$file\"" >>"$units/${folder//\//-}.cpp"
done < <(git ls-files 'runtime/*.cpp')

# GCC's folder comes last, only for omp.h, whose form of the attribute __malloc__ clang 14 does not know.
options=(-std=c++20 -fopenmp -I. -isystem "$build" -idirafter "$(g++ -print-file-name=include)" '-D__malloc__(...)=__malloc__'
  -DONNX_ML=1 -DONNX_NAMESPACE=onnx -DTESSERA_VERSION='"0"' -DTESSERA_VECTOR_BYTES=32 -DTESSERA_ATTENTION=attentionAvx2
  -mavx2 -mfma)
printf '%s\0' "$units"/*.cpp |
  xargs -0 -I{} -P 2 sh -c 'clang-tidy-14 --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include \
    --header-filter="^(\./|'"$PWD"'/)?runtime/.*\.(h|cpp)$" "$0" -- "$@"' {} "${options[@]}" 2>&1 || {
  echo "clang-tidy found something" >&2
  exit 1
}
