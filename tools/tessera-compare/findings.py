"""What the results say, in sentences: how strategies compare, and where time goes."""

from configurations import CHOICES

RATIOS = (("memory_reserved", "of the memory of a rank"), ("communication_bytes", "of the bytes sent"),
          ("tokens_per_second", "of the tokens/s"))
SHARES = (("exposed_communication_seconds", "exposed communication"), ("data_wait_seconds", "data"), ("host_seconds", "host"))


def span(values, form):
    """A value, or the lowest and the highest of several."""
    lowest, highest = form(min(values)), form(max(values))
    return lowest if lowest == highest else f"{lowest} to {highest}"


def same_but_strategy(record):
    return (*(record[column] for column, _ in CHOICES if column != "strategy"),
            record["sequence"], record["batch"], record["accumulate"])


def strategies(worked):
    """A sentence for each strategy but the first, over the pairs of configurations that differ in nothing else."""
    names = list(dict.fromkeys(record["strategy"] for record in worked))
    base = {same_but_strategy(record): record for record in worked if record["strategy"] == names[0]}
    for name in names[1:]:
        pairs = [(record, base[same_but_strategy(record)]) for record in worked
                 if record["strategy"] == name and same_but_strategy(record) in base]
        parts = []
        for column, of in RATIOS:
            ratios = [record[column] / other[column] for record, other in pairs if other[column]]
            if ratios:
                parts.append(f"{span(ratios, '{:.2f}'.format)} {of}")
        if parts:
            yield f"{name} has {', '.join(parts)} of {names[0]} ({len(pairs)} pair{'' if len(pairs) == 1 else 's'})."


def sentences(records):
    """Lines for the terminal and the page."""
    worked = [record for record in records if record["status"] == "ok"]
    if not worked:
        return []
    percent = "{:.1%}".format
    shares = [f"{span([record[column] / record['step_seconds'] for record in worked], percent)} {what}" for column, what in SHARES]
    return [*strategies(worked),
            f"Of a step: {', '.join(shares)}. Utilisation: {span([record['utilisation'] for record in worked], percent)}."]
