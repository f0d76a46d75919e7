"""Compiles everything that run.py needs into build/gpu-tests, and packs it: one file below 64 MiB, without weights.

usage: prepare.sh [--target h200x8] [--build build/release] [--out build/gpu-tests] [--no-runtime]

Needs the compiler (tessera-compile, tessera-dump, tessera-opt, kernel-check), and for a built runtime tessera-run and
libtessera-cuda.so. Everything is written twice over: for the GPU, and for the CPU of this machine, which proves the
comparisons (`run.sh --device cpu`) and gives the results that several ranks on a GPU are compared with.
"""

import argparse
import concurrent.futures
import glob
import json
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import attention
import breakdown
import cases
import libraries
import modules
import training

sys.path.insert(0, os.path.join(cases.ROOT, "tests", "end_to_end"))
import harness  # noqa: E402

# What the other machine brings itself: the C and C++ runtime, the driver, and all of NVIDIA's libraries, whose parts only
# work with each other.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s)\.so|lib(cuda|cublas|cudnn|nccl|nv))")


def packed_libraries(listed):
    """Name -> path of the libraries of `ldd`'s output that travel with the runtime."""
    return {name: path for name, path in re.findall(r"(\S+) => (/\S+)", listed) if not SYSTEM.match(name)}


def machines():
    """Name -> architecture of the machines with GPUs that have a target file: h200x8 -> sm_90."""
    found = {}
    for path in glob.glob(os.path.join(cases.ROOT, "compiler", "cost", "targets", "*.json")):
        with open(path) as file:
            found[os.path.basename(path).removesuffix(".json")] = json.load(file).get("architecture")
    return {name: architecture for name, architecture in sorted(found.items()) if architecture}


def revision():
    """The commit, and whether the tree has other changes; nothing where git cannot say."""
    def ask(*words):
        done = subprocess.run(["git", "-C", cases.ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""
    commit = ask("rev-parse", "--short=12", "HEAD")
    return commit + (", changed" if commit and ask("status", "--porcelain", "-uno") else "")


class Tools:
    def __init__(self, build):
        self.bin = os.path.join(os.path.abspath(build), "bin")
        missing = [name for name in ("tessera-compile", "tessera-dump", "tessera-opt", "tessera-run", "kernel-check")
                   if not os.path.exists(os.path.join(self.bin, name))]
        if missing:
            sys.exit(f"prepare: {self.bin} has no {', '.join(missing)}: build them first")

    def __call__(self, name, *arguments, cwd=None):
        done = subprocess.run([os.path.join(self.bin, name), *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"prepare: {name} {' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


class Prepare:
    def __init__(self, options, work):
        self.tools, self.work, self.target = Tools(options.build), work, options.target
        self.gpu = options.target if options.target.startswith("sm_") else machines()[options.target]
        self.manifest = {"gpu": self.gpu, "revision": revision(), "kernels": [], "oracle": {}, "ranks": {}, "bench": {}}
        for folder in ("gpu", "cpu", "kernels", "modules", "results"):
            os.makedirs(self.path(folder))

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def compile(self, name, flags, targets=("gpu", "cpu")):
        for target in targets:
            device = ["--target", self.target] if target == "gpu" else []
            self.tools("tessera-compile", *flags, *device, "-o", self.path(target, name + ".tessera"))

    def dump(self, target, name, *sections):
        return json.loads(self.tools("tessera-dump", self.path(target, name + ".tessera"), *sections, "--json"))

    # --- kernels ---------------------------------------------------------------

    def code_objects(self, target, name):
        """The code objects of an artifact as files of kernels/, by format."""
        stem = self.path("kernels", f"{name}.{target}")
        self.tools("tessera-dump", self.path(target, name + ".tessera"), f"--write-code={stem}")
        formats = [code["format"].lower() for code in self.dump(target, name, "--kernels")["kernels"]["code_objects"]]
        files = sorted(glob.glob(glob.escape(stem) + ".[0-9]*")) or [stem]
        return {kind: os.path.basename(file) for kind, file in zip(formats, files, strict=True)}

    def kernels_of_model(self, name, flags):
        """The kernels that training launches, with the very code of the artifact."""
        self.generic(name, self.tools("tessera-compile", *flags, "--target", self.target, "--compile-to=lower"))
        self.generic(name + ".cpu", self.tools("tessera-compile", *flags, "--compile-to=lower"))
        launches = {kernel["symbol"]: [kernel["blocks"], *kernel["threads"]]
                    for kernel in self.dump("gpu", name, "--kernels")["kernels"]["kernels"]}
        schedule = self.tools("tessera-dump", self.path("cpu", name + ".tessera"), "--schedule")
        extents = {symbol: int(extent) for symbol, extent in re.findall(r"launch (\w+) extent (\d+)", schedule)}
        if unknown := [symbol for symbol in launches if breakdown.kind_of(symbol) == "other"]:
            sys.exit(f"prepare: breakdown.KINDS does not know the kind of {', '.join(unknown)}")
        self.manifest["kernels"].append({"name": name, "gpu": self.code_objects("gpu", name), "launches": launches,
                                         "cpu": self.code_objects("cpu", name), "extents": extents,
                                         "has_cpu_bodies": True})

    def kernels_of_file(self, name):
        source = os.path.join(cases.ROOT, "tests", "passes", "lower", "codegen", name + ".mlir")
        with open(source) as file:
            self.generic(name, file.read())
        ptx = self.tools("kernel-check", f"--ptx={self.gpu}", source)
        launches = {symbol: [int(size) for size in sizes] for symbol, *sizes in
                    re.findall(r"^// (\w+): (\d+) blocks of (\d+) x (\d+)$", ptx, re.MULTILINE)}
        with open(self.path("kernels", name + ".ptx"), "w") as file:
            file.write(ptx)
        code = {"ptx": name + ".ptx"}
        ptxas = shutil.which("ptxas") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")
        if os.path.exists(ptxas):
            code["cubin"] = name + ".cubin"
            subprocess.run([ptxas, f"-arch={self.gpu}", "-o", self.path("kernels", code["cubin"]),
                            self.path("kernels", code["ptx"])], check=True)
        group = {"name": name, "gpu": code, "launches": launches, "cpu": {}, "extents": {}, "has_cpu_bodies": False}
        self.manifest["kernels"].append(group)
        if name not in cases.GPU_KERNEL_FILES:
            group["cpu"] = {"sharedobject": name + ".so"}
            self.tools("kernel-check", source, f"--shared-object={self.path('kernels', name + '.so')}")
            found = re.findall(r"^(\w+): ok, \w+, extent (\d+)", self.tools("kernel-check", source, "--atol=1e-5"), re.M)
            group["extents"] = {symbol: int(extent) for symbol, extent in found}

    def generic(self, name, ir):
        """The kernels' bodies in MLIR's generic form, which reference.py reads."""
        source = self.path("ir.mlir")
        with open(source, "w") as file:
            file.write(ir)
        with open(self.path("kernels", name + ".mlir"), "w") as file:
            file.write(self.tools("tessera-opt", source, "--mlir-print-op-generic"))
        os.remove(source)

    # --- training --------------------------------------------------------------

    def oracle(self):
        for model, precision in cases.TRAININGS:
            name = cases.oracle_name(model, precision)
            flags = [*harness.Golden(model).compile_flags(), "--precision", precision]
            self.compile(name, flags)
            self.kernels_of_model(name, flags)
            print(f"prepare: {name}", flush=True)

    def ranks(self):
        def one(case):
            model, precision, strategy, ranks = case
            golden, name = harness.Golden(model), cases.ranks_name(*case)
            self.compile(name, [*golden.compile_flags(), "--precision", precision, "--mesh", f"shard={ranks}", "--strategy",
                                strategy])
            out = self.path("run-" + name)
            self.tools("tessera-run", self.path("cpu", name + ".tessera"), "--data", golden.data, "--order", "sequential",
                       "--steps", golden.steps, "--weights", golden.weights, "--threads", 1, "--out", out)
            with open(os.path.join(out, "metrics.jsonl")) as file:
                steps = [record for record in map(json.loads, file) if "loss" in record]
            shutil.move(os.path.join(out, "model.safetensors"), self.path("results", name + ".safetensors"))
            shutil.rmtree(out)
            print(f"prepare: {name}", flush=True)
            return name, {"losses": [step["loss"] for step in steps], "norms": [step["grad_norm"] for step in steps]}

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.manifest["ranks"] = dict(pool.map(one, cases.ranks_cases()))

    def fp8(self):
        """Trainings in 8 bits, and what the CPU makes of them, whose products are exact."""
        self.manifest["fp8"] = {}
        for model, recipe in cases.fp8_cases(self.gpu):
            onnx, record = cases.fp8_record(model)
            name = cases.fp8_name(model, recipe)
            self.compile(name, [onnx, "--batch", record["batch"], "--seq", record["sequence"], "--loss", "cross-entropy",
                                "--optimizer", "adamw", "--precision", "fp8", "--fp8-recipe", recipe, "--fp8-select", "all"])
            files = training.write_fp8(record, self.work)
            out = self.path("run-" + name)
            self.tools("tessera-run", self.path("cpu", name + ".tessera"), *training.fp8_flags(files), "--threads", 1, "--out", out)
            with open(os.path.join(out, "metrics.jsonl")) as file:
                steps = [record for record in map(json.loads, file) if "loss" in record]
            shutil.rmtree(out)
            for file in files:
                os.remove(file)
            self.manifest["fp8"][name] = {"losses": [step["loss"] for step in steps], "norms": [step["grad_norm"] for step in steps]}
            print(f"prepare: {name}", flush=True)

    def modules(self):
        self.manifest["modules"] = modules.prepare(self.tools.bin, self.target, self.path("modules"))
        print(f"prepare: {len(self.manifest['modules'])} modules", flush=True)

    def bench(self):
        for target, table in (("gpu", cases.BENCH), ("cpu", cases.CPU_BENCH)):
            for name, (shape, batch, sequence, *_) in table.items():
                model = self.path(name + ".onnx")
                subprocess.run([sys.executable, os.path.join(cases.ROOT, "tests", "bench", "shape_model.py"), shape,
                                f"--batch={batch}", f"--seq={sequence}", "-o", model], check=True)
                precision = "bf16" if target == "gpu" else "fp32"
                sizes = [model, "--batch", batch, "--seq", sequence, "--clip-norm", 1, "--weight-decay", 0.1]
                flags = [*sizes, "--precision", precision]
                usual = "none" if target == "cpu" else "bias" if self.gpu == "sm_80" else "all"
                self.compile(name, [*flags, "--epilogues", usual], [target])
                for epilogues in cases.EPILOGUES if target == "gpu" else ():
                    if epilogues != usual:
                        self.compile(cases.bench_name(name, epilogues, usual), [*flags, "--epilogues", epilogues], [target])
                eight = cases.FP8.get(self.gpu, ()) if target == "gpu" and name in cases.FP8_BENCH else ()
                for recipe in eight:
                    self.compile(cases.fp8_bench_name(name, recipe), [*sizes, "--precision", "fp8", "--fp8-recipe", recipe,
                                                                      "--fp8-select", "all"], [target])
                # The same code runs on every machine of the architecture; run.sh takes the prediction of the one it is on.
                targets = [self.target, *(machine for machine, gpu in machines().items() if gpu == self.gpu)]
                devices = [["--target", machine] for machine in targets] if target == "gpu" else [[]]
                predictions = dict(self.predicted([*flags, "--epilogues", usual, *device]) for device in devices)
                of_recipes = {recipe: dict(self.predicted([*sizes, "--precision", "fp8", "--fp8-recipe", recipe, "--fp8-select",
                                                           "all", *device]) for device in devices) for recipe in eight}
                os.remove(model)
                summary = self.dump(target, name, "--summary")["summary"]
                self.manifest["bench"][name] = {
                    "batch": batch, "sequence": sequence, "precision": precision, "parameters": summary["parameters"],
                    "flops": int(summary["model"]["flops_per_step"]), "vocabulary": summary["batch"][0]["index_bound"],
                    "planned": summary["memory_per_rank"]["reserved"], "epilogues": usual,
                    "target": next(iter(predictions)), "predictions": predictions,
                    "predictions_of_recipes": of_recipes}
                print(f"prepare: {name}", flush=True)

    def predicted(self, flags):
        """The machine's name, and what is predicted for it."""
        report = self.path("report.json")
        self.tools("tessera-compile", *flags, f"--report={report}", "-o", self.path("reported.tessera"))
        with open(report) as file:
            found = json.load(file)
        os.remove(report)
        os.remove(self.path("reported.tessera"))
        return found["target"], breakdown.predicted(found)

    # --- runtime ---------------------------------------------------------------

    def runtime(self):
        """tessera-run, the CUDA plugin, and the libraries that another machine may not have; none of NVIDIA's."""
        binaries = [os.path.join(self.tools.bin, name) for name in ("tessera-run", "libtessera-cuda.so")]
        missing = [os.path.basename(file) for file in binaries if not os.path.exists(file)]
        if missing:
            print(f"prepare: no built runtime is packed, {self.tools.bin} has no {', '.join(missing)}; "
                  "run.sh will have to build it")
            return
        if os.path.exists(tests := os.path.join(self.tools.bin, attention.BINARY)):
            binaries.append(tests)
        packed = {}
        for binary in binaries:
            packed.update(packed_libraries(subprocess.run(["ldd", binary], stdout=subprocess.PIPE, text=True,
                                                          check=True).stdout))
        for folder in ("bin", "lib"):
            os.makedirs(self.path("runtime", folder))
        for binary in binaries:
            shutil.copy(binary, self.path("runtime", "bin"))
        for library, path in packed.items():
            shutil.copy(path, self.path("runtime", "lib", library))
        strip = shutil.which("strip")
        if strip:
            for binary in binaries:
                subprocess.run([strip, "--strip-debug", self.path("runtime", "bin", os.path.basename(binary))], check=True)
        symbols = subprocess.run(["objdump", "-T", *binaries, *packed.values()], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True).stdout
        newest = {name: max((tuple(map(int, version.split("."))) for version in
                             re.findall(rf"[( ]{name}_([0-9.]+)\)? ", symbols)), default=(0,))
                  for name in ("GLIBC", "GLIBCXX")}
        self.manifest["runtime"] = {"libraries": sorted(packed), "nvidia": libraries.needs_of(binaries[1]), "built_with_glibc": platform.libc_ver()[1],
                                    **{"needs_" + name.lower(): ".".join(map(str, v)) for name, v in newest.items()}}

    def pack(self, out):
        with open("/proc/cpuinfo") as file:
            self.manifest["cpu"] = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
        with open(self.path("manifest.json"), "w") as file:
            json.dump(self.manifest, file, indent=1, sort_keys=True)
        partial = out + ".partial"
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)

        def plain(entry):  # equal inputs give an equal archive
            entry.mtime = entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            return entry

        package = os.path.join(partial, "prepared.tar.xz")
        # A dictionary that is larger than a few artifacts: those of one model differ little.
        compression = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 128 << 20}]
        with lzma.open(package, "wb", filters=compression) as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(self.work, "", filter=plain)
        size = os.path.getsize(package)
        if size > cases.LIMIT:
            shutil.rmtree(partial)
            sys.exit(f"prepare: {size / 2**20:.1f} MiB, more than {cases.LIMIT / 2**20:.0f} MiB; nothing is written")
        shutil.rmtree(out, ignore_errors=True)
        os.rename(partial, out)
        kernels = sum(len(group["launches"]) for group in self.manifest["kernels"])
        print(f"prepare: {package.replace(partial, out)}: {size / 2**20:.1f} MiB for {self.gpu}: {kernels} kernels, "
              f"{len(self.manifest['ranks'])} results of ranks, {len(self.manifest['bench'])} benchmarks, "
              f"{'with' if 'runtime' in self.manifest else 'without'} a built runtime")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="h200x8",
                        help="a machine (h200x8, h100x8, a100x8, b200x8) or an architecture (sm_80, sm_90, sm_100); predictions are "
                        "for it")
    parser.add_argument("--build", default=os.path.join(cases.ROOT, "build", "release"))
    parser.add_argument("--out", default=cases.PREPARED)
    parser.add_argument("--no-runtime", action="store_true", help="leave the built runtime out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tessera-gpu-") as work:
        prepare = Prepare(options, work)
        for name in cases.KERNEL_FILES:
            prepare.kernels_of_file(name)
        prepare.oracle()
        prepare.ranks()
        prepare.fp8()
        prepare.modules()
        prepare.bench()
        if not options.no_runtime:
            prepare.runtime()
        prepare.pack(os.path.abspath(options.out))


if __name__ == "__main__":
    main()
