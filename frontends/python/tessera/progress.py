"""What a training shows of itself where there is no terminal, in a notebook or a log: some of the tool's lines, with times."""

import re
import time

INTERVAL = 10.0  # seconds between two lines on steps
STEP = re.compile(r"step +(\d+)/(\d+) \| loss ")


class Progress:
    """Writes a tool's lines to a stream: those on steps at most once in an interval, the first and the last one in any case, with
    the time that passed and the time that is left by the steps so far; all others as they are."""

    def __init__(self, stream, interval=INTERVAL, clock=time.monotonic):
        """interval: in seconds; clock: returns seconds."""
        self.stream, self.interval, self.clock = stream, interval, clock
        self.begin, self.first, self.shown = clock(), None, None  # first: (step, when) of the first line

    def line(self, text):
        """The tool has printed a line."""
        found, now = STEP.match(text), self.clock()
        if found:
            step, steps = map(int, found.groups())
            self.first = self.first or (step, now)
            if self.shown is not None and now - self.shown < self.interval and step < steps:
                return
            self.shown = now
            text = f"{text.rstrip()} | {clock_text(now - self.begin)} passed{self.left(step, steps, now)}\n"
        self.stream.write(text)
        self.stream.flush()

    def left(self, step, steps, now):
        """Text on the time that is left; empty before a second step is known, and at the last."""
        done, since = step - self.first[0], now - self.first[1]
        return f", {clock_text(since / done * (steps - step))} left" if done and step < steps else ""


def clock_text(seconds):
    """A time as h:mm:ss."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
