"""What a training shows of itself where there is no terminal, in a notebook or a log: some of the tool's lines."""

import re
import time

INTERVAL = 10.0  # seconds between two lines on steps
STEP = re.compile(r"(?:[-\d]+ [:\d]+ )?step +(\d+)/(\d+) \| loss ")


class Progress:
    """Writes a tool's lines to a stream: those on steps at most once in an interval, the first and the last one in any case; all
    others as they are."""

    def __init__(self, stream, interval=INTERVAL, clock=time.monotonic):
        """interval: in seconds; clock: returns seconds."""
        self.stream, self.interval, self.clock, self.shown = stream, interval, clock, None

    def line(self, text):
        """The tool has printed a line."""
        if found := STEP.match(text):
            now, (step, steps) = self.clock(), map(int, found.groups())
            if self.shown is not None and now - self.shown < self.interval and step < steps:
                return
            self.shown = now
        self.stream.write(text)
        self.stream.flush()
