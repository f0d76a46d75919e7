"""What is compiled by prepare.py and run by run.py: one list, so that both agree on names."""

import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDENS = os.path.join(ROOT, "tests", "end_to_end", "goldens")
PREPARED = os.path.join(ROOT, "build", "gpu-tests")
LIMIT = 64 << 20  # bytes of what prepare.py leaves, so that it can be carried

# strategy and ranks of the comparison with CPU results. One rank is what a communicator of one is used for.
RANKS = [(strategy, ranks) for ranks in (2, 1, 4) for strategy in ("zero3", "ddp")]
# In this order, so that a run that is cut off has met both models and both precisions.
TRAININGS = [("gpt", "fp32"), ("llama", "bf16"), ("gpt", "bf16"), ("llama", "fp32")]
# What of FP8 a GPU has, those first whose scales are easiest to misplace; sm_80 has nothing. Scales and kernels of rowwise_hp
# are those of rowwise and tensorwise.
FP8 = {"sm_90": ("block128", "rowwise", "tensorwise"), "sm_100": ("mxfp8", "tensorwise", "rowwise")}
FP8_MODELS = ("llama", "gpt")  # of goldens/fp8
FP8_STEPS = 5
# Files of the kernel tests whose kernels are run one by one, beside those of the models above.
KERNEL_FILES = ("basic", "elementwise", "gpu", "gpu-block-sums", "index", "reduce")
GPU_KERNEL_FILES = ("gpu-block-sums",)  # those of kernels that no CPU has

# name -> model of shape_model.py, batch, sequence, timed steps, title. The first are the figures to report, with steps for
# 5 s at the predicted speed, in whole blocks of torch_step.py; the last two prove the scripts on a CPU.
BENCH = {
    "gpt2": ("gpt2", 32, 1024, 112, "GPT-2 124M"),
    "gpt2-xl": ("gpt2-xl", 8, 1024, 40, "GPT-2 1.5B"),
    "llama-1b": ("llama-1b", 2, 4096, 48, "Llama-style 1B"),
    "qwen2-1.5b": ("qwen2-1.5b", 2, 4096, 40, "Qwen2-1.5B"),
}
CPU_BENCH = {
    "gpt2-tiny": ("gpt2-tiny", 4, 64, 8, "tiny GPT-2"),
    "tiny": ("tiny", 4, 64, 8, "tiny Llama-style"),
}
# Vocabularies of PyTorch's padded rows: nanoGPT and llm.c take 50304 for 50257.
PADDED = {"gpt2": 50304, "gpt2-xl": 50304, "gpt2-tiny": 320}


# Of them, those whose layers are also timed in 8 bits, by the first recipe of FP8.
FP8_BENCH = ("llama-1b", "qwen2-1.5b")


EPILOGUES = ("none", "bias", "all")


def bench_name(model, epilogues, usual):
    """The artifact of a benchmark: the model's own has the epilogues that are `usual` for the GPU."""
    return model if epilogues == usual else f"{model}-epilogues-{epilogues}"


def fp8_bench_name(model, recipe):
    return f"{model}-fp8-{recipe}"


def fp8_name(model, recipe):
    return f"fp8-{model}-{recipe}"


def fp8_cases(gpu):
    return [(model, recipe) for recipe in FP8.get(gpu, ()) for model in FP8_MODELS]


def fp8_record(model):
    """Of a training of goldens/fp8: the model's file and what was recorded."""
    folder = os.path.join(GOLDENS, "fp8")
    with open(os.path.join(folder, model + ".json")) as file:
        return os.path.join(folder, model + ".onnx"), json.load(file)


def oracle_name(model, precision):
    return f"{model}-{precision}"


def ranks_name(model, precision, strategy, ranks):
    return f"{model}-{precision}-{strategy}-{ranks}"


def ranks_cases():
    """(model, precision, strategy, ranks): both precisions, so that bf16 gathers and reductions are met too."""
    return [(model, precision, strategy, ranks) for strategy, ranks in RANKS for model, precision in TRAININGS]
