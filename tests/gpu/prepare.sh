#!/usr/bin/env bash
# Compiles what tests/gpu/run.sh needs on a machine with a GPU and without a compiler: artifacts, kernels, CPU results and
# the built runtime, into build/gpu-tests. See docs/gpu-tests.md; flags: tests/gpu/prepare.sh --help
exec "${PYTHON:-python3}" "$(dirname "$0")/prepare.py" "$@"
