# Settings of the lit suite: every .mlir, .onnxtxt and .test file below tests/.
import os

import lit.formats

config.name = "tessera"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".onnxtxt", ".test"]
config.excludes = ["Inputs", "fuzz", "gpu", "bench"]
config.test_source_root = config.tessera_source
config.test_exec_root = config.tessera_binary
config.environment["PATH"] = os.pathsep.join([config.tessera_tools, config.llvm_tools, os.environ["PATH"]])
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
