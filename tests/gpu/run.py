"""Runs everything that needs a GPU and says how many of it passed.

usage: run.sh [--only PARTS] [--out DIR] [--device cuda|cpu] [--deadline 540]

Parts, by commas: probe (what is on the machine, in seconds), kernels, attention, oracle, ranks, fp8, modules, sanitizer,
bench:MODEL for each model of the benchmark (bench: all of them). Writes results.json and results.md to --out, anew after each
case: a run that is killed keeps what it did. A part that cannot run says why and counts as failed. --device cpu runs the same comparisons with
artifacts for the CPU of the machine that prepared them: it proves the scripts, not the backend.
"""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile

import attention
import bench
import cases
import modules
import probe
import results
import suite as common
import training

# Seconds that a part may take. Those of DEFAULT are 510 together; the probe and two models of the benchmark fit ten minutes.
LIMITS = {"probe": 60, "kernels": 110, "attention": 240, "oracle": 120, "ranks": 180, "fp8": 40, "modules": 150, "sanitizer": 420, "bench": 260, "bench:gpt2-xl": 300}
DEFAULT = "probe,kernels,oracle,ranks,fp8"
LOST = 75  # status of a process whose GPU context a kernel has ended


def kernels(suite):
    """In processes of their own: an error of a kernel ends the GPU context, and the next process goes on behind it; a kernel
    that hangs ends the part."""
    launched = "extents" if suite.device == "cpu" else "launches"
    wanted = sum(len(group[launched]) + 1 for group in suite.kernel_groups())
    before, done, status, said = len(suite.parts), 0, LOST, ""
    while status == LOST and done < wanted:
        limit = max(1, suite.left())
        process = subprocess.Popen(
            [sys.executable, "-u", os.path.join(cases.HERE, "run.py"), "--kernels-in", suite.work, "--device", suite.device,
             "--deadline", str(0.9 * limit), "--after", str(done)], stdout=subprocess.PIPE, text=True, env=suite.plain)
        timer = common.kill_after(process, limit)
        for line in process.stdout:
            if not line.startswith("{"):
                said = line
                continue
            part = common.Part("")
            part.__dict__.update(json.loads(line))
            suite.record(part)
        status = process.wait()
        timer.cancel()
        done = len(suite.parts) - before
    if done < wanted:
        why = f"not reached; the process ended with {status} {said.strip()}"
        for _ in range(wanted - done):
            suite.parts.append(common.Part("a kernel that was not reached"))
            suite.parts[-1].why = why
        results.write(suite, complete=False)
        print(f"FAILED {wanted - done} kernels were {why}")


def kernels_in_process(options):
    import kernels as part
    suite = common.Suite(options.device, None, options.kernels_in, options.deadline)
    suite.record = lambda result: print(json.dumps(result.__dict__), flush=True)
    with open(suite.prepared("manifest.json")) as file:
        suite.manifest = json.load(file)
    return 0 if part.run(suite, options.after) else LOST


def parts_of(text, models):
    """The parts that --only names, in the order of the suite; raises ValueError for one that is not known."""
    known = ["probe", "kernels", "attention", "oracle", "ranks", "fp8", "modules", "sanitizer", *(f"bench:{model}" for model in models)]
    wanted = set()
    for name in text.split(","):
        wanted.update(f"bench:{model}" for model in models) if name == "bench" else wanted.add(name)
    if unknown := wanted - set(known):
        raise ValueError(f"unknown parts {sorted(unknown)}, expected some of {', '.join([*known, 'bench'])}")
    return [name for name in known if name in wanted]


def run(suite, options, chosen):
    suite.facts = {"date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
                   "command": "tests/gpu/run.sh " + shlex.join(sys.argv[1:]), "device": suite.device}
    ready = None
    with suite.stage(LIMITS["probe"]):
        for name, value in probe.machine().items():
            suite.note(name, value)
        with suite.part("what was prepared is there") as prepared:
            suite.unpack(options.prepared)
        if suite.device == "cuda":
            with suite.part("a GPU can be used") as ready:
                ready.note = suite.find_gpu()
                if prepared.passed:
                    suite.fits()
        if not prepared.passed or ready is None:
            ready = prepared
    runtime = ready
    if ready.passed:
        with suite.part("tessera-run starts") as runtime:
            suite.use_runtime(options.runtime)
            runtime.note = suite.facts["runtime"]
            if suite.device == "simulated":
                suite.simulate(os.path.abspath(options.simulator))
    steps = {"kernels": kernels, "attention": attention.run, "oracle": training.oracle, "ranks": training.ranks, "fp8": training.fp8, "modules": modules.run, "sanitizer": training.sanitizer}
    for name in chosen:
        kind, _, model = name.partition(":")
        if kind == "probe":
            continue
        if not ready.passed:
            suite.fail(name, "not run: " + ready.why)
        elif kind in ("attention", "modules") and suite.device == "cpu":
            suite.fail(name, "there is nothing for a CPU in it")
        elif kind == "bench" and suite.device == "simulated":
            suite.fail(name, "a simulated GPU has no times")
        elif not runtime.passed and kind not in ("kernels", "bench"):
            suite.fail(name, "not run: " + runtime.why)
        else:
            with suite.stage(LIMITS.get(name) or LIMITS[kind]):
                bench.run(suite, model, options.rows) if kind == "bench" else steps[kind](suite)


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=DEFAULT, help=f"parts, by commas (default {DEFAULT})")
    parser.add_argument("--rows", type=lambda text: text.split(","), help="systems of the benchmark, by commas (default: "
                        f"{','.join(bench.rows_of('gpt2'))} for GPT-2); "
                        + "; ".join(f"{system} takes {', '.join('+' + option for option in options)}"
                                    for system, options in bench.OPTIONS.items()))
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(cases.ROOT, "build", "gpu-results"),
                        help="a folder that has no results yet")
    parser.add_argument("--device", choices=("cuda", "simulated", "cpu"), default="cuda")
    parser.add_argument("--simulator", default=os.path.join(cases.ROOT, "build", "release", "gpu-simulator"),
                        help="folder of the simulated driver (--device simulated)")
    parser.add_argument("--prepared", default=os.path.join(cases.PREPARED, "prepared.tar.xz"))
    parser.add_argument("--runtime", help="folder of a tessera-run to test instead of the packed one")
    parser.add_argument("--deadline", type=float, default=540, help="seconds; what is not done by then has failed")
    parser.add_argument("--kernels-in", help=argparse.SUPPRESS)
    parser.add_argument("--after", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kernels_in:
        return kernels_in_process(options)
    try:
        chosen = parts_of(options.only, cases.CPU_BENCH if options.device == "cpu" else cases.BENCH)
        for row in options.rows or ():
            bench.parse(row)
        if os.path.exists(os.path.join(options.out, "results.json")):
            raise ValueError(f"{options.out} has results already, which are not written over: name another --out")
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(prefix="tessera-gpu-") as work:
        suite = common.Suite(options.device, options.out, work, options.deadline)
        run(suite, options, chosen)
        results.write(suite, complete=True)
        passed = sum(part.passed for part in suite.parts)
        print(f"{passed} passed, {len(suite.parts) - passed} failed")
        return 0 if passed == len(suite.parts) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
