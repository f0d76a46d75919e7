#!/usr/bin/env bash
# clang-tidy finds nothing in the runtime, and on request in the rest of the tree.
#
# The sources of one folder of the runtime are checked as one unit, since most of the time goes into the headers they
# share: about a minute instead of seven. Files with local names that occur twice in their folder are checked one by one.
# The other folders' sources include MLIR's headers and take 12 s of CPU time each, 40 minutes together: CI checks those
# that the last commit changed, twelve at the most.
#
#   check_tidy.sh [BUILD]                   the runtime. BUILD: a configured and built folder (build/release)
#   check_tidy.sh [BUILD] --changed [REV]   sources elsewhere that changed since REV (HEAD~1), twelve at the most
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
    [ "${#files[@]}" -le 12 ] || echo "check_tidy.sh: ${#files[@]} files changed, the first 12 are checked"
    files=("${files[@]:0:12}") ;;
  --all)
    runtime=true
    mapfile -t files < <(git ls-files "${elsewhere[@]}" | grep '\.cpp$') ;;
  *) echo "usage: check_tidy.sh [BUILD] [--changed [REV] | --all]" >&2; exit 2 ;;
esac

# GCC's folder comes last, only for omp.h, whose form of the attribute __malloc__ clang 14 does not know.
gcc=(-idirafter "$(g++ -print-file-name=include)" '-D__malloc__(...)=__malloc__')
failed=false

if $runtime; then
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
  # MPI is found by CMake and only for the plugin; without it, the plugin is not built and not checked.
  mpi=$(grep -oE -- '-isystem [^ ]*mpi[^ ]*' "$build/compile_commands.json" | sort -u | tr '\n' ' ')
  [ -n "$mpi" ] || { echo "check_tidy.sh: no MPI, its plugin is not checked"; rm -f "$units/runtime-comm-mpi.cpp"; }
  read -r -a mpi <<<"$mpi"
  options=(-std=c++20 -fopenmp -I. -isystem "$build" "${mpi[@]}" "${gcc[@]}" -DOMPI_SKIP_MPICXX -DONNX_ML=1 -DONNX_NAMESPACE=onnx
    -DTESSERA_VERSION='"0"' -DTESSERA_VECTOR_BYTES=32 -DTESSERA_ATTENTION=attentionAvx2 -mavx2 -mfma)
  printf '%s\0' "$units"/*.cpp |
    xargs -0 -I{} -P 2 sh -c 'clang-tidy-14 --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include \
      --header-filter="^(\./|'"$PWD"'/)?runtime/.*\.(h|cpp)$" "$0" -- "$@"' {} "${options[@]}" 2>&1 || failed=true
fi

if [ "${#files[@]}" -gt 0 ]; then
  extra=(--extra-arg=-Wno-unknown-warning-option)
  for option in "${gcc[@]}"; do
    extra+=("--extra-arg=$option")
  done
  printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P 2 clang-tidy-14 --quiet -p "$build" --header-filter="^$PWD/(compiler|passes|frontends|runtime|tools)/.*\.h$" \
      "${extra[@]}" 2>&1 || failed=true # headers in the build are generated
fi

if $failed; then
  echo "clang-tidy found something" >&2
  exit 1
fi
