"""Signals that end Python at once, while there is something to clean up."""

import contextlib
import os
import signal
import subprocess
import sys
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


def call(command):
    """Runs a command with the standard streams of this process to its end, as wait_for(). Returns the exit status, of a signal
    128 + its number."""
    with ended_in_order(), subprocess.Popen(command, env=environment()) as process:
        wait_for(process, lambda: None)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def environment():
    """Variables of a tool that is to end as by SIGTERM if this process is killed."""
    return os.environ | {"TESSERA_PARENT": str(os.getpid())}


def wait_for(process, read):
    """Calls read(), which takes what the process prints, and waits for its end. Ctrl-C, and within ended_in_order() SIGTERM and
    SIGHUP, are passed on, and raised once it has ended: a run writes a checkpoint then."""
    interrupted, ended = False, None
    while True:
        try:
            read()
            process.wait()
            break
        except KeyboardInterrupt:  # the terminal has sent it to the process, too; another one may have sent it to us
            if interrupted or not sys.stdin or not sys.stdin.isatty():
                process.send_signal(signal.SIGINT)
            interrupted = True
        except SystemExit as end:
            process.send_signal(signal.SIGTERM)
            ended = end
    if ended:
        raise ended
    if interrupted:
        raise KeyboardInterrupt
