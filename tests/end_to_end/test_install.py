"""What tools/package.sh and cmake --install make works elsewhere, with nothing of the build. tests/install/clean_root.sh
tries the same on a system without compilers."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from harness import BIN, ROOT, Golden, ToolTest

BUILD = os.path.dirname(BIN)
TOOLS = ["tessera-calibrate", "tessera-compare", "tessera-compile", "tessera-dump", "tessera-interp", "tessera-opt", "tessera-run"]
# Where libraries of a system with a C library lie; nothing but these and the wheel's own may be loaded.
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1"}
# The plugins load these of the machine, and what these need.
PLUGINS = {"libtessera-mpi.so", "libtessera-cuda.so"}


def is_release():
    try:
        with open(os.path.join(BUILD, "CMakeCache.txt")) as file:
            text = file.read()
    except OSError:
        return False
    return "CMAKE_BUILD_TYPE:STRING=Release\n" in text and re.search(r"^TESSERA_SANITIZE:\w+=$", text, re.M) is not None


def clean_environment(*path):
    """Without anything that points to a build."""
    return {"PATH": os.pathsep.join([*path, "/usr/bin", "/bin"]), "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def outside(folder):
    """["file: library => path"] of all libraries that programs in a folder would load from neither it nor the C library's."""
    found = []
    for path in glob.glob(os.path.join(folder, "bin", "*")) + glob.glob(os.path.join(folder, "lib", "*")):
        if os.path.basename(path) in PLUGINS:
            continue
        listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean_environment()).stdout
        for name, place in re.findall(r"^\s*(\S+) => (.*?)(?: \(0x|$)", listed, re.M):
            if name not in OF_THE_SYSTEM and not os.path.realpath(place).startswith(os.path.realpath(folder) + os.sep):
                found.append(f"{path}: {name} => {place}")
    return found


@unittest.skipUnless(is_release(), "only a release build is packed")
@unittest.skipUnless(shutil.which("patchelf"), "needs patchelf")
class Wheel(ToolTest):
    """One wheel, installed once into a virtual environment."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        output(os.path.join(ROOT, "tools", "package.sh"), "--build", BUILD, "--out", cls.folder.name, "--only", "wheel", "--fast")
        cls.wheel, = glob.glob(os.path.join(cls.folder.name, "*.whl"))
        cls.venv = os.path.join(cls.folder.name, "venv")
        output(sys.executable, "-m", "venv", "--system-site-packages", cls.venv)
        cls.python = os.path.join(cls.venv, "bin", "python")
        output(cls.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", cls.wheel)
        cls.native = os.path.dirname(os.path.dirname(cls.ask("tools.find_tool('tessera-run')")))
        cls.environment = clean_environment(os.path.join(cls.venv, "bin"))

    @classmethod
    def ask(cls, expression):
        return output(cls.python, "-c", f"from tessera import tools; import tessera; print({expression})", env=clean_environment(),
                      cwd=cls.folder.name).strip()

    def test_the_tools_of_the_path_train(self):
        self.assertEqual(sorted(os.listdir(os.path.join(self.native, "bin"))), TOOLS)
        folder = self.path()
        output("tessera-compile", *Golden("llama").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o", "a.tessera",
               env=self.environment, cwd=folder)
        with open(self.path("text.txt"), "w") as file:
            file.write("to be or not to be\n" * 500)
        trained = output("tessera-run", "a.tessera", "--data", "text.txt", "--weights", "fresh", "--steps", 1, "--out", "run",
                         env=self.environment, cwd=folder)
        self.assertRegex(trained, r"step 1/1 \| loss [0-9.]+ ")
        self.assertIn("tokens/s", output("tessera-compile", *Golden("llama").compile_flags(), "--target", "h100x8", "--report",
                                         env=self.environment, cwd=folder))
        self.assertIn("--batch-sizes", output("tessera-compare", "--help", env=self.environment, cwd=folder))

    def test_nothing_outside_is_loaded(self):
        self.assertEqual(outside(self.native), [])
        for path in glob.glob(os.path.join(self.native, "*", "*")):
            listed = subprocess.run(["readelf", "-d", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            for searched in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", listed):
                self.assertEqual([entry for entry in searched.split(":") if not entry.startswith("$ORIGIN")], [], path)

    def test_the_package_calls_its_own_tools(self):
        self.assertTrue(self.native.startswith(self.venv + os.sep), self.native)
        self.assertTrue(os.listdir(os.path.join(self.native, "share", "tessera", "licenses")))

    def test_the_version_is_one(self):
        version = output(os.path.join(BIN, "tessera-run"), "--version").strip()
        self.assertEqual(self.ask("tessera.__version__"), version)
        with zipfile.ZipFile(self.wheel) as file:
            metadata, = [file.read(name).decode() for name in file.namelist() if name.endswith(".dist-info/METADATA")]
        self.assertIn(f"\nVersion: {version}\n", metadata)
        for extra in ("torch", "onnx", "hf", "compare", "cuda13"):
            self.assertIn(f"\nProvides-Extra: {extra}\n", metadata)
        self.assertIn("Tessera compiles a *training step* ahead of time", metadata, "README.md is its description")

    def test_a_pipe_that_closes_ends_the_tool_as_without_python(self):
        codes = []
        for tool, environment in (("tessera-compile", self.environment), (os.path.join(self.native, "bin", "tessera-compile"), None)):
            read, write = os.pipe()
            os.close(read)
            codes.append(subprocess.run([tool, "--help"], stdout=write, stderr=subprocess.DEVNULL, env=environment,
                                        restore_signals=True).returncode)
            os.close(write)
        self.assertEqual(codes[0], codes[1])


@unittest.skipUnless(is_release(), "only a release build is packed")
class Installed(ToolTest):
    def test_an_installed_folder_can_be_moved(self):
        output("cmake", "--install", BUILD, "--prefix", self.path("first"))
        os.rename(self.path("first"), self.path("second"))
        self.assertEqual(sorted(os.listdir(self.path("second", "bin"))), TOOLS)
        self.assertEqual(sorted(os.listdir(self.path("second", "lib"))), sorted(PLUGINS & set(os.listdir(BIN))))
        compiler = self.path("second", "bin", "tessera-compile")
        self.assertIn("tokens/s", output(compiler, *Golden("llama").compile_flags(), "--target", "h100x8", "--report", env=clean_environment()))

    def test_the_runtime_has_no_llvm(self):
        output("cmake", "--install", BUILD, "--prefix", self.path("runtime"), "--component", "runtime")
        tools = sorted(os.listdir(self.path("runtime", "bin")))
        self.assertEqual(tools, ["tessera-calibrate", "tessera-dump", "tessera-run"])
        for tool in tools:
            self.assertNotRegex(output("ldd", self.path("runtime", "bin", tool)), "libLLVM|libMLIR")


class WithoutTools(ToolTest):
    def test_a_copy_of_the_package_says_what_it_lacks(self):
        shutil.copytree(os.path.join(ROOT, "frontends", "python"), self.path("copy"))
        done = subprocess.run([sys.executable, "-c", "from tessera import tools; tools.run_tool('tessera-compile')"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.path(), env=clean_environment() | {"PYTHONPATH": self.path("copy")})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("tessera-compile is neither in this package nor on the PATH nor built in a clone: install the wheel", done.stderr)

    def test_a_run_of_mpi_without_the_plugin_says_what_to_do(self):
        self.succeed("tessera-compile", *Golden("llama").compile_flags(), "--mesh", "shard=2", "-o", "a.tessera")
        os.mkdir(self.path("plugins"))
        with open(self.path("text.txt"), "w") as file:
            file.write("to be or not to be\n" * 500)
        environment = os.environ | {"TESSERA_PLUGINS": self.path("plugins"), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
        command = [os.path.join(BIN, "tessera-run"), self.path("a.tessera"), "--data", self.path("text.txt"), "--weights", "fresh", "--steps", "1",
                   "--out", self.path("run")]
        for content, advice in ((None, "apt-get install libopenmpi-dev openmpi-bin"), (b"no library", "It needs the MPI library")):
            with self.subTest(advice):
                if content:
                    with open(self.path("plugins", "libtessera-mpi.so"), "wb") as file:
                        file.write(content)
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(advice, done.stderr)
                self.assertIn("Without MPI: start the processes by torchrun", done.stderr)


if __name__ == "__main__":
    unittest.main()
