"""Writes the wheel: the Python package, the tools in tessera/native, and a command for each of them."""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile

from bundle import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "frontends", "python")
EARLIEST = (1980, 1, 1, 0, 0, 0)  # equal inputs give an equal file
PURE, TAG = "py3-none-any", "py3-none-manylinux_{}_{}"


def platform_tag():
    """That of systems with this machine's C library or a newer one."""
    library = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    return TAG.format(library, platform.machine())


def pure_wheel(folder):
    """Builds the wheel of the Python package alone, from a copy of its sources. Returns its path."""
    copy = os.path.join(folder, "python")
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("build", "__pycache__", "*.egg-info"))
    shutil.copy(os.path.join(SOURCES, "..", "..", "LICENSE"), copy)  # which setuptools packs
    script = f"import setuptools.build_meta as backend; print(backend.build_wheel({folder!r}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Failure(f"the Python package cannot be built (Debian: python3-setuptools python3-wheel):\n{done.stdout}")
    return os.path.join(folder, done.stdout.split()[-1])


class Writer:
    """A wheel that is written; RECORD comes last."""

    def __init__(self, path, info, level):
        self.file = zipfile.ZipFile(path, "w")
        self.level = level
        self.info = info
        self.records = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, EARLIEST)
        entry.external_attr = (0o100000 | mode) << 16
        self.file.writestr(entry, data, zipfile.ZIP_DEFLATED if self.level else zipfile.ZIP_STORED, self.level)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self):
        name = f"{self.info}/RECORD"
        self.add(name, "".join([*self.records, f"{name},,\n"]).encode())
        self.file.close()


def write_wheel(prefix, out, level):
    """Writes the wheel of the tools in `prefix` into `out`. Returns its path."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(pure_wheel(folder)) as pure:
        name = os.path.basename(pure.filename)
        if PURE not in name:
            raise Failure(f"setuptools made {name}, expected one for {PURE}")
        path = os.path.join(out, name.replace(PURE, platform_tag()))
        base = name[:-len(f"-{PURE}.whl")]
        writer = Writer(path + ".partial", f"{base}.dist-info", level)
        for entry in pure.namelist():
            data = pure.read(entry)
            if entry.endswith("/WHEEL"):
                data = data.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false").replace(PURE.encode(), platform_tag().encode())
            if not entry.endswith("/RECORD"):
                writer.add(entry, data)
    for directory, _, files in sorted(os.walk(prefix)):
        for file in sorted(files):
            source = os.path.join(directory, file)
            with open(source, "rb") as opened:
                writer.add(f"tessera/native/{os.path.relpath(source, prefix)}", opened.read(),
                           0o755 if os.access(source, os.X_OK) else 0o644)
    with open(os.path.join(HERE, "launcher.py"), "rb") as opened:
        launcher = opened.read()
    for tool in sorted(os.listdir(os.path.join(prefix, "bin"))):
        writer.add(f"{base}.data/scripts/{tool}", launcher, 0o755)
    writer.close()
    os.replace(path + ".partial", path)
    return path
