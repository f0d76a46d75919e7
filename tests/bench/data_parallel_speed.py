#!/usr/bin/env python3
"""Tokens per second of data-parallel training: Tessera's strategies, PyTorch DDP and FSDP2 over gloo, interleaved.

usage: data_parallel_speed.py --model gpt2.pt2 [--case gpt2|small] [--ranks 2] [--rounds 3] [--torch-python python3]
                              [--strategies ddp,zero2,zero3] [--peers ddp,fsdp2] [--target here.json]

One thread per rank; the case's batch is split over the ranks. Each round runs every system once; a round's figure is the
median step without the first of the process. With --target (a file of tessera-calibrate on this machine, made when nothing
else ran) the prediction of `tessera-compile --report` stands beside what was measured: step, exposed communication, memory.
Prints tables and, with --json, a record for docs/benchmarks.
"""

import argparse
import json
import os
import statistics
import tempfile

from training_speed import CASES, HERE, ROOT, Tessera, medians, run


class Strategy(Tessera):
    """Tessera's training by one strategy, with its prediction where a target is given."""

    def __init__(self, a, case, work, strategy):
        super().__init__(a, case, os.path.join(work, strategy), threads=1,
                         flags=["--mesh", f"shard={a.ranks}", "--strategy", strategy])
        self.predicted = None
        if a.target:
            report = os.path.join(self.work, "report.json")
            run([*self.compile, "--target", a.target, f"--report={report}"])
            with open(report) as file:
                self.predicted = json.load(file)

    def median(self, field):
        return statistics.median(record[field] for record in self.metrics)


class Torch:
    def __init__(self, a, case, how):
        shape = [f"--{key}={value}" for key, value in case.items()]
        self.command = [a.torch_python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={a.ranks}",
                        os.path.join(HERE, "torch_training.py"), *shape, "--threads=1", f"--parallel={how}"]

    def round(self):
        lines = run(self.command).stdout.splitlines()
        record = json.loads(next(line for line in lines if line.startswith("{")))
        return record["seconds"], record["launch"]


def print_predictions(systems):
    print(f"{'':16s} {'step, s':>9s} {'predicted':>10s} {'off by':>7s} {'exposed, s':>11s} {'predicted':>10s} "
          f"{'reserved, MiB':>14s} {'allocated':>10s}")
    for name, system in systems.items():
        if not isinstance(system, Strategy) or not system.predicted:
            continue
        step, predicted = system.median("step_seconds"), system.predicted["step"]
        memory = system.metrics[-1]["memory"]
        print(f"{name:16s} {step:9.3f} {predicted['seconds']:10.3f} {predicted['seconds'] / step - 1:+7.1%} "
              f"{system.median('exposed_communication_seconds'):11.3f} {predicted['exposed_communication_seconds']:10.3f} "
              f"{system.predicted['memory']['reserved_per_rank'] / 2**20:14.1f} "
              f"{memory['allocated'] / memory['ranks_in_process'] / 2**20:10.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="gpt2")
    parser.add_argument("--model", required=True, help="the case's ONNX file")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strategies", default="ddp,zero2,zero3", help="of Tessera")
    parser.add_argument("--peers", default="ddp,fsdp2", help="of PyTorch; empty: none")
    parser.add_argument("--torch-python", default="python3", help="a Python with torch")
    parser.add_argument("--target", help="target file of this machine, for predictions")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--json", help="append a record to this file")
    a = parser.parse_args()
    case = CASES[a.case]
    if case["batch"] % a.ranks:
        parser.error(f"a batch of {case['batch']} does not divide over {a.ranks} ranks")
    tokens = case["batch"] * case["seq"]

    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as work:
        systems = {f"tessera {s}": Strategy(a, case, work, s) for s in a.strategies.split(",") if s}
        systems |= {f"torch {how}": Torch(a, case, how) for how in a.peers.split(",") if how}
        speed = {name: [] for name in systems}
        for _ in range(a.rounds):
            for name, system in systems.items():
                seconds, _ = system.round()
                speed[name].append(tokens / statistics.median(seconds[1:]))

    print(f"{a.case}: B={case['batch']} T={case['seq']} fp32, {a.ranks} ranks of 1 thread, {a.rounds} rounds")
    peers = [name for name in systems if name.startswith("torch")]
    print(f"{'':16s} {'tokens/s (range)':>24s}" + "".join(f" {'/ ' + peer:>22s}" for peer in peers))
    for name in systems:
        row = f"{name:16s} {medians(speed[name]):>24s}"
        if name not in peers:
            for peer in peers:
                ratios = [t / o for t, o in zip(speed[name], speed[peer])]
                row += f" {statistics.median(ratios):8.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        print(row)
    if a.target:
        print_predictions(systems)
    if a.json:
        with open(a.json, "a") as file:
            file.write(json.dumps({"case": a.case, "ranks": a.ranks, "tokens_per_second": speed}) + "\n")


if __name__ == "__main__":
    main()
