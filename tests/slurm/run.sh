#!/usr/bin/env bash
# Drills on a Slurm cluster of two nodes that this starts on this machine and ends again (docs/slurm.md). Root; Debian's packages
# slurmctld, slurmd, slurm-client and munge.
#   tests/slurm/run.sh [test_slurm.SlurmTest.test_preemption …]
# test_chess is skipped without a Python that has torch, transformers and chess: TESSERA_TORCH_PYTHON.
set -euo pipefail
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- test_slurm test_chess
TESSERA_TEST_SLURM=1 exec /usr/bin/python3 -m unittest -v "$@"
