"""What the plot-*.py programs share: errors, matplotlib without a display, and saving."""
import os
import sys


def fail(message):
    """Ends the program with one line to stderr and status 1."""
    print(f"{os.path.splitext(os.path.basename(sys.argv[0]))[0]}: {message}", file=sys.stderr)
    sys.exit(1)


def pyplot():
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is missing; install python3-matplotlib (tools/setup.sh does)")
    matplotlib.use("Agg")
    from matplotlib import pyplot as result
    return result


def save(figure, path):
    """Writes the figure in the format of the path's ending, equal bytes for equal figures."""
    figure.tight_layout()
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        figure.savefig(path, dpi=120, metadata=undated.get(os.path.splitext(path)[1][1:].lower()))
    except OSError as error:
        fail(f"cannot write '{path}': {error.strerror}")
    except ValueError as error:  # a format that matplotlib does not have
        fail(f"cannot write '{path}': {error}")
