"""What stops an export: one exception, whose text is one line for the user."""


class ExportError(Exception):
    """The model cannot be exported so that it trains as in PyTorch, or not at all. str() is the reason."""


def first_line(why, length=300):
    """The first line of an exception that some library raised, at most `length` characters; its class if it has no text."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return (lines[0] if lines else type(why).__name__)[:length]


def listed(names, most=5):
    """Names as text: the first `most` of them, and how many there are if there are more."""
    names = list(names)
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
