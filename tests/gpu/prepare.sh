#!/usr/bin/env bash
# Compiles what tests/gpu/run.sh needs on a machine with a GPU and without a compiler: artifacts, kernels, CPU results and
# the built runtime, into build/gpu-tests. See docs/gpu-tests.md; flags: tests/gpu/prepare.sh --help
python=${PYTHON:-python3}
"$python" -c 'import numpy' || { echo "prepare: $python has no numpy; set PYTHON" >&2; exit 1; }
exec "$python" "$(dirname "$0")/prepare.py" "$@"
