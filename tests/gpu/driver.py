"""The parts of CUDA's driver API that tests use, without PyTorch."""

import ctypes


class Driver:
    """Whatever the driver refuses is raised as "CUDA error"."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: CUDA error: {(text.value or b'unknown').decode()}")

    def use_first_gpu(self):
        """Its primary context, and its major compute capability."""
        context, device, major = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        return major.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def load(self, image):
        """A module of machine code, or of PTX that ends with a 0."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def launch(self, module, symbol, blocks, x, y, addresses):
        """Runs a kernel to its end."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        pointers = [ctypes.c_uint64(address) for address in addresses]
        arguments = (ctypes.c_void_p * len(pointers))(*(ctypes.addressof(pointer) for pointer in pointers))
        self.call("cuLaunchKernel", function, *map(ctypes.c_uint, (blocks, 1, 1, x, y, 1, 0)), None, arguments, None)
        self.call("cuCtxSynchronize")
