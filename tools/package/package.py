#!/usr/bin/python3
"""Packs what is built: a wheel, an archive of the tools, and one of the runtime alone."""

import argparse
import gzip
import os
import re
import shutil
import sys
import tarfile
import tempfile

import bundle
import wheel

RUNTIME, ALL = ("runtime",), ("runtime", "compiler")
# Where pip puts NVIDIA's libraries, seen from the plugin in site-packages/tessera/native/lib.
NVIDIA = [f"$ORIGIN/../../../nvidia/{folder}/lib" for folder in ("cu13", "cudnn", "nccl")]


def built(build):
    """The version and kind of a build folder."""
    with open(os.path.join(build, "CMakeCache.txt")) as file:
        found = dict(re.findall(r"^(CMAKE_PROJECT_VERSION|CMAKE_BUILD_TYPE|TESSERA_SANITIZE):\w+=(.*)$", file.read(), re.M))
    if found["CMAKE_BUILD_TYPE"] != "Release" or found["TESSERA_SANITIZE"]:
        raise bundle.Failure(f"{build} is no release build: cmake --preset release")
    return found["CMAKE_PROJECT_VERSION"]


def install(build, components, prefix):
    """Installs components into an empty folder with the libraries that they need. Returns the names of these."""
    for component in components:
        bundle.output("cmake", "--install", build, "--prefix", prefix, "--strip", "--component", component)
    libraries = bundle.copy_libraries(prefix)
    bundle.copy_licenses(prefix, libraries)
    return sorted(libraries)


def write_archive(prefix, out, name, level):
    """Writes NAME.tar.gz of a folder, whose content is in a folder NAME there. Returns its path."""
    def plain(entry):  # equal inputs give an equal archive
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    path = os.path.join(out, f"{name}.tar.gz")
    with open(path + ".partial", "wb") as raw, gzip.GzipFile("", "wb", level, raw, mtime=0) as file, \
            tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(prefix, name, filter=plain)
    os.replace(path + ".partial", path)
    return path


def size_of(folder):
    return sum(os.path.getsize(os.path.join(directory, file)) for directory, _, files in os.walk(folder) for file in files)


def tell(path, unpacked):
    print(f"{path}: {os.path.getsize(path) / 1e6:.0f} MB, {unpacked / 1e6:.0f} MB unpacked")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="a built folder of the preset release")
    parser.add_argument("--out", required=True, help="the folder to write to")
    parser.add_argument("--only", choices=["wheel", "tools", "runtime"], help="one of them")
    parser.add_argument("--fast", action="store_true", help="compress nothing")
    options = parser.parse_args()
    for tool, package in (("patchelf", "patchelf"), ("dpkg-query", "dpkg"), ("ldd", "libc-bin"), ("strip", "binutils")):
        if not shutil.which(tool):
            raise bundle.Failure(f"needs {tool}, in Debian's package {package}")
    version = built(options.build)
    level = 0 if options.fast else 9
    os.makedirs(options.out, exist_ok=True)
    system = f"linux-{os.uname().machine}"
    # The wheel comes last: only there may the plugin look for NVIDIA's packages beside ours.
    for what, components in (("runtime", RUNTIME), ("tools", ALL), ("wheel", ALL)):
        if options.only not in (None, what):
            continue
        with tempfile.TemporaryDirectory() as prefix:
            os.chmod(prefix, 0o755)
            libraries = install(options.build, components, prefix)
            if what == "runtime" and any(re.match("lib(LLVM|MLIR)", name) for name in libraries):
                raise bundle.Failure("the runtime needs LLVM or MLIR")
            bundle.set_search_paths(prefix, NVIDIA if what == "wheel" else [])
            bundle.check(prefix)
            name = f"tessera-runtime-{version}-{system}" if what == "runtime" else f"tessera-{version}-{system}"
            path = (wheel.write_wheel(prefix, options.out, level) if what == "wheel"
                    else write_archive(prefix, options.out, name, level))
            tell(path, size_of(prefix))
            plugins = sorted(re.findall(r"libtessera-(\w+)\.so", " ".join(os.listdir(os.path.join(prefix, "lib")))))
            print(f"  plugins: {', '.join(plugins) or 'none'}; libraries: {', '.join(libraries)}")


if __name__ == "__main__":
    try:
        main()
    except bundle.Failure as why:
        sys.exit(f"package: error: {why}")
