#!python
"""Starts the tool of the same name that lies in the installed package tessera."""

import importlib.util
import os
import signal
import sys

package = importlib.util.find_spec("tessera")
name = os.path.basename(__file__)
if package is None:
    sys.exit(f"error: {name} was installed with the Python package tessera, which {sys.executable} does not find")
tool = os.path.join(list(package.submodule_search_locations)[0], "native", "bin", name)
if not os.access(tool, os.X_OK):
    sys.exit(f"error: {tool} is missing: another package tessera, without tools, hides the one that {name} came with")
# Python ignores these, and what it starts would, too.
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.environ.setdefault("PYTHON", sys.executable)  # for tessera-compare
os.execv(tool, [tool, *sys.argv[1:]])
