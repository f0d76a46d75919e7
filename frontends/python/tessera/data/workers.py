"""Encodes blocks in several processes; results come in the order of the blocks."""

import collections
import concurrent.futures
import ctypes
import multiprocessing
import os
import signal

from .errors import Stopped

TASK = 1 << 20  # bytes of text that a worker gets at a time, at least
MOST = 256  # and blocks, at most
encoder = None  # of this process, in workers


def start(made, parent):
    """A worker begins: it ends with its parent, and leaves the signals of a terminal to it."""
    global encoder
    encoder = made
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no worker outlives the command, however it ends
    if os.getppid() != parent:
        os._exit(1)


def encode(blocks):
    return [encoder(block) for block in blocks]


def tasks(items):
    """Groups items into lists, so that small blocks do not travel alone."""
    held, size = [], 0
    for item in items:
        held.append(item)
        size += getattr(item, "size", 0)
        if size >= TASK or len(held) >= MOST:
            yield held
            held, size = [], 0
    if held:
        yield held


class Workers:
    """A context with processes that begin at once, before there are threads or open files. count: 1: this process alone."""

    def __init__(self, made, count):
        """made: the Encoder."""
        self.made, self.count, self.pool = made, count, None

    def __enter__(self):
        if self.count > 1:
            context = multiprocessing.get_context("fork")
            self.pool = concurrent.futures.ProcessPoolExecutor(self.count, context, start, (self.made, os.getpid()))
            for begun in [self.pool.submit(os.getpid) for _ in range(self.count)]:
                begun.result()
        return self

    def __exit__(self, kind, *_):
        if self.pool is None:
            return
        if kind is not None:  # nobody wants what they still do
            for process in multiprocessing.active_children():
                process.terminate()
        self.pool.shutdown(wait=kind is None, cancel_futures=True)

    def map(self, items, is_block):
        """Yields (item, its Encoded; None for an item that is no block) in order; few items are held at a time. Raises
        DataError, Stopped."""
        waiting = collections.deque()
        for task in tasks(items):
            blocks = [item for item in task if is_block(item)]
            if self.pool is None:
                yield from zip_results(task, map(self.made, blocks), is_block)
                continue
            waiting.append((task, self.pool.submit(encode, blocks) if blocks else None))
            if len(waiting) > 2 * self.count:
                yield from self.first(waiting, is_block)
        while waiting:
            yield from self.first(waiting, is_block)

    def first(self, waiting, is_block):
        task, future = waiting.popleft()
        try:
            results = future.result() if future else []
        except concurrent.futures.process.BrokenProcessPool as why:
            raise Stopped("a worker was ended from outside, maybe since memory ran out: then give fewer --workers") from why
        yield from zip_results(task, iter(results), is_block)


def zip_results(task, results, is_block):
    for item in task:
        yield item, next(results) if is_block(item) else None
