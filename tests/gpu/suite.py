"""What the parts of run.py share: counting, the machine, and the runtime that is tested."""

import contextlib
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import threading
import time

import cases
import libraries
import probe
import results


LOGGED = 128 << 10  # bytes of what a command said that log.txt keeps, half of them from its end


def kill_after(process, seconds):
    """Ends the process when its time is over; cancel the timer when it ended by itself."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return timer


class Part:
    """One thing that passes or fails; `note` is shown behind it."""

    def __init__(self, name):
        self.name, self.passed, self.why, self.note = name, False, "", ""


class Suite:
    def __init__(self, device, out, work, deadline):
        self.device, self.out, self.work = device, out, work
        self.parts, self.rows, self.facts = [], [], {}
        self.end = self.deadline = time.monotonic() + deadline
        self.manifest = {}
        # Of tessera-run, and of everything else: what imports PyTorch must not see the packed libraries.
        self.environment, self.plain = dict(os.environ), dict(os.environ)
        self.runner = self.gpu = None
        os.makedirs(out or work, exist_ok=True)
        self.log = os.path.join(out or work, "log.txt")

    def patience(self, seconds):
        """What takes so long on a GPU takes longer elsewhere."""
        return seconds * {"cuda": 1, "cpu": 4, "simulated": 10}[self.device]

    def left(self):
        return self.end - time.monotonic()

    def late(self):
        return "no time left" + ("" if self.end == self.deadline else " for this part")

    @contextlib.contextmanager
    def stage(self, seconds):
        """What runs inside has so many seconds, if the suite has them."""
        self.end = min(self.deadline, time.monotonic() + self.patience(seconds))
        yield
        self.end = self.deadline

    def note(self, name, value):
        self.facts[name] = value
        results.write(self, complete=False)

    def record(self, part):
        self.parts.append(part)
        results.write(self, complete=False)
        if not part.passed:
            print(f"FAILED {part.name}: {part.why}", flush=True)
        elif part.note:
            print(f"passed {part.name} ({part.note})", flush=True)

    @contextlib.contextmanager
    def part(self, name):
        """Whatever is raised inside is why the part failed."""
        part = Part(name)
        try:
            yield part
            part.passed = True
        except Exception as error:  # noqa: BLE001: a failure of any kind is counted, and the other parts go on
            part.why = f"{type(error).__name__}: {error}" if not str(error) else str(error)
        self.record(part)

    def fail(self, name, why):
        part = Part(name)
        part.why = why
        self.record(part)

    def attempt(self, command, timeout, environment=None):
        """Runs a command. What was wrong with it, or nothing, and all that it said, which log.txt has as it is said."""
        command = [str(word) for word in command]
        if self.left() <= 0:
            raise RuntimeError(self.late())
        limit, begin = max(1, min(self.patience(timeout), self.left())), time.monotonic()
        with open(self.log, "ab+", buffering=0) as log:
            log.write(f"$ {shlex.join(command)}\n".encode())
            start = log.tell()
            try:
                status = subprocess.run(command, env=environment or self.environment, cwd=self.work, timeout=limit,
                                        stdout=log, stderr=subprocess.STDOUT).returncode
                wrong = f"ended with {status}" if status else ""
            except subprocess.TimeoutExpired:
                wrong = f"took longer than {limit:.0f} s"
            log.seek(start)
            said = log.read()
            if len(said) > LOGGED:
                log.truncate(start)
                log.write(said[:LOGGED // 2] + b"\n[...]\n" + said[-LOGGED // 2:])
            log.write(f"\n# {wrong or 'ended with 0'}, {time.monotonic() - begin:.1f} s\n".encode())
        return wrong and f"{os.path.basename(command[0])} {wrong}", said.decode(errors="replace")

    def run(self, command, timeout, environment=None):
        """Output of a command; raises with the end of what it said where it fails, or takes too long."""
        wrong, said = self.attempt(command, timeout, environment)
        if wrong:
            raise RuntimeError(f"{wrong}: {said[-1200:].strip()}")
        return said

    # --- what was prepared ------------------------------------------------------

    def prepared(self, *parts):
        return os.path.join(self.work, "prepared", *parts)

    def unpack(self, package):
        if not os.path.exists(package):
            raise RuntimeError(f"{package} is missing: run tests/gpu/prepare.sh where the compiler is built")
        with tarfile.open(package) as archive:
            # Python before 3.11.4 knows no filters, Python 3.14 wants one
            archive.extractall(self.prepared(), **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        with open(self.prepared("manifest.json")) as file:
            self.manifest = json.load(file)
        self.note("target", self.manifest["gpu"])
        self.note("revision", self.manifest["revision"])

    def kernel_groups(self):
        """Those that the device has code for: some kernels are for GPUs alone."""
        return [group for group in self.manifest["kernels"] if self.device != "cpu" or group["extents"]]

    def artifact(self, name):
        return self.prepared("cpu" if self.device == "cpu" else "gpu", name + ".tessera")

    # --- the runtime ------------------------------------------------------------

    def use_libraries(self, needs, plugin, packed=()):
        """Lets tessera-run find the `packed` folders and, for a GPU, the NVIDIA libraries that `plugin` needs."""
        folders = list(packed)
        if self.device == "cuda":
            chosen = libraries.find(needs)
            for name, library in chosen.items():
                self.note(name, f"{library['version']}, {library['path']} ({library['whose']})")
            folders += libraries.search_path(chosen)
        if before := os.environ.get("LD_LIBRARY_PATH"):
            folders.append(before)
        if folders:
            self.environment["LD_LIBRARY_PATH"] = ":".join(folders)
        if self.device == "cuda":
            libraries.verify(plugin, chosen, self.environment)

    def use_runtime(self, built):
        """The packed runtime if it starts here, else one that is built here."""
        packed = self.prepared("runtime")
        why = "it was not packed"
        if not built and os.path.isdir(packed):
            self.runner = os.path.join(packed, "bin", "tessera-run")
            facts = self.manifest["runtime"]
            self.use_libraries(facts["nvidia"], os.path.join(packed, "bin", "libtessera-cuda.so"),
                               [os.path.join(packed, "lib")])
            try:
                self.run([self.runner, "--help"], 30)
                self.note("runtime", f"packed, built with glibc {facts['built_with_glibc']}, needs {facts['needs_glibc']}")
                return
            except Exception as error:  # noqa: BLE001
                why = f"it does not start here (needs glibc {facts['needs_glibc']}): {error}"
        if built:
            self.runner = os.path.join(os.path.abspath(built), "tessera-run")
            self.note("runtime", built)
        else:
            print(f"packed runtime: not used, {why}; building it")
            self.runner = self.build()
            self.note("runtime", f"built here; packed one not used, {why}")
        plugin = os.path.join(os.path.dirname(self.runner), "libtessera-cuda.so")
        self.use_libraries(libraries.needs_of(plugin) if self.device == "cuda" else {}, plugin)
        self.run([self.runner, "--help"], 30)

    def build(self):
        """tessera-run and the plugin by the runtime-only preset; names everything that is missing for it."""
        include = ["/usr/include", "/usr/local/include", *glob.glob("/usr/include/*-linux-gnu"),
                   os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")]
        headers = {"flatbuffers": "flatbuffers/flatbuffers.h", "CLI11": "CLI/CLI.hpp", "nlohmann-json": "nlohmann/json.hpp",
                   "spdlog": "spdlog/spdlog.h", "fmt": "fmt/format.h", "oneDNN": "dnnl.hpp", "onnx": "onnx/onnx_pb.h",
                   "protobuf": "google/protobuf/message.h", "libzip": "zip.h", "xxhash": "xxhash.h", "CUDA": "cuda.h",
                   "cuBLASLt": "cublasLt.h", "NCCL": "nccl.h", "NVTX": "nvtx3/nvToolsExt.h"}
        missing = [name for name, header in headers.items()
                   if not any(os.path.exists(os.path.join(folder, header)) for folder in include)]
        missing += [tool for tool in ("cmake", "ninja", "flatc", "protoc", "pkg-config", "c++") if not shutil.which(tool)]
        if not shutil.which("nvcc") and not os.path.exists("/usr/local/cuda/bin/nvcc"):
            missing.append("nvcc")
        if missing:
            raise RuntimeError(f"the runtime cannot be built here: missing {', '.join(missing)}")
        folder = os.path.join(self.work, "build")
        self.run(["cmake", "-S", cases.ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTESSERA_COMPILER=OFF",
                  "-DTESSERA_TESTS=OFF"], 60)
        self.run(["cmake", "--build", folder, "--target", "tessera-run", "tessera-cuda"], 240)
        return os.path.join(folder, "bin", "tessera-run")

    def find_gpu(self):
        """Raises where no GPU can be used; notes what it is and which software runs on it."""
        self.capability, self.gpu = probe.gpu(self.plain, self.note)
        self.note("torch", probe.torch(self.plain))
        return self.facts["gpu"]

    def fits(self):
        """Raises where the GPU cannot run what was prepared."""
        have, want = self.capability, int(self.manifest["gpu"].removeprefix("sm_"))
        if have < want:
            raise RuntimeError(f"the GPU is sm_{have}, the artifacts are for sm_{want}: tests/gpu/prepare.sh --target sm_{have}")

    def simulate(self, folder):
        """The libraries of tests/gpu/simulator instead of NVIDIA's."""
        if not os.path.exists(os.path.join(folder, "libcuda.so.1")):
            raise RuntimeError(f"{folder} has no simulated driver: build the target gpu-simulator")
        for environment in (self.environment, self.plain):
            environment["LD_LIBRARY_PATH"] = f"{folder}:{environment.get('LD_LIBRARY_PATH', '')}".rstrip(":")

    def train(self, artifact, run, *flags, timeout=60, prefix=()):
        """Runs tessera-run; its folder is below the suite's own, and log.txt gets its run.json and metrics."""
        out = os.path.join(self.work, run)
        shutil.rmtree(out, ignore_errors=True)
        try:
            output = self.run([*prefix, self.runner, artifact, "--out", out, *flags], timeout)
        finally:
            for name in ("run.json", "metrics.jsonl"):
                with contextlib.suppress(OSError), open(os.path.join(out, name), "rb") as file, open(self.log, "ab") as log:
                    shutil.copyfileobj(file, log)
        with open(os.path.join(out, "metrics.jsonl")) as file:
            return [record for record in map(json.loads, file) if "loss" in record], output
