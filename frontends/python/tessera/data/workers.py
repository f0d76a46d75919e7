"""Encodes blocks in several processes; results come in the order of the blocks."""

import collections
import concurrent.futures
import ctypes
import multiprocessing
import os
import signal

from .errors import Stopped
from .reading import Block

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


def encode(task, made=None):
    """The Encoded of each Block of a task, None for its other items. made: the Encoder, that of this worker by default."""
    return [(made or encoder)(item) if isinstance(item, Block) else None for item in task]


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
        self.made, self.count, self.pool, self.processes = made, count, None, []

    def __enter__(self):
        if self.count > 1:
            context = multiprocessing.get_context("fork")
            self.pool = concurrent.futures.ProcessPoolExecutor(self.count, context, start, (self.made, os.getpid()))
            others = multiprocessing.active_children()
            for begun in [self.pool.submit(os.getpid) for _ in range(self.count)]:
                begun.result()
            self.processes = [each for each in multiprocessing.active_children() if each not in others]
        return self

    def __exit__(self, kind, *_):
        if self.pool is None:
            return
        if kind is not None:  # nobody wants what they still do
            for process in self.processes:
                process.kill()  # Python may lose a SIGTERM that comes while a worker begins
        self.pool.shutdown(wait=kind is None, cancel_futures=True)

    def map(self, items):
        """Yields (item, its Encoded; None unless it is a Block) in order; few items are held at a time. Raises DataError, Stopped."""
        waiting = collections.deque()
        for task in tasks(items):
            if self.pool is None:
                yield from ((item, *encode([item], self.made)) for item in task)
                continue
            waiting.append((task, self.pool.submit(encode, task)))
            if len(waiting) > 2 * self.count:
                yield from self.first(waiting)
        while waiting:
            yield from self.first(waiting)

    def first(self, waiting):
        task, future = waiting.popleft()
        try:
            results = future.result()
        except concurrent.futures.process.BrokenProcessPool as why:
            raise Stopped("a worker was ended from outside, maybe since memory ran out: then give fewer --workers") from why
        yield from zip(task, results)
