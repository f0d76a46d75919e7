#!/usr/bin/env bash
# clang-tidy finds nothing in the runtime, and on request in the rest of the tree.
#
# The sources of one folder are checked as one unit, since most of the time goes into the headers they share: the runtime
# takes two minutes of two cores instead of seven. MLIR's headers make a unit of the compiler slow, so that CI checks the
# runtime only.
#
#   check_tidy.sh [BUILD]                   the runtime. BUILD: a configured and built folder (build/release)
#   check_tidy.sh [BUILD] --changed [REV]   sources elsewhere that changed since REV (HEAD~1), in four folders at the most
#   check_tidy.sh [BUILD] --all             the runtime and all sources elsewhere
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/release
if [ $# -gt 0 ] && [[ $1 != --* ]]; then
  build=$1
  shift
fi
[ -f "$build/runtime/artifact/artifact_generated.h" ] || { echo "check_tidy.sh: $build is not built" >&2; exit 2; }
elsewhere=(compiler passes frontends tools)
case ${1:-} in
  "") runtime=true; files=() ;;
  --changed)
    runtime=false
    since=${2:-HEAD~1}
    git rev-parse -q --verify "$since^{commit}" >/dev/null || { echo "check_tidy.sh: there is no revision $since"; exit 0; }
    mapfile -t files < <(git diff --name-only --diff-filter=d "$since" -- "${elsewhere[@]}" | grep '\.cpp$')
    mapfile -t folders < <(printf '%s\n' "${files[@]}" | xargs -r -n 1 dirname | sort -u)
    [ "${#folders[@]}" -le 4 ] || echo "check_tidy.sh: files of ${#folders[@]} folders changed, four are checked"
    mapfile -t files < <(for folder in "${folders[@]:0:4}"; do printf '%s\n' "${files[@]}" | grep -E "^$folder/[^/]*$"; done) ;;
  --all)
    runtime=true
    mapfile -t files < <(git ls-files "${elsewhere[@]}" | grep '\.cpp$') ;;
  *) echo "usage: check_tidy.sh [BUILD] [--changed [REV] | --all]" >&2; exit 2 ;;
esac

# GCC's folder comes last, only for omp.h, whose form of the attribute __malloc__ clang 14 does not know.
gcc=(-idirafter "$(g++ -print-file-name=include)" '-D__malloc__(...)=__malloc__')
failed=false
units="$build/tidy"
rm -rf "$units"
mkdir -p "$units"

# add_units: a unit for each folder of the files on standard input.
add_units() {
  local file folder
  while read -r file; do
    folder=$(dirname "$file")
    echo "#include \"$file\"" >>"$units/${folder//\//-}.cpp"
  done
}

# check_units <header filter> <options…>: clang-tidy on the units that are there.
check_units() {
  local headers=$1
  shift
  printf '%s\0' "$units"/*.cpp |
    xargs -0 -I{} -P 2 clang-tidy-14 --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include \
      --header-filter="$headers" {} -- "$@" 2>&1 || failed=true
  rm -f "$units"/*.cpp
}

options=(-std=c++20 -fopenmp -I. -isystem "$build" "${gcc[@]}" -DONNX_ML=1 -DONNX_NAMESPACE=onnx -DTESSERA_VERSION='"0"')
if $runtime; then
  add_units < <(git ls-files 'runtime/*.cpp')
  # MPI is found by CMake and only for the plugin; without it, the plugin is not built and not checked.
  mpi=$(grep -oE -- '-isystem [^ ]*mpi[^ ]*' "$build/compile_commands.json" | sort -u | tr '\n' ' ')
  [ -n "$mpi" ] || { echo "check_tidy.sh: no MPI, its plugin is not checked"; rm -f "$units/runtime-comm-mpi.cpp"; }
  read -r -a mpi <<<"$mpi"
  check_units "^(\./|$PWD/)?runtime/.*\.(h|cpp)$" "${options[@]}" "${mpi[@]}" -DOMPI_SKIP_MPICXX -DTESSERA_VECTOR_BYTES=32 \
    -DTESSERA_ATTENTION=attentionAvx2 -mavx2 -mfma
fi
if [ "${#files[@]}" -gt 0 ]; then
  add_units < <(printf '%s\n' "${files[@]}")
  check_units "^(\./|$PWD/)?(compiler|passes|frontends|runtime|tools)/.*\.(h|cpp)$" "${options[@]}" \
    -isystem /usr/lib/llvm-22/include
fi

if $failed; then
  echo "clang-tidy found something" >&2
  exit 1
fi
