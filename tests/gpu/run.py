"""Runs everything that needs a GPU and says how many of it passed.

usage: run.sh [--only kernels,oracle,ranks,sanitizer,bench] [--out DIR] [--device cuda|cpu] [--deadline 540]

Writes results.json and results.md to --out. A part that cannot run says why and counts as failed. --device cpu runs the
same comparisons with artifacts for the CPU of the machine that prepared them: it proves the scripts, not the backend.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile

import bench
import cases
import suite as common
import training

PARTS = ("kernels", "oracle", "ranks", "sanitizer", "bench")


def kernels(suite):
    """In a process of its own: an error of a kernel ends the GPU context, a kernel that hangs the process."""
    command = [sys.executable, "-u", os.path.join(cases.HERE, "run.py"), "--kernels-in", suite.work, "--device",
               suite.device, "--deadline", str(max(1, min(suite.patience(120), suite.left())))]
    before = len(suite.parts)
    wanted = sum(len(group["launches"]) + 1 for group in suite.manifest["kernels"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=suite.environment)
    timer = common.kill_after(process, max(1, min(suite.patience(150), suite.left())))
    said = ""
    for line in process.stdout:
        if not line.startswith("{"):
            said = line
            continue
        part = common.Part("")
        part.__dict__.update(json.loads(line))
        suite.record(part)
    process.wait()
    timer.cancel()
    if lost := wanted - (len(suite.parts) - before):
        for _ in range(lost):
            suite.parts.append(common.Part("a kernel that was not reached"))
        print(f"FAILED {lost} kernels were not reached; the process ended with {process.returncode} {said.strip()}")


def kernels_in_process(options):
    import kernels as part
    suite = common.Suite(options.device, None, options.kernels_in, options.deadline)
    suite.record = lambda result: print(json.dumps(result.__dict__), flush=True)
    with open(suite.prepared("manifest.json")) as file:
        suite.manifest = json.load(file)
    part.run(suite)


def report(suite, out):
    passed = sum(part.passed for part in suite.parts)
    failed = len(suite.parts) - passed
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "results.json"), "w") as file:
        json.dump({"facts": suite.facts, "passed": passed, "failed": failed, "benchmarks": suite.rows,
                   "parts": [part.__dict__ for part in suite.parts]}, file, indent=1)
    with open(os.path.join(out, "results.md"), "w") as file:
        file.write("".join(f"- {name}: {value}\n" for name, value in suite.facts.items()))
        file.write(f"\n{passed} passed, {failed} failed\n\n" + bench.table(suite.rows))
        for part in suite.parts:
            if not part.passed:
                file.write(f"- failed: {part.name}: {part.why[:500]}\n")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


def main():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas")
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(cases.ROOT, "build", "gpu-results"))
    parser.add_argument("--device", choices=("cuda", "simulated", "cpu"), default="cuda")
    parser.add_argument("--simulator", default=os.path.join(cases.ROOT, "build", "release", "gpu-simulator"),
                        help="folder of the simulated driver (--device simulated)")
    parser.add_argument("--prepared", default=os.path.join(cases.PREPARED, "prepared.tar.xz"))
    parser.add_argument("--runtime", help="folder of a tessera-run to test instead of the packed one")
    parser.add_argument("--bench", help="only these benchmarks, by commas")
    parser.add_argument("--deadline", type=float, default=540, help="seconds; what is not done by then has failed")
    parser.add_argument("--kernels-in", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kernels_in:
        return kernels_in_process(options)
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)}, expected some of {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory(prefix="tessera-gpu-") as work:
        suite = common.Suite(options.device, options.out, work, options.deadline)
        suite.facts["machine"] = f"{platform.machine()}, {os.cpu_count()} processors, {platform.platform()}"
        with suite.part("what was prepared is there") as ready:
            suite.unpack(options.prepared)
        if ready.passed and options.device == "cuda":
            with suite.part("a GPU can be used") as ready:
                ready.note = suite.find_gpu()
        runtime = ready
        if ready.passed:
            with suite.part("tessera-run starts") as runtime:
                suite.use_runtime(options.runtime)
                runtime.note = suite.facts["runtime"]
                if options.device == "simulated":
                    suite.simulate(os.path.abspath(options.simulator))
        steps = {"kernels": kernels, "oracle": training.oracle, "ranks": training.ranks, "sanitizer": training.sanitizer,
                 "bench": lambda s: bench.run(s, options.bench)}
        for name in PARTS:
            if name not in chosen:
                continue
            if not ready.passed:
                suite.fail(name, "not run: " + ready.why)
            elif name == "bench" and options.device == "simulated":
                suite.fail(name, "a simulated GPU has no times")
            elif not runtime.passed and name not in ("kernels", "bench"):
                suite.fail(name, "not run: " + runtime.why)
            else:
                steps[name](suite)
        return report(suite, options.out)


if __name__ == "__main__":
    sys.exit(main())
