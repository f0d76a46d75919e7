"""Signals that end Python at once, while there is something to clean up."""

import contextlib
import signal
import threading

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def ended_in_order():
    """Within the context SIGTERM and SIGHUP raise SystemExit with the status that they would have ended Python with, so that files
    are removed and tools ended. What the program handles itself stays so, as do threads other than the main one."""
    def end(number, _):
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, end) for number in ENDING if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
