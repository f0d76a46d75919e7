#!/usr/bin/env python3
"""Trains one model under FSDP2 with an optimizer that was made before or after fully_shard(), with accelerate, and with Tessera's
ZeRO-3, from the same weights on the same batches, and compares losses and memory. Needs torch, transformers and accelerate.

  python tools/fsdp2-benchmark/main.py --output-dir results/
  python tools/fsdp2-benchmark/main.py --output-dir results/ --model hf:qwen2 --set num_hidden_layers=6 --set hidden_size=512 …

Its status is 1 if the losses of a variant that trains differ from those of the first by more than 1e-4.
"""

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "frontends", "python")]
from visualize import table  # noqa: E402  (and the path of command_line)
from command_line import Parser, fail, number  # noqa: E402

NOT_FIXED = "torch_optimizer_before_fsdp_not_fixed"
VARIANTS = ("torch_optimizer_after_fsdp", NOT_FIXED, "torch_optimizer_before_fsdp_fixed", "accelerate", "tessera")
TOLERANCE = 1e-4  # relative: variants add in different orders, and AdamW makes steps of gradients that are only rounding as large as others
OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.999], "epsilon": 1e-8, "weight_decay": 0.01}
DEFAULT = {"num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_key_value_heads": 2,
           "vocab_size": 4096, "max_position_embeddings": 1024}  # of a Llama
SEED = 0


def names(text):
    """The type of --variants."""
    found = text.split(",")
    wrong = next((name for name in found if name not in VARIANTS), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(f"'{wrong}' is not one of {', '.join(VARIANTS)}")
    return [name for name in VARIANTS if name in found]


def parse():
    parser = Parser(__doc__)
    parser.add_argument("--output-dir", required=True, help="folder of the results; a new or an empty one")
    parser.add_argument("--model", help="a folder of Hugging Face's, a config.json, or hf:<type> (default: a Llama of 5 M parameters)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes a key of the model's configuration")
    parser.add_argument("--steps", type=number(1), default=20, help="optimizer steps (default: 20)")
    parser.add_argument("--batch", type=number(1), default=4, help="samples of a step, over all ranks (default: 4)")
    parser.add_argument("--seq", type=number(2), default=64, help="tokens of a sample (default: 64)")
    parser.add_argument("--variants", type=names, default=list(VARIANTS), metavar="A,B,…", help=f"default: {', '.join(VARIANTS)}")
    parser.add_argument("--nproc", type=number(1), default=2, help="ranks, each a process (default: 2)")
    parser.add_argument("--save-memory-snapshot", action="store_true",
                        help="on GPUs snapshots of PyTorch's allocator, for pytorch.org/memory_viz; of Tessera memory.json, for "
                             "tools/plot-memory.py")
    a = parser.parse_args()
    if a.batch % a.nproc:
        parser.error(f"--batch {a.batch} does not divide over --nproc {a.nproc}")
    if os.path.exists(a.output_dir) and (not os.path.isdir(a.output_dir) or os.listdir(a.output_dir)):
        fail(f"{a.output_dir} is there and not an empty folder", 2)
    return a


def load(a):
    """(module from tokens to logits, its example inputs) of --model, without dropout."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import accelerate  # noqa: F401
        import torch
        from tessera.configuration import make_configuration
        from tessera.errors import ExportError
        from tessera.targets import load_hugging_face, read_settings
        import transformers
    except ImportError as why:
        fail(f"{why}: pip install torch transformers accelerate")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(SEED)
    try:
        name, settings = (a.model or "hf:llama").removeprefix("hf:"), (DEFAULT if a.model is None else {}) | read_settings(a.set)
        config = make_configuration(name, settings, say=lambda _: None)
        settings |= {key: 0.0 for key, value in config.to_dict().items() if "drop" in key and isinstance(value, float)}
        module, inputs, inputs_names = load_hugging_face(name, settings, 2, a.seq, say=lambda _: None)
    except ExportError as why:
        fail(str(why), 2)
    if len(inputs_names) != 1:
        fail(f"{a.model} is no causal language model", 2)
    most = getattr(module.model.config, "max_position_embeddings", a.seq)
    if a.seq > most:
        fail(f"--seq {a.seq}: the model has {most} positions", 2)
    return module, inputs


def write_inputs(a, module, settings, folder):
    """Writes what all variants read: the configuration and initial weights of the model, the batches, and the settings. Tokens are
    drawn, small ones more often than large ones, so that there is something to learn."""
    import numpy
    from safetensors.torch import save_file
    module.model.config.save_pretrained(os.path.join(folder, "model"))
    save_file({name: value.detach().contiguous() for name, value in module.model.named_parameters()},
              os.path.join(folder, "model", "model.safetensors"), metadata={"format": "pt"})
    drawn = numpy.random.default_rng(SEED).random((a.steps * a.batch, a.seq + 1))
    tokens = (module.model.config.get_text_config().vocab_size * drawn**3).astype(numpy.int64)
    numpy.savez(os.path.join(folder, "batches.npz"), input_ids=tokens[:, :-1], targets=tokens[:, 1:])
    with open(os.path.join(folder, "settings.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file, indent=1)


def reason(log):
    """The first error of what some ranks printed, in one line; None if there is none."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [re.sub(r"^\[rank\d+\]: ", "", line.strip()) for line in file]
    return next((line for line in lines if re.match(r"(\S+: )?(error: |[\w.]*(Error|Exception)\b)", line)), None)


def launch(variant, words, settings, folder):
    """Runs a program once on every rank by torchrun, in the folder. What it prints is in VARIANT/log.txt there."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={settings['ranks']}", *words]
    own = {"OMP_NUM_THREADS": str(settings["threads"])} | ({} if settings["device"] == "cuda" else {"CUDA_VISIBLE_DEVICES": ""})
    log = os.path.join(folder, variant, "log.txt")
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=folder, env=os.environ | own)
        try:
            process.wait()
        except BaseException:  # a signal: torchrun ends the ranks
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        if reason(log) is None:
            with open(log, encoding="utf-8", errors="replace") as file:
                sys.stderr.writelines(file.readlines()[-20:])
        fail(f"{variant}: {reason(log) or f'ended with status {process.returncode}'}")


def run_torch(variant, settings, folder):
    """The records of all ranks of a variant of PyTorch (pytorch.py)."""
    launch(variant, [os.path.join(HERE, "pytorch.py"), variant, "."], settings, folder)
    ranks = []
    for rank in range(settings["ranks"]):
        with open(os.path.join(folder, variant, f"rank-{rank}.json"), encoding="utf-8") as file:
            ranks.append(json.load(file))
    common = {key: [rank.pop(key) for rank in ranks][0] for key in ("losses", "seconds", "changed")}
    return common | {"ranks": ranks}


def changed(folder):
    """How far Tessera moved the parameters, as pytorch.py counts it."""
    from safetensors import safe_open
    moved = norm = 0.0
    with safe_open(os.path.join(folder, "model", "model.safetensors"), "pt") as initial, \
            safe_open(os.path.join(folder, "tessera", "run", "model.safetensors"), "pt") as trained:
        for name in initial.keys():
            before, after = initial.get_tensor(name).double(), trained.get_tensor(f"model.{name}").double()
            moved, norm = moved + float((after - before).square().sum()), norm + float(before.square().sum())
    return (moved / norm) ** 0.5


def run_tessera(module, inputs, settings, folder):
    """Exports, compiles and trains the model in Tessera. Memory is what the plan says, and what each rank's process has:
    rank 0 after every step, the others after the first."""
    import tessera
    from tessera.errors import CompileError, ExportError
    from tessera.tools import find_tool
    os.makedirs(os.path.join(folder, "tessera"))
    program, artifact, run = (os.path.join("tessera", name) for name in ("model.pt2", "model.tessera", "run"))
    target = {}
    if settings["device"] == "cuda":
        import torch
        target = {"target": "sm_{}{}".format(*torch.cuda.get_device_capability())}
    try:
        tessera.export(module, inputs).save(os.path.join(folder, program))
        tessera.compile(os.path.join(folder, program), os.path.join(folder, artifact), batch=settings["batch"], seq=settings["seq"],
                        mesh={"shard": settings["ranks"]}, strategy="zero3", optimizer="adamw", no_decay="none", **OPTIMIZER, **target)
    except ExportError as why:
        fail(f"tessera: {why}")
    except CompileError as why:
        fail(f"tessera: {why.reason}")
    launch("tessera", ["--no-python", os.path.abspath(find_tool("tessera-run")), artifact, "--data", "batches.npz", "--order", "sequential",
                       "--steps", str(settings["steps"]), "--threads", str(settings["threads"]), "--out", run,
                       *(["--memory-snapshot"] if settings["snapshot"] else [])], settings, folder)
    trained = tessera.Run(os.path.join(folder, run))
    records = trained.records
    steps = [record for record in records if "loss" in record]
    prepared, warm = (next(record["ranks"] for record in records if record.get("stage") == stage)
                      for stage in ("after model creation", "after warm-up"))
    ranks = []
    for rank, (before, after) in enumerate(zip(prepared, warm)):
        figures = {figure: [before[own]] + len(steps) * [after[own]] for figure, own in
                   (("allocated", "allocated"), ("peak_allocated", "peak"), ("reserved", "reserved"), ("resident", "rss"))}
        if rank == 0:
            figures["resident"][1:] = [step["memory"]["rss"] for step in steps]
        ranks.append(figures)
    return {"losses": trained.losses, "seconds": [step["step_seconds"] for step in steps],
            "changed": changed(folder), "ranks": ranks, "version": trained.settings["tessera"]}


def compare(variants):
    """Gives each variant "off_by", the largest relative difference of a step's loss to the first variant that trains (None: it is the
    first), and "trains". Returns what is wrong, in sentences."""
    base = next((name for name in variants if name != NOT_FIXED), None)
    wrong = []
    for name, variant in variants.items():
        variant["trains"] = variant["changed"] > 0
        off = [abs(own / other - 1) for own, other in zip(variant["losses"], variants[base or name]["losses"])]
        step = next((step for step, each in enumerate(off, 1) if not each <= TOLERANCE), None)
        variant["off_by"] = None if name == (base or name) else max(off)
        if name != NOT_FIXED and step is not None:
            wrong.append(f"the losses of {name} differ from those of {base}, in step {step} by {off[step - 1]:.1e}; "
                         f"at most {TOLERANCE:.0e} is rounding")
        if name != NOT_FIXED and not variant["trains"]:
            wrong.append(f"{name} does not train: its parameters do not change")
    return wrong


def facts(settings, others):
    """Date, command, machine and versions, `others` among them."""
    import importlib.metadata as metadata
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = re.search(r"model name\s*: (.*)", file.read())
    machine = {"cpu": cpu[1] if cpu else os.uname().machine, "cores": os.cpu_count()}
    if settings["device"] == "cuda":
        import torch
        machine["gpu"] = torch.cuda.get_device_name()
    versions = {"python": sys.version.split()[0], **{name: metadata.version(name) for name in ("torch", "transformers", "accelerate")}}
    return {"date": datetime.date.today().isoformat(), "command": shlex.join(["python", *sys.argv]), "machine": machine,
            "versions": versions | others}


@contextlib.contextmanager
def finished(folder):
    """A folder that gets its name when the block ends, and is removed if it does not."""
    work = f"{os.path.abspath(folder)}.{os.getpid()}"
    try:
        os.makedirs(work)
    except OSError as why:
        fail(f"{folder}: {why.strerror}", 2)
    try:
        yield work
        os.replace(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def draw(folder):
    """Draws the plots, with a Python that has matplotlib."""
    python = sys.executable if importlib.util.find_spec("matplotlib") else "/usr/bin/python3"
    done = subprocess.run([python, os.path.join(HERE, "visualize.py"), "--dir", folder], capture_output=True, text=True)
    print(done.stdout.splitlines()[-1] if done.returncode == 0 else f"no plots: {done.stderr.strip()}; then visualize.py --dir {folder}")


def main():
    a = parse()
    module, inputs = load(a)
    import torch
    device = "cuda" if torch.cuda.is_available() and torch.cuda.device_count() >= a.nproc else "cpu"
    settings = {"steps": a.steps, "batch": a.batch, "seq": a.seq, "ranks": a.nproc, "threads": max(1, (os.cpu_count() or 1) // a.nproc),
                "device": device, "snapshot": a.save_memory_snapshot, **OPTIMIZER}
    if "tessera" in a.variants:
        from tessera.errors import ToolError
        from tessera.tools import find_tool
        try:
            find_tool("tessera-run")
        except ToolError as why:
            fail(f"{str(why).removeprefix('error: ')}; or leave tessera out of --variants", 2)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    print(f"{type(module.model).__name__}, {parameters} parameters in fp32 ({4 * parameters / 2**20:.1f} MiB); "
          f"{a.steps} steps of {a.batch} samples of {a.seq} tokens on {a.nproc} ranks ({device})", flush=True)
    with finished(a.output_dir) as work:
        write_inputs(a, module, settings, work)
        variants = {}
        for name in a.variants:
            print(f"{name} …", flush=True)
            variants[name] = run_tessera(module, inputs, settings, work) if name == "tessera" else run_torch(name, settings, work)
        wrong = compare(variants)
        versions = {"tessera": variants["tessera"].pop("version")} if "tessera" in variants else {}
        results = {**facts(settings, versions), "model": type(module.model).__name__, "parameters": parameters, "device": device,
                   "settings": settings, "tolerance": TOLERANCE, "wrong": wrong, "variants": variants}
        with open(os.path.join(work, "results.json"), "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    print("\n" + "\n".join(table(results)))
    same = [name for name, variant in variants.items() if name != NOT_FIXED]
    if len(same) > 1 and not wrong:
        print(f"the losses of {len(same)} variants are equal to {TOLERANCE:.0e}")
    draw(a.output_dir)
    if wrong:
        fail("; ".join(wrong))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
