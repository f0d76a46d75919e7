"""Fault drills: disturbs runs in random ways and demands that they end as runs that nothing disturbed, bit for bit.

Each trial takes a step that was compiled for 2 or 4 ranks, a launcher (threads, TCP, MPI, a simulated GPU) and a kind
of fault (trials.py), and is determined by its own seed but for the machine's timing. The last line is `N passed, N failed`.
"""

import argparse
import collections
import random
import shutil
import sys
import tempfile
import time
import traceback

from trials import KINDS
from world import SETUPS, Failure, World, launchers


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", nargs="?", type=float, default=1.0, help="how long new trials are begun (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the choices (default 0)")
    parser.add_argument("--only", default="", help="kinds of trial, comma-separated: " + ", ".join(KINDS))
    parser.add_argument("--launch", default="", help="launchers, comma-separated; default: all that are installed")
    parser.add_argument("--trials", type=int, default=0, help="so many instead of a time")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    return parser.parse_args()


def choices(options):
    """Trials without end: kind, launcher and a seed of their own."""
    available = [name for name in launchers() if not options.launch or name in options.launch.split(",")]
    wanted = options.only.split(",") if options.only else list(KINDS)
    unknown = [name for name in wanted if name not in KINDS]
    if unknown:
        sys.exit(f"error: unknown kind '{unknown[0]}', expected one of {', '.join(KINDS)}")
    pairs = [(name, launcher) for name in wanted for launcher in KINDS[name][1] if launcher in available]
    if not pairs:
        sys.exit("error: no launcher of these kinds is installed")
    generator = random.Random(options.seed)
    weights = [0.2 if launcher == "gpu" else 1.0 for _, launcher in pairs]  # a simulated step is slow
    while True:
        name, launcher = generator.choices(pairs, weights)[0]
        yield name, launcher, generator.randrange(2 ** 32)


def main():
    options = parse()
    folder = tempfile.mkdtemp(prefix="tessera-faults-")
    world = World(folder)
    passed, failed = collections.Counter(), collections.Counter()
    begin = time.monotonic()
    for number, (name, launcher, seed) in enumerate(choices(options), start=1):
        if number > options.trials if options.trials else time.monotonic() - begin > options.minutes * 60:
            break
        trial = random.Random(seed)
        setup = trial.choice(SETUPS["gpu" if launcher == "gpu" else "cpu"])
        out = f"run-{number}"
        started = time.monotonic()
        try:
            world.compile(setup)
            KINDS[name][0](world, trial, setup, launcher, out)
            passed[name] += 1
            result = "ok"
        except Failure as failure:
            failed[name] += 1
            result = "FAILED: " + str(failure)
        except Exception:  # a mistake of the drill, or a file that should be there
            failed[name] += 1
            result = "FAILED:\n" + traceback.format_exc()
        print(f"{number:4d} {name:15s} {launcher:5s} {setup.name:9s} seed {seed:10d} {time.monotonic() - started:6.1f} s  {result}",
              flush=True)
        world.clean(out)
    if options.keep:
        print("left in", folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    for name in KINDS:
        if passed[name] + failed[name]:
            print(f"  {name}: {passed[name]} passed, {failed[name]} failed")
    print(f"{sum(passed.values())} passed, {sum(failed.values())} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
