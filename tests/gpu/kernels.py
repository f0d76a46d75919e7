"""Runs generated kernels one by one and compares them with PyTorch in double precision.

On a GPU the code of the artifacts (machine code where it fits the GPU, else PTX) is launched by the driver API, on
PyTorch's memory; so it is on a simulated GPU, on its memory. On a CPU the same bodies are run from their shared objects, which proves the reference.
"""

import ctypes
import os

import torch

import driver
import reference

# Of the largest element, and of each element: sums in another order in f32; a bf16 value may round to either neighbour
# after every op, and a difference of such values is one of several roundings.
TOLERANCE = {"f64": (1e-11, 1e-11), "f32": (1e-5, 4e-5), "f16": (2e-3, 2e-3), "bf16": (1.6e-2, 1.6e-2)}
GUARD = 64  # bytes after each buffer that a kernel must leave alone


class Gpu:
    """The driver API, through the context that PyTorch uses."""

    def __init__(self):
        self.driver = driver.Driver()
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.major, _ = torch.cuda.get_device_capability()

    def load(self, folder, group, target):
        """The group's module, and whether it is machine code or PTX."""
        same = self.major == int(target.removeprefix("sm_")) // 10
        kind = "cubin" if same and "cubin" in group["gpu"] else "ptx"
        with open(os.path.join(folder, group["gpu"][kind]), "rb") as file:
            return (self.driver.load(file.read() + b"\0"), group["launches"]), kind

    def run(self, module, symbol, buffers):
        library, launches = module
        blocks, x, y = launches[symbol]
        if blocks == 0:  # no elements
            return
        self.synchronize()
        self.driver.launch(library, symbol, blocks, x, y, [buffer.data_ptr() for buffer in buffers])

    def synchronize(self):
        torch.cuda.synchronize()

    def place(self, data):
        """Bytes on the GPU."""
        return data.to("cuda")

    def bytes_of(self, buffer):
        return buffer.cpu()


class SimulatedGpu(Gpu):
    """The same calls to the simulated driver, which has its own memory."""

    def __init__(self):
        self.driver = driver.Driver()
        self.major = self.driver.use_first_gpu()

    class Buffer:
        def __init__(self, address, size):
            self.address, self.size = address, size

        def data_ptr(self):
            return self.address

    def place(self, data):
        address, size = self.driver.allocate(data.numel()), data.numel()
        self.driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), ctypes.c_void_p(data.data_ptr()), ctypes.c_size_t(size))
        return self.Buffer(address, size)

    def bytes_of(self, buffer):
        data = torch.empty(buffer.size, dtype=torch.uint8)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(data.data_ptr()), ctypes.c_uint64(buffer.address),
                         ctypes.c_size_t(buffer.size))
        return data

    def synchronize(self):
        self.driver.call("cuCtxSynchronize")


class Cpu:
    def place(self, data):
        return data

    def bytes_of(self, buffer):
        return buffer

    def load(self, folder, group, target):
        return (ctypes.CDLL(os.path.join(folder, group["cpu"]["sharedobject"])), group["extents"]), "elf"

    def run(self, module, symbol, buffers):
        library, extents = module
        pointers = (ctypes.c_void_p * len(buffers))(*(buffer.data_ptr() for buffer in buffers))
        getattr(library, symbol)(pointers, ctypes.c_int64(0), ctypes.c_int64(extents[symbol]))


def inputs_of(kernel, generator):
    """Random inputs: indices inside their tables; positive floats where a root or a logarithm is taken."""
    bound = kernel.index_bound()
    positive = any(op.name in ("train.sqrt", "train.rsqrt", "train.log", "train.pow") for op in kernel.ops)
    values = []
    for kind in kernel.inputs:
        if kind.is_float:
            value = torch.rand(kind.shape, generator=generator, dtype=torch.float64) + 0.1 if positive else \
                torch.randn(kind.shape, generator=generator, dtype=torch.float64)
        else:
            value = torch.randint(0, 2 if kind.element == "i1" else bound, kind.shape, generator=generator)
        values.append(value.to(reference.MEMORY[kind.element]))
    return values


def guarded(value):
    """Bytes of `value` with a guard behind them."""
    data = value.contiguous().reshape(-1).view(torch.uint8) if value.numel() else torch.zeros(0, dtype=torch.uint8)
    return torch.cat([data, torch.full((GUARD,), 0xAB, dtype=torch.uint8)])


def narrowest(kernel):
    elements = kernel.elements()
    return next((element for element in ("bf16", "f16", "f32") if element in elements), "f64")


def difference(kernel, number, got, want):
    """What is wrong with a result, or nothing."""
    if not want.is_floating_point():
        wrong = int((got.to(want.dtype) != want).sum())
        return f"result {number}: {wrong} of {want.numel()} elements differ" if wrong else ""
    got = got.to(torch.float64)
    relative, absolute = TOLERANCE[narrowest(kernel)]
    finite = want[torch.isfinite(want)]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    same = (got == want) | (got.isnan() & want.isnan())
    bad = ~(same | ((got - want).abs() <= relative * want.abs() + absolute * scale))
    if not bad.any():
        return ""
    place = int(bad.flatten().nonzero()[0])
    return (f"result {number}: {int(bad.sum())} of {want.numel()} elements differ, first at {place}: "
            f"{float(got.flatten()[place])!r}, PyTorch {float(want.flatten()[place])!r}")


def check(backend, module, kernel):
    """Runs one kernel once; says what is wrong, or nothing."""
    inputs = inputs_of(kernel, torch.Generator().manual_seed(1))
    want = reference.evaluate(kernel, inputs)
    outputs = [torch.zeros(kind.shape, dtype=reference.MEMORY[kind.element]) for kind in kernel.outputs]
    placed = [backend.place(guarded(value)) for value in inputs + outputs]
    backend.run(module, kernel.symbol, placed)
    buffers = [backend.bytes_of(buffer) for buffer in placed]
    for number, (buffer, kind) in enumerate(zip(buffers, kernel.inputs + kernel.outputs)):
        if not bool((buffer[-GUARD:] == 0xAB).all()):
            return f"wrote beyond the end of buffer {number}"
    for number, (buffer, kind, expected) in enumerate(zip(buffers[len(inputs):], kernel.outputs, want)):
        if expected.numel() == 0:
            continue
        got = buffer[:-GUARD].clone().view(reference.MEMORY[kind.element]).reshape(kind.shape)
        if error := difference(kernel, number, got, expected):
            return error
    return ""


def load(backend, suite, group):
    """The group's module, its kernels by symbol, and what kind of code it is."""
    name = group["name"]
    module, kind = backend.load(suite.prepared("kernels"), group, suite.manifest["gpu"])
    bodies = name + ".cpu.mlir" if suite.device == "cpu" and group["has_cpu_bodies"] else name + ".mlir"
    with open(suite.prepared("kernels", bodies)) as file:
        kernels = reference.read(file.read())
    if missing := set(module[1]) ^ set(kernels):
        raise RuntimeError(f"launches and bodies do not match: {sorted(missing)}")
    return module, kernels, kind


def run(suite, after=0):
    """All cases but the first `after`. False where CUDA reported an error: nothing more can run in this process, and the case
    that met it is the last one that was recorded."""
    backend = {"cuda": Gpu, "simulated": SimulatedGpu, "cpu": Cpu}[suite.device]()
    end = 0
    for group in suite.kernel_groups():
        name, launched = group["name"], group["extents" if suite.device == "cpu" else "launches"]
        begin, end = end, end + 1 + len(launched)
        if begin >= after:
            with suite.part(f"kernels of {name} can be loaded") as part:
                module, kernels, part.note = load(backend, suite, group)
            if not part.passed:
                for _ in launched:
                    suite.fail(f"a kernel of {name}", "not run: they cannot be loaded")
                if "CUDA error" in part.why:
                    return False
                continue
        elif end > after:
            module, kernels, _ = load(backend, suite, group)
        for symbol in list(launched)[max(0, after - begin - 1):]:
            with suite.part(f"kernel {name}.{symbol}") as part:
                if suite.left() <= 0:
                    raise RuntimeError(suite.late())
                if error := check(backend, module, kernels[symbol]):
                    raise AssertionError(error)
            if "CUDA error" in part.why:
                return False
    return True
