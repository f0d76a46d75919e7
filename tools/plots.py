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
    """Writes the figure as PNG, equal bytes for equal figures."""
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=120, metadata={"Software": None})
    except OSError as error:
        fail(f"cannot write '{path}': {error.strerror}")
