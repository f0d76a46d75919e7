#!/usr/bin/env bash
# Builds all tools, and the plugins for what this machine has, in build/release; says first how long that takes. On a
# terminal ninja counts its steps, elsewhere every 50th is shown; all of them are in build/tools-build.log.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build
log=build/tools-build.log
cmake --preset release >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
todo=$(cmake --build --preset release --target tessera-tools -- -n | sed -nE 's/^\[[0-9]+\/([0-9]+)\].*/\1/p' | tail -n 1)
# Measured from nothing, without ccache: 66 minutes of one core of an AMD EPYC server, in some 640 steps.
cores=$(nproc)
minutes=$(((${todo:-0} * 66 / 640 + cores - 1) / cores))
[ "${todo:-0}" -lt 20 ] || echo "build: $todo steps, about $minutes minutes on $cores cores; only the first time"
if [ -t 1 ]; then
  cmake --build --preset release --target tessera-tools
else
  cmake --build --preset release --target tessera-tools 2>&1 | tee -a "$log" |
    awk '/^\[[0-9]+\/[0-9]+\]/ { if (++steps % 50 == 0) print; next } /warning:|error:|FAILED/ { print } { fflush() }'
fi
