#!/usr/bin/env bash
# Runs everything that needs a GPU, with what tests/gpu/prepare.sh left in build/gpu-tests. The last line is
# "N passed, N failed". See docs/gpu-tests.md; flags: tests/gpu/run.sh --help
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "$python is not installed"; echo "0 passed, 1 failed"; exit 1; }
"$python" -c 'import numpy' || { echo "$python has no numpy"; echo "0 passed, 1 failed"; exit 1; }
exec "$python" -u "$(dirname "$0")/run.py" "$@"
