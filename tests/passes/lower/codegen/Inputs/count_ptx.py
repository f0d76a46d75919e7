#!/usr/bin/env python3
"""Counts the instructions of PTX kernels for an element, and fails where a GPU could not issue them in the time its bytes take.

    kernel-check --ptx=sm_90 kernels.mlir | count_ptx.py --elements=N --gpu=h100 kernel=bytes …

Instructions an element <= multiprocessors * lanes * clock / bandwidth * bytes an element, where `lanes` is 128 for all
instructions and 16 for those of the unit for special functions. The code must be straight: each thread executes it once.
neg and abs are not counted: they become modifiers of operands. Nor is cvta, which for global addresses is nothing."""

import argparse
import re
import sys

MULTIPROCESSORS, CLOCK = 132, 1.755e9
BANDWIDTH = {"h100": 3.35e12, "h200": 4.8e12}  # bytes a second, NVIDIA's data sheets
LANES, SPECIAL_LANES = 128, 16  # results a cycle and multiprocessor, CUDA C++ Programming Guide, arithmetic instructions
SPECIAL = ("ex2.", "lg2.", "rcp.", "rsqrt.", "sqrt.", "sin.", "cos.", "tanh.")


def kernels(ptx):
    """Instructions by kernel, and threads by kernel."""
    bodies, threads, name = {}, {}, None
    for line in ptx.splitlines():
        if entry := re.search(r"\.entry (\w+)\(", line):
            name = entry[1]
            bodies[name] = []
        elif launch := re.match(r"// (\w+): (\d+) blocks of (\d+) x (\d+)", line):
            threads[launch[1]] = int(launch[2]) * int(launch[3]) * int(launch[4])
        elif name and (instruction := re.match(r"\s+(@!?%p\d+ )?\s*([a-z]\w*[\w.:]*)", line)):
            if not instruction[2].startswith(("neg.f32", "abs.f32", "cvta.")):
                bodies[name].append(instruction[2])
    return bodies, threads


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--gpu", choices=BANDWIDTH, required=True)
    parser.add_argument("kernels", nargs="+", metavar="kernel=bytes")
    options = parser.parse_args()
    bodies, threads = kernels(sys.stdin.read())
    failed = False
    for asked in options.kernels:
        name, width = asked.split("=")
        body = bodies[name]
        for unit, lanes, count in (
            ("instructions", LANES, len(body)),
            ("of special functions", SPECIAL_LANES, sum(op.startswith(SPECIAL) for op in body)),
        ):
            needed = count * threads[name] / options.elements
            budget = MULTIPROCESSORS * lanes * CLOCK / BANDWIDTH[options.gpu] * int(width)
            print(f"{name}: {needed:.1f} {unit} an element, {budget:.1f} in the time of {width} bytes")
            failed |= needed > budget
        if any(op.startswith(("call", "div.rn", "rcp.rn")) for op in body):
            print(f"{name}: a call or an exact division, which is a function of many instructions")
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
