"""Libraries that tests/gpu takes along: which are found, and what is missing."""

import json
import os
import shutil
import subprocess
import sys

from harness import ROOT, ToolTest

GPU = os.path.join(ROOT, "tests", "gpu")
sys.path[:0] = [GPU, os.path.join(ROOT, "tests", "bench")]
import libraries  # noqa: E402
import prepare  # noqa: E402
import suite as common  # noqa: E402

CUDNN = ["libcudnn.so.9", *(part + ".so.9" for part in libraries.CUDNN_PARTS)]
NEEDS = {"libcublasLt.so.13": ["cublasLtCreate"], "libcudnn.so.9": ["cudnnCreate"], "libnccl.so.2": ["ncclSend"]}


class Libraries(ToolTest):
    def library(self, folder, name, number, *functions):
        """A shared object that says it is of that version."""
        os.makedirs(self.path(folder), exist_ok=True)
        stem = name.split(".so.")[0]
        version = libraries.VERSION[stem]
        code = f"int {version}(int *to) {{ *to = {number}; return 0; }}" if stem == "libnccl" else \
            f"#include <stddef.h>\nsize_t {version}(void) {{ return {number}; }}"
        code += "".join(f"\nvoid {function}(void) {{}}" for function in functions)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", self.path(folder, name)],
                       input=code, text=True, check=True)

    def machine(self, folder, cudnn=91900):
        self.library(folder, "libcublasLt.so.13", 130100, "cublasLtCreate")
        self.library(folder, "libnccl.so.2", 22809, "ncclSend")
        self.library(folder, "libcudnn.so.9", cudnn, "cudnnCreate")
        for name in CUDNN[1:]:
            shutil.copy(self.path(folder, "libcudnn.so.9"), self.path(folder, name))

    def where(self, *names):
        return [(self.path(name), name) for name in names]

    def test_the_first_whole_set_is_taken_with_its_version(self):
        self.machine("one")
        self.machine("two", 92000)
        os.remove(self.path("one", "libcudnn_graph.so.9"))  # a dispatcher without what it dispatches to
        chosen = libraries.find(NEEDS, self.where("one", "two"))
        self.assertEqual(chosen["libcublasLt.so.13"], {"path": self.path("one", "libcublasLt.so.13"), "version": "13.1.0",
                                                       "whose": "one"})
        self.assertEqual(chosen["libcudnn.so.9"], {"path": self.path("two", "libcudnn.so.9"), "version": "9.20.0", "whose": "two"})
        self.assertEqual(chosen["libnccl.so.2"]["version"], "2.28.9")
        self.assertEqual(libraries.search_path(chosen), [self.path("two"), self.path("one")], "cuDNN's folder is the first")

    def test_what_is_missing_is_named_with_what_was_found(self):
        self.machine("old")
        os.rename(self.path("old", "libcublasLt.so.13"), self.path("old", "libcublasLt.so.12"))
        self.library("old", "libnccl.so.2", 21805)  # knows no ncclSend
        os.remove(self.path("old", "libcudnn_heuristic.so.9"))
        with self.assertRaises(libraries.Missing) as raised:
            libraries.find(NEEDS, self.where("old"))
        message = str(raised.exception)
        self.assertIn("was built for CUDA 13", message)
        self.assertIn(f"libcublasLt.so.13: {self.path('old', 'libcublasLt.so.12')}", message)
        self.assertIn(f"libcudnn.so.9: {self.path('old', 'libcudnn.so.9')} (libcudnn_heuristic.so.9 not beside it)", message)
        self.assertIn(f"libnccl.so.2: {self.path('old', 'libnccl.so.2')} 2.18.5 (it has no ncclSend)", message)
        self.assertIn("PyTorch for CUDA 13 brings all of them", message)
        with self.assertRaisesRegex(libraries.Missing, "libnccl.so.2: none found"):
            libraries.find({"libnccl.so.2": []}, [])

    def test_packages_of_python_come_before_the_system(self):
        packages = self.path("site-packages")
        for name in ("cu13", "cudnn", "nccl"):
            os.makedirs(os.path.join(packages, "nvidia", name, "lib"))
        home = self.path("cuda")
        os.makedirs(os.path.join(home, "lib64"))
        script = (f"import sys; sys.path[:0] = [{GPU!r}, {packages!r}]; import libraries, json; "
                  "print(json.dumps([folder for folder, _ in libraries.folders()]))")
        environment = {**os.environ, "CUDA_HOME": home, "LD_LIBRARY_PATH": self.folder}
        found = json.loads(subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True,
                                          check=True).stdout)
        wanted = [self.folder, *(os.path.join(packages, "nvidia", name, "lib") for name in ("cu13", "cudnn", "nccl")),
                  os.path.join(home, "lib64")]
        self.assertEqual([folder for folder in found if folder.startswith(self.folder)], wanted)

    def test_the_loader_is_asked_which_files_it_would_take(self):
        self.machine("chosen")
        self.machine("other")
        plugin = self.path("plugin.so")
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", self.path("chosen", "libcudnn.so.9"),
                        "-o", plugin], check=True)
        self.assertEqual(libraries.needs_of(plugin), {"libcudnn.so.9": []})
        chosen = libraries.find({"libcudnn.so.9": []}, self.where("chosen"))
        libraries.verify(plugin, chosen, {"LD_LIBRARY_PATH": self.path("chosen")})
        with self.assertRaisesRegex(libraries.Missing, "would load libcudnn.so.9 from .*other.* instead of .*chosen"):
            libraries.verify(plugin, chosen, {"LD_LIBRARY_PATH": self.path("other") + ":" + self.path("chosen")})

    def test_nothing_of_nvidias_is_packed(self):
        listed = "".join(f"\t{name} => /usr/lib/{name} (0x1)\n" for name in (
            "libcudnn.so.9", "libcudnn_graph.so.9", "libcublasLt.so.13", "libnccl.so.2", "libcuda.so.1", "libnvrtc.so.13",
            "libcudart.so.13", "libc.so.6", "libspdlog.so.1.10", "libcrypto.so.3"))
        self.assertEqual(sorted(prepare.packed_libraries(listed)), ["libcrypto.so.3", "libspdlog.so.1.10"])

    def test_only_tessera_run_sees_the_packed_folder(self):
        suite = common.Suite("cpu", None, self.folder, 10)
        suite.use_libraries({}, None, ["/packed/lib"])
        self.assertTrue(suite.environment["LD_LIBRARY_PATH"].startswith("/packed/lib"))
        self.assertNotIn("/packed/lib", suite.plain.get("LD_LIBRARY_PATH", ""))
        for name in ("run.py", "bench.py"):  # the two that start a child which imports PyTorch
            with open(os.path.join(GPU, name)) as file:
                source = file.read()
            self.assertIn("suite.plain", source)
            self.assertNotIn("suite.environment", source)


if __name__ == "__main__":
    unittest.main()
