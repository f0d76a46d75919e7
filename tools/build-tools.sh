#!/usr/bin/env bash
# Builds all tools, and the plugins for what this machine has, in build/release, and says first how long that takes. ninja
# counts its steps on a terminal; elsewhere every 20th is shown, and all of them are in build/tools-build.log.
set -euo pipefail
cd "$(dirname "$0")/.."

log=build/tools-build.log
mkdir -p build
cmake --preset release >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
if [ ! -e build/release/bin/tessera-compile ]; then
  steps=$(ninja -C build/release -t commands tessera-tools | wc -l)
  cores=$(nproc)
  # Minutes of one core of a Xeon VM: three quarters of what everything takes (docs/contributing.md).
  minutes=25
  echo "build: $steps steps, $((minutes / cores + 1)) to $((2 * minutes / cores + 1)) minutes on $cores cores, only the first time"
fi
build=(cmake --build --preset release --target tessera-tools)
if [ -t 1 ]; then
  "${build[@]}"
else
  "${build[@]}" 2>&1 | tee -a "$log" | awk '!/^\[[0-9]+\/[0-9]+\]/ || ++steps % 20 == 0 { print; fflush() }'
fi
