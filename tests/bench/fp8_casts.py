#!/usr/bin/python3
"""Bandwidth of the CPU's generated casts of 8-bit floats against memcpy of as many bytes, one thread, in turn.

    tests/bench/fp8_casts.py [--bin build/release/bin] [--elements 16777216] [--repeats 9]

Prints a row for each cast: bytes read and written per second, and the median of its ratio to memcpy's.
"""
import argparse
import ctypes
import os
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIDTH = {"f32": 4, "bf16": 2, "f8E4M3FN": 1, "f8E5M2": 1}
CASTS = [("f32", "f8E4M3FN"), ("bf16", "f8E4M3FN"), ("bf16", "f8E5M2"), ("f8E4M3FN", "bf16"), ("f8E5M2", "bf16")]


def source(elements):
    """Quantised with one scale, or widened."""
    text = ""
    for number, (read, written) in enumerate(CASTS):
        x, y = f"tensor<{elements}x{read}>", f"tensor<{elements}x{written}>"
        narrows = WIDTH[written] == 1
        op = f"train.quantize %x, %s : ({x}, tensor<f32>) -> {y}" if narrows else f"train.convert %x : ({x}) -> {y}"
        text += f"func.func @cast{number}(%x: {x}{', %s: tensor<f32>' if narrows else ''}) -> {y} {{\n  %y = {op}\n  return %y : {y}\n}}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--repeats", type=int, default=9)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "casts.mlir")
        with open(path, "w") as file:
            file.write(source(a.elements))
        lowered, library = os.path.join(folder, "kernels.mlir"), os.path.join(folder, "kernels.so")
        subprocess.run([os.path.join(a.bin, "tessera-opt"), path, "--decompose", "--fuse", "--outline-kernels", "-o", lowered], check=True)
        subprocess.run([os.path.join(a.bin, "kernel-check"), lowered, f"--shared-object={library}"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(lowered) as file:
            symbols = re.findall(r"func\.func @(k\d+\w*)\(", file.read())
        loaded = ctypes.CDLL(library)
        scale = np.array(3.0, np.float32)
        values = np.random.default_rng(0).standard_normal(a.elements).astype(np.float32)
        inputs = {"f32": values, "bf16": (values.view(np.uint32) >> 16).astype(np.uint16),
                  "f8E4M3FN": np.random.default_rng(1).integers(0, 120, a.elements).astype(np.uint8)}
        inputs["f8E5M2"] = inputs["f8E4M3FN"]
        print("| cast | GB/s | of memcpy |\n|---|---|---|")
        for (read, written), symbol in zip(CASTS, symbols, strict=True):
            x, y = inputs[read], np.zeros(a.elements * WIDTH[written], np.uint8)
            moved = a.elements * (WIDTH[read] + WIDTH[written])
            half = np.ones(moved // 2, np.uint8)
            copy = np.zeros_like(half)
            buffers = [x, scale, y] if WIDTH[written] == 1 else [x, y]
            addresses = (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))
            kernel = getattr(loaded, symbol)
            kernel.argtypes, kernel.restype = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64], None
            times, ratios = [], []
            for repeat in range(a.repeats + 1):
                begin = time.perf_counter()
                kernel(addresses, 0, a.elements)
                middle = time.perf_counter()
                ctypes.memmove(copy.ctypes.data, half.ctypes.data, half.nbytes)
                end = time.perf_counter()
                if repeat:  # the first one touches memory
                    times.append(middle - begin)
                    ratios.append((end - middle) / (middle - begin))
            print(f"| {read} to {written} | {moved / statistics.median(times) / 1e9:.1f} | {statistics.median(ratios):.2f} |")


if __name__ == "__main__":
    main()
