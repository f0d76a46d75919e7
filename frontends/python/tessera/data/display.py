"""Shows how far a build is."""

import sys
import time

from ..errors import need

INTERVAL = 30.0  # seconds between two lines where there is no terminal


class Display:
    """A bar on a terminal, lines elsewhere. total, done: bytes of the sources."""

    def __init__(self, total, done):
        self.total, self.done, self.begun = total, done, done
        self.time = self.shown = time.monotonic()
        self.bar = None
        if sys.stderr.isatty():
            self.bar = need("tqdm").tqdm(total=total, initial=done, unit="B", unit_scale=True, file=sys.stderr, leave=False)

    def to(self, done):
        """The first `done` bytes have become tokens."""
        if self.bar is not None:
            self.bar.update(done - self.done)
        self.done = done
        now = time.monotonic()
        if self.bar is None and now - self.shown >= INTERVAL:
            self.shown = now
            rate = (done - self.begun) / (now - self.time)
            left = (self.total - done) / rate if rate else 0
            print(f"{done / 1e6:,.0f} of {self.total / 1e6:,.0f} MB ({done / max(self.total, 1):.0%}), {rate / 1e6:.1f} MB/s, "
                  f"about {left / 60:.0f} min left", file=sys.stderr, flush=True)

    def close(self):
        if self.bar is not None:
            self.bar.close()
