"""Ordinary modules of PyTorch, as recorded in tests/models/modules, trained on the device: losses and every gradient against
PyTorch's. Several at a time, since most of a process is its start."""

import concurrent.futures
import os
import shutil
import sys
import unittest.mock
import zipfile

import cases

# Only for this import: there are other files called training and modules beside it.
with unittest.mock.patch.object(sys, "path", [os.path.join(cases.ROOT, "tests", "models"), *sys.path]):
    from catalogue import running

RECORDED = os.path.join(cases.ROOT, "tests", "models", "modules")
AT_ONCE = 8
# Precision -> what is compiled for it, beside the target.
PRECISIONS = {"fp32": (), "bf16": ("--precision", "bf16")}


def names():
    return sorted(file.removesuffix(".zip") for file in os.listdir(RECORDED))


def unpack(name, folder):
    """The files of a recorded module in a folder: (its case, its model's file)."""
    with zipfile.ZipFile(os.path.join(RECORDED, name + ".zip")) as file:
        file.extractall(folder)
    case = running.case_of(folder)
    exporter = [exporter for exporter, found in case["exporters"].items() if "refused" not in found][-1]
    return case, os.path.join(folder, exporter + ".onnx")


def prepare(tools, target, out):
    """Compiles each module in each precision to out/NAME-PRECISION.tessera; those that are refused are left out, as
    tests/models/test_modules.py says which may be. Names of what was written."""
    written = []

    def one(name, precision):
        work = os.path.join(out, f"{name}-{precision}.work")
        case, model = unpack(name, work)
        if precision == "fp32" or not case["bf16"]:
            artifact = os.path.join(out, f"{name}-{precision}.tessera")
            try:
                running.tessera.compile_model(model, artifact, ["--batch", case["samples"], *case["flags"],
                                                                *PRECISIONS[precision], "--target", target], 120)
                written.append([name, precision])
            except running.tessera.ToolError as why:
                if why.crashed or running.INTERNAL.search(str(why)):
                    sys.exit(f"prepare: {name}, {precision}: {why}")
        shutil.rmtree(work)

    with unittest.mock.patch.dict(os.environ, {"TESSERA_BIN": tools}), concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(one, name, precision) for name in names() for precision in PRECISIONS]:
            done.result()
    return sorted(written)


def train(suite, name, precision):
    """The verdict on one module's training."""
    work = os.path.join(suite.work, f"module-{name}-{precision}")
    case, model = unpack(name, work)
    try:
        got = running.tessera.train(suite.prepared("modules", f"{name}-{precision}.tessera"),
                                    os.path.join(work, "data.safetensors"), model, case["steps"], os.path.join(work, "run"),
                                    suite.patience(40))
        return running.verdict_of(work, case, PRECISIONS[precision], got)
    finally:
        shutil.rmtree(work)


def run(suite):
    environment = {**suite.environment, "TESSERA_BIN": os.path.dirname(suite.runner)}
    with unittest.mock.patch.dict(os.environ, environment), concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        trained = [(name, precision, pool.submit(train, suite, name, precision)) for name, precision in suite.manifest["modules"]]
        for name, precision, future in trained:
            with suite.part(f"module {name} {precision}"):
                try:
                    verdict = future.result(timeout=max(0.1, suite.left()))
                except concurrent.futures.TimeoutError:
                    future.cancel()
                    raise RuntimeError(suite.late()) from None
                if not verdict.same:
                    raise AssertionError("; ".join(verdict.problems))
