#!/usr/bin/env bash
# Fault drills: random trials for so many minutes (default 1), see drills.py. The last line is `N passed, N failed`.
#   tests/faults/run.sh [minutes] [--seed N] [--only kind,…] [--launch local,tcp,mpi,gpu] [--trials N]
set -euo pipefail
exec /usr/bin/python3 "$(dirname "$0")/drills.py" "$@"
