"""Memory of a process that trains with PyTorch: what its tensors take, and what the process takes.

On a GPU these are the figures of PyTorch's allocator. A CPU has no allocator that counts; there the live storages of tensors are
counted by PyTorch's own MemTracker, and the process is taken as the kernel sees it. Tensors that a kernel makes for itself within one
operation, and buffers of libraries, are in the second figure only.
"""

import contextlib


def resident():
    """Bytes of this process that are in memory (VmRSS)."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def tracker_for(device):
    """What `measured` takes for a device, "cpu" or "cuda": a MemTracker, on a GPU nothing."""
    if device == "cuda":
        return None
    from torch.distributed._tools.mem_tracker import MemTracker
    return MemTracker()


@contextlib.contextmanager
def measured(record, tracker):
    """Counts the memory of a block. Tensors that are made in one block count in the later ones, too.

    record: {figure: [bytes, …]}, to which the block appends. "allocated": live tensors when it ends; "peak_allocated": the most in it;
    "resident": the process when it ends; on a GPU "reserved", too: what the allocator holds when it ends.
    """
    import torch
    if tracker is None:
        torch.cuda.reset_peak_memory_stats()
        yield
        torch.cuda.synchronize()
        figures = {"allocated": torch.cuda.memory_allocated(), "peak_allocated": torch.cuda.max_memory_allocated(),
                   "reserved": torch.cuda.memory_reserved()}
    else:
        with tracker:  # which begins a new peak
            yield
        current, peak = (sum(figures["Total"] for device, figures in tracker.get_tracker_snapshot(which).items() if device.type == "cpu")
                         for which in ("current", "peak"))
        tracker.reset_mod_stats()
        figures = {"allocated": current, "peak_allocated": max(current, peak)}
    for figure, size in {**figures, "resident": resident()}.items():
        record.setdefault(figure, []).append(size)
