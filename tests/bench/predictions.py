#!/usr/bin/python3
"""What the cost model predicts for configurations with published figures, beside those figures, as a table in Markdown.

    tests/bench/predictions.py [--bin build/release/bin] [--only llama-3.1-8b]

Compiles each configuration with --report; no GPU takes part. A published figure without tokens/s is given by its MFU and the
FLOP that its authors count for a token. docs/benchmarks/predictions.md says what may be compared.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEAK = 989.4e12  # bf16 FLOP/s of an H100, dense
TITAN = 57.9e9  # FLOP that torchtitan counts for a token of Llama-3 8B at sequence 8192

# model, samples per rank and micro-batch, sequence, ranks, flags, [(who, tokens/s per GPU, GiB per GPU or None)]
ROWS = [
    ("llama-3.1-8b", 2, 4096, 8, ["--strategy", "zero3"], [
        ("compiler FSDP, inductor, bucketed (pytorch#179937)", 9369, 56.75),
        ("the same, collectives by copy engines", 9593, 57.96)]),
    ("llama-3.1-8b", 2, 4096, 8, ["--strategy", "zero3", "--remat", "selective"], []),
    ("llama-3.1-8b", 1, 8192, 8, ["--strategy", "zero3"], [
        ("torchtitan, whole-step CUDA graph, FSDP=8 (#3455), 43.35 % MFU", 0.4335 * PEAK / TITAN, None)]),
    ("llama-3.1-8b", 2, 8192, 8, ["--strategy", "zero3", "--remat", "selective"], [
        ("torchtitan 2024-12, FSDP2 eager, selective recomputation", 5762, 82.4),
        ("the same, torch.compile", 6667, 77.0)]),
    ("llama-3.1-8b", 2, 8192, 128, ["--strategy", "zero3", "--remat", "selective"], [
        ("torchtitan 2024-12, FSDP2 eager, selective recomputation", 5605, 67.0),
        ("the same, torch.compile", 6514, 62.0)]),
    ("llama-3.1-8b", 1, 8192, 8, ["--strategy", "zero3", "--accumulate", "16"], []),
    *(("llama-3.1-8b", 1, 8192, 8, ["--strategy", "zero3", "--accumulate", "16", "--precision", "fp8", "--fp8-recipe", recipe],
       [("Megatron-Bridge 25.11, FP8 current scaling, FSDP=8, 128 samples", 14451, None)])
      for recipe in ("tensorwise", "rowwise", "rowwise_hp", "block128")),
    ("llama-3.1-70b", 1, 8192, 64, ["--strategy", "zero3", "--remat", "full"], []),
    *(("llama-3.1-70b", 1, 8192, 64, ["--strategy", "zero3", "--remat", "full", "--precision", "fp8", "--fp8-recipe", recipe],
       [("Megatron-Bridge 26.04.01, FP8, TP 4 x PP 8", 1664, None)]) for recipe in ("tensorwise", "rowwise", "block128")),
    ("gpt2-xl", 16, 1024, 8, ["--strategy", "zero1", "--accumulate", "8", "--remat", "selective"], [
        ("llm.c, ZeRO-1 (scripts/run_gpt2_1558M.sh)", 46811, None)]),
]


def run(command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def predict(tools, folder, model, samples, sequence, ranks, flags):
    batch = samples * ranks
    path, report = os.path.join(folder, "model.onnx"), os.path.join(folder, "report.json")
    run([sys.executable, os.path.join(HERE, "shape_model.py"), model, f"--batch={batch}", f"--seq={sequence}", "-o", path])
    run([os.path.join(tools, "tessera-compile"), path, "--batch", batch, "--seq", sequence, "--mesh", f"shard={ranks}",
         *([] if "--precision" in flags else ["--precision", "bf16"]), *flags, "--target", "h100x8", f"--report={report}"])
    with open(report) as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--only", help="one model")
    a = parser.parse_args()
    print("| model, flags | GPUs | samples per GPU x sequence | tokens/s per GPU | MFU | exposed communication | memory, GiB | "
          "published, tokens/s per GPU and GiB | published / predicted |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tessera-predict-") as folder:
        for model, samples, sequence, ranks, flags, published in ROWS:
            if a.only and a.only != model:
                continue
            report = predict(a.bin, folder, model, samples, sequence, ranks, flags)
            step = report["step"]
            speed = report["tokens_per_second"] / ranks
            known = "; ".join(f"{who}: {rate:,.0f}" + (f", {memory}" if memory else "") for who, rate, memory in published)
            ratio = ", ".join(f"{rate / speed:.2f}" for _, rate, _ in published)
            shown = " ".join(flags)
            print(f"| {model} `{shown}` | {ranks} | {samples} x {sequence} | {speed:,.0f} | {report['mfu']:.1%} | "
                  f"{step['exposed_communication_seconds'] / step['seconds']:.1%} | "
                  f"{report['memory']['reserved_per_rank'] / 2**30:.1f} | {known} | {ratio} |")


if __name__ == "__main__":
    main()
