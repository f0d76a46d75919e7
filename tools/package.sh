#!/usr/bin/env bash
# Packs the tools for machines without compilers, into dist/: a Python wheel with everything, an archive of the tools, and
# one of the runtime alone (tessera-run, tessera-dump, tessera-calibrate). docs/install.md says what is in them.
#
#   tools/package.sh                         builds what is missing, then packs
#   tools/package.sh --build FOLDER          packs a folder that is built, such as build/release; builds nothing
#   tools/package.sh --out FOLDER --only wheel|tools|runtime --fast    another folder; one of the three; not compressed
set -euo pipefail
cd "$(dirname "$0")/.."

build=
out=dist
rest=()
while [ "$#" -gt 0 ]; do
  case "$1" in
    --build) build=${2:?"--build needs a folder"}; shift 2 ;;
    --out) out=${2:?"--out needs a folder"}; shift 2 ;;
    --only) rest+=(--only "${2:?"--only needs wheel, tools or runtime"}"); shift 2 ;;
    --fast) rest+=(--fast); shift ;;
    *) echo "usage: tools/package.sh [--build FOLDER] [--out FOLDER] [--only wheel|tools|runtime] [--fast]" >&2; exit 2 ;;
  esac
done

if [ -z "$build" ]; then
  build=build/release
  tools/setup.sh
  tools/build-tools.sh
fi
exec /usr/bin/python3 tools/package/package.py --build "$build" --out "$out" "${rest[@]}"
