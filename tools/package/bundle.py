"""Makes a folder of installed tools whole: copies the libraries they need beside them, and the licenses of these."""

import os
import re
import shutil
import subprocess

# What every Linux with this C library or a newer one has. libstdc++ and libgcc_s are the compiler's of that system.
SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libutil|libresolv|libstdc\+\+|libgcc_s)\.so\.")
# What must be that of the machine the tools run on: the driver and its libraries, and the MPI of mpirun.
OF_THE_MACHINE = re.compile(r"(libcuda|libcublas|libcublasLt|libcudnn|libnccl|libmpi)\.so\.")


class Failure(Exception):
    """What cannot be packaged, and why."""


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def programs(prefix):
    """The executables and libraries in bin and lib."""
    paths = [os.path.join(prefix, folder, name) for folder in ("bin", "lib") if os.path.isdir(os.path.join(prefix, folder))
             for name in sorted(os.listdir(os.path.join(prefix, folder)))]
    return [path for path in paths if is_elf(path)]


def needs(path):
    """The names of the libraries that a file asks for itself."""
    return output("patchelf", "--print-needed", path).split()


def found_libraries(path):
    """{name: path} of all that the dynamic linker finds for a file."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", path), re.M))


def copy_libraries(prefix):
    """Copies what the tools need into lib. Returns {name: where it came from}."""
    copied = {}
    for program in programs(prefix):
        places, wanted, seen = found_libraries(program), needs(program), set()
        while wanted:
            name = wanted.pop()
            if name in seen or SYSTEM.match(name) or OF_THE_MACHINE.match(name):
                continue
            seen.add(name)
            if name not in places:
                raise Failure(f"{os.path.basename(program)} needs {name}, which this machine lacks")
            copied[name] = os.path.realpath(places[name])
            wanted += needs(places[name])
    os.makedirs(os.path.join(prefix, "lib"), exist_ok=True)
    for name, path in copied.items():
        target = os.path.join(prefix, "lib", name)
        shutil.copyfile(path, target)
        os.chmod(target, 0o755)
    return copied


def set_search_paths(prefix, of_plugins):
    """Lets every file look for libraries beside it only; `of_plugins` are further folders for libtessera-*.so."""
    for path in programs(prefix):
        folders = ["$ORIGIN/../lib"] if os.path.basename(os.path.dirname(path)) == "bin" else ["$ORIGIN"]
        if os.path.basename(path).startswith("libtessera-"):
            folders += of_plugins
        elif not set(needs(path)) & set(os.listdir(os.path.join(prefix, "lib"))):
            folders = []
        output("patchelf", *(["--set-rpath", ":".join(folders)] if folders else ["--remove-rpath"]), path)


def check(prefix):
    """Raises Failure if a file would look for a library outside of the folder, or does not find one in it."""
    for path in programs(prefix):
        searched = output("patchelf", "--print-rpath", path).strip()
        outside = [folder for folder in searched.split(":") if folder and not folder.startswith("$ORIGIN")]
        if outside:
            raise Failure(f"{path} looks for libraries in {', '.join(outside)}")
        inside = set(os.listdir(os.path.join(prefix, "lib")))
        missing = [name for name in needs(path)
                   if not SYSTEM.match(name) and not OF_THE_MACHINE.match(name) and name not in inside]
        if missing:
            raise Failure(f"{path} needs {', '.join(missing)}, which is not in lib")


def copy_licenses(prefix, libraries):
    """Copies the licenses of the packages that the libraries are of, and the texts that these name."""
    folder = os.path.join(prefix, "share", "tessera", "licenses")
    os.makedirs(folder)
    # dpkg knows a library by its path of before /lib became a link to /usr/lib, or of after.
    owners = {}
    for name, path in libraries.items():
        for known in (path, re.sub(r"^/usr/lib/", "/lib/", path)):
            done = subprocess.run(["dpkg-query", "-S", known], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if done.returncode == 0:
                owners[name] = done.stdout.split(":")[0]
                break
        else:
            raise Failure(f"no package of this machine owns {path}, so that its license is not known")
    for package in sorted(set(owners.values())):
        text = f"/usr/share/doc/{package}/copyright"
        if not os.path.exists(text):
            raise Failure(f"{package} has no license in {text}")
        shutil.copyfile(text, os.path.join(folder, f"{package}.txt"))
        with open(text, encoding="utf-8", errors="replace") as file:
            for common in set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", file.read())):
                shutil.copyfile(f"/usr/share/common-licenses/{common}", os.path.join(folder, common))
