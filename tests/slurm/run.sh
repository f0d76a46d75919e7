#!/usr/bin/env bash
# Drills on a Slurm cluster of two nodes that this starts on this machine and ends again (docs/slurm.md). Root; Debian's packages
# slurmctld, slurmd, slurm-client and munge.
#   tests/slurm/run.sh [test_slurm.SlurmTest.test_preemption …]
set -euo pipefail
cd "$(dirname "$0")"
TESSERA_TEST_SLURM=1 exec /usr/bin/python3 -m unittest -v "${@:-test_slurm}"
