"""What is on the machine: driver, CUDA, PyTorch, tools. Each question is asked apart, in seconds, and may go unanswered."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys

# Each prints a line. PyTorch and the driver are asked in processes of their own: this one must hold no GPU context, whose
# memory the benchmark would count.
DRIVER = """
import ctypes, uuid
driver = ctypes.CDLL("libcuda.so.1")
status, version, major, minor = driver.cuInit(0), ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
number, name = ctypes.create_string_buffer(16), "0"
driver.cuDriverGetVersion(ctypes.byref(version))
if not status:
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0)
    if hasattr(driver, "cuDeviceGetUuid") and not driver.cuDeviceGetUuid(number, 0):
        name = f"GPU-{uuid.UUID(bytes=number.raw)}"
print(status, f"{version.value // 1000}.{version.value % 1000 // 10}", 10 * major.value + minor.value, name)
"""
TORCH = """
import json, torch
has = torch.cuda.is_available()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "has_gpu": has,
                  "cudnn": torch.backends.cudnn.version() if has else None,
                  "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has else None}))
"""


def ask(command, timeout, environment=None):
    """(what it printed, None) or (None, why there is no answer)."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              timeout=timeout, env=environment)
    except subprocess.TimeoutExpired:
        return None, f"no answer after {timeout:.0f} s"
    except OSError as error:
        return None, str(error)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    return done.stdout.strip(), None


def tool(name):
    """Its path: on PATH, or CUDA's."""
    path = shutil.which(name) or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", name)
    return path if os.path.exists(path) else None


def machine():
    """Facts that need no GPU."""
    facts = {"machine": f"{platform.machine()}, {os.cpu_count()} processors, {platform.platform()}",
             "glibc": platform.libc_ver()[1], "python": f"{platform.python_version()}, {sys.executable}"}
    with open("/proc/meminfo") as file:
        facts["memory"] = f"{int(file.readline().split()[1]) / 2**20:.0f} GiB"
    for name, pattern in (("nvcc", r"release (\S+),"), ("ptxas", r"release (\S+),"), ("compute-sanitizer", r"Version (\S+)")):
        path = tool(name)
        output, why = ask([path, "--version"], 20) if path else (None, None)
        found = re.search(pattern, output or "")
        facts[name] = f"{found[1] if found else why or 'version unknown'}, {path}" if path else "not installed"
    return facts


def gpu(environment, note):
    """Compute capability, 90 for sm_90, and what nvidia-smi calls the first GPU that CUDA sees: its UUID, 0 where that is not
    known. Raises where no GPU can be used. `note(name, value)` takes each fact as it is found."""
    output, why = ask([sys.executable, "-c", DRIVER], 60, environment)
    if output is None:
        raise RuntimeError(f"no NVIDIA driver: {why}")
    status, version, capability, name = output.split()
    note("driver's CUDA", version)
    if status != "0":
        raise RuntimeError(f"no GPU: cuInit says {status}")
    output, why = ask(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader", "-i", name], 30)
    note("gpu", output.splitlines()[0] if output else f"nvidia-smi: {why}")
    return int(capability), name


def torch(environment):
    """What PyTorch says of itself, in a line."""
    output, why = ask([sys.executable, "-c", TORCH], 120, environment)
    if output is None:
        return f"cannot be imported: {why}"
    found = json.loads(output.splitlines()[-1])
    said = f"{found['version']}, CUDA {found['cuda']}, cuDNN {found['cudnn']}, NCCL {found['nccl']}"
    return said if found["has_gpu"] else f"{found['version']}, sees no GPU"
