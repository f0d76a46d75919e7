"""Runs generated kernels one by one and compares them with PyTorch in double precision.

On a GPU the code of the artifacts (machine code where it fits the GPU, else PTX) is launched by the driver API, on
PyTorch's memory; so it is on a simulated GPU, on its memory. On a CPU the same bodies are run from their shared objects, which proves the reference.
"""

import ctypes
import os

import torch

import reference

# Of the largest element, and of each element: sums in another order in f32; a bf16 value may round to either neighbour
# after every op, and a difference of such values is one of several roundings.
TOLERANCE = {"f64": (1e-11, 1e-11), "f32": (1e-5, 4e-5), "f16": (2e-3, 2e-3), "bf16": (1.6e-2, 1.6e-2)}
GUARD = 64  # bytes after each buffer that a kernel must leave alone


class Gpu:
    """The driver API, through the context that PyTorch uses."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.capability = torch.cuda.get_device_capability()

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")

    def load(self, folder, group, target):
        """The group's module, and whether it is machine code or PTX."""
        same = self.capability[0] == int(target.removeprefix("sm_")) // 10
        kind = "cubin" if same and "cubin" in group["gpu"] else "ptx"
        with open(os.path.join(folder, group["gpu"][kind]), "rb") as file:
            image = file.read() + b"\0"
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return (module, group["launches"]), kind

    def run(self, module, symbol, buffers):
        library, launches = module
        blocks, x, y = launches[symbol]
        if blocks == 0:  # no elements
            return
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), library, symbol.encode())
        pointers = [ctypes.c_uint64(buffer.data_ptr()) for buffer in buffers]
        arguments = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(pointer) for pointer in pointers))
        self.synchronize()
        self.call("cuLaunchKernel", function, *map(ctypes.c_uint, (blocks, 1, 1, x, y, 1, 0)), None, arguments, None)
        self.call("cuCtxSynchronize")


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
        self.driver = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        major = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.capability = (major.value, 0)

    class Buffer:
        def __init__(self, address, size):
            self.address, self.size = address, size

        def data_ptr(self):
            return self.address

    def place(self, data):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(data.numel()))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(data.data_ptr()), ctypes.c_size_t(data.numel()))
        return self.Buffer(address.value, data.numel())

    def bytes_of(self, buffer):
        data = torch.empty(buffer.size, dtype=torch.uint8)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(data.data_ptr()), ctypes.c_uint64(buffer.address),
                  ctypes.c_size_t(buffer.size))
        return data

    def synchronize(self):
        self.call("cuCtxSynchronize")


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


def run(suite):
    backend = {"cuda": Gpu, "simulated": SimulatedGpu, "cpu": Cpu}[suite.device]()
    for group in suite.manifest["kernels"]:
        name = group["name"]
        with suite.part(f"kernels of {name} can be loaded") as part:
            module, kind = backend.load(suite.prepared("kernels"), group, suite.manifest["gpu"])
            bodies = name + ".cpu.mlir" if suite.device == "cpu" and group["has_cpu_bodies"] else name + ".mlir"
            with open(suite.prepared("kernels", bodies)) as file:
                kernels = reference.read(file.read())
            launched = group["extents"] if suite.device == "cpu" else group["launches"]
            if missing := set(launched) ^ set(kernels):
                raise RuntimeError(f"launches and bodies do not match: {sorted(missing)}")
            part.note = kind
        if not part.passed:
            continue
        for symbol, kernel in kernels.items():
            with suite.part(f"kernel {name}.{symbol}"):
                if suite.left() <= 0:
                    raise RuntimeError(suite.late())
                if error := check(backend, module, kernel):
                    raise AssertionError(error)
