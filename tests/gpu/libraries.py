"""NVIDIA's libraries on this machine: which files tessera-run gets, and why not where it cannot get them.

Nothing of NVIDIA's is packed. What is looked through, in this order: LD_LIBRARY_PATH, the packages of this Python (those
that PyTorch uses), CUDA_HOME, and the system. The first file of the right name that loads, has the functions that the
plugin calls and, of cuDNN, has its sub-libraries beside it is taken.
"""

import glob
import json
import os
import re
import site
import subprocess
import sys

# Sub-libraries of cuDNN that its dispatcher opens by itself.
CUDNN_PARTS = ("libcudnn_graph", "libcudnn_engines_precompiled", "libcudnn_engines_runtime_compiled", "libcudnn_heuristic")
LOADER = next((path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(path)), None)
NAMES = re.compile(r"^lib(cublasLt|cudnn|nccl)\.so\.\d+$")
ADVICE = "PyTorch for CUDA {major} brings all of them (pip packages nvidia-cublas, nvidia-cudnn-cu{major}, nvidia-nccl-cu{major})"
# Run in a process of its own: loads a library, says its version and which of the functions it lacks.
CHECK = """
import ctypes, json, sys
path, function, *wanted = sys.argv[1:]
library = ctypes.CDLL(path)
if function == "ncclGetVersion":
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    number = number.value
else:
    call = getattr(library, function)
    call.restype = ctypes.c_size_t
    number = call()
print(json.dumps({"version": number, "lacks": [name for name in wanted if not hasattr(library, name)]}))
"""
VERSION = {"libcublasLt": "cublasLtGetVersion", "libcudnn": "cudnnGetVersion", "libnccl": "ncclGetVersion"}


class Missing(RuntimeError):
    pass


def needs_of(plugin):
    """Libraries of NVIDIA's that a built plugin names, each with the functions that it calls; by objdump and nm."""
    def output(*command):
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    needed = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", plugin))
    undefined = re.findall(r" U (\w+)", output("nm", "-D", "--undefined-only", plugin))
    return {name: [symbol for symbol in undefined if symbol.startswith(NAMES.match(name)[1])]
            for name in needed if NAMES.match(name)}


def folders():
    """(folder, whose) in the order of the search; only folders that exist, each once."""
    found = [(folder, "LD_LIBRARY_PATH") for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for packages in dict.fromkeys([*site.getsitepackages(), *(path for path in sys.path if path.endswith("-packages"))]):
        found += [(folder, "Python packages") for folder in sorted(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))]
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found += [(os.path.join(home, "lib64"), "CUDA"), (os.path.join(home, "lib"), "CUDA")]
    try:
        cache = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    except OSError:
        cache = ""
    found += [(os.path.dirname(path), "system") for name, path in re.findall(r"^\s(\S+) .*=> (\S+)$", cache, re.MULTILINE)
              if NAMES.match(name)]
    found += [(folder, "system") for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")]
    unique = {}
    for folder, whose in found:
        if os.path.isdir(folder):
            unique.setdefault(os.path.realpath(folder), (folder, whose))
    return list(unique.values())


def readable(number):
    """130100 as NVIDIA writes it in words: 13.1.0. So do cuBLASLt, cuDNN from 9 on and NCCL from 2.9 on."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def check(path, wanted):
    """(version, None), or (version or nothing, why the file cannot be taken)."""
    stem, number = os.path.basename(path).split(".so.")
    if stem == "libcudnn":
        parts = [f"{part}.so.{number}" for part in CUDNN_PARTS]
        lacking = [part for part in parts if not os.path.exists(os.path.join(os.path.dirname(path), part))]
        if lacking:
            return None, f"{', '.join(lacking)} not beside it"
    try:
        done = subprocess.run([sys.executable, "-c", CHECK, path, VERSION[stem], *wanted], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "it took more than 60 s to load"
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    found = json.loads(done.stdout)
    lacks = found["lacks"]
    return readable(found["version"]), f"it has no {', '.join(lacks)}" if lacks else None


def find(needs, where=None):
    """{name: {path, version, whose}} of the libraries in `needs` (see needs_of); raises Missing, which names for each of
    them that cannot be had what is needed and what was found."""
    where = folders() if where is None else where
    chosen, complaints = {}, []
    for name, wanted in sorted(needs.items()):
        refused = []
        for folder, whose in where:
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                continue
            version, why = check(path, wanted)
            if why is None:
                chosen[name] = {"path": path, "version": version, "whose": whose}
                break
            refused.append(f"{path}{' ' + version if version else ''} ({why})")
        if name in chosen:
            continue
        stem = name.split(".so.")[0]
        others = sorted({path for folder, _ in where for path in glob.glob(os.path.join(folder, stem + ".so.*"))
                         if NAMES.match(os.path.basename(path)) and os.path.basename(path) != name})
        complaints.append(f"{name}: " + ("; ".join([*refused, *others]) or "none found"))
    if complaints:
        major = next((name.rsplit(".", 1)[1] for name in needs if name.startswith("libcublasLt")), "13")
        raise Missing(f"tessera-run was built for CUDA {major} and needs libraries that this machine lacks. Needed, and what "
                      f"was found instead: {', '.join(complaints)}. {ADVICE.format(major=major)}")
    return chosen


def search_path(chosen):
    """Folders for LD_LIBRARY_PATH, cuDNN's first: its dispatcher opens the rest of itself by name."""
    order = sorted(chosen, key=lambda name: not name.startswith("libcudnn"))
    return list(dict.fromkeys(os.path.dirname(chosen[name]["path"]) for name in order))


def verify(plugin, chosen, environment):
    """Raises where the loader, in this environment, would give the plugin other files than those chosen."""
    if not LOADER:
        return
    listed = subprocess.run([LOADER, "--list", plugin], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    used = dict(re.findall(r"^\s*(\S+) => (/\S+)", listed.stdout, re.MULTILINE))
    for name, library in chosen.items():
        if os.path.realpath(used.get(name, "")) != os.path.realpath(library["path"]):
            raise Missing(f"{os.path.basename(plugin)} would load {name} from {used.get(name, 'nowhere')} instead of "
                          f"{library['path']}: {listed.stderr.strip()}")
