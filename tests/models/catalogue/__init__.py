"""Several hundred ordinary modules of PyTorch, by family: a table of rows each. Needs torch."""

import importlib

FAMILIES = ("activations", "losses", "norms", "convolutions", "pooling", "recurrent", "attention", "embeddings", "shapes",
            "elementwise", "blocks")


def all_rows():
    """Every row, in order; names are unique."""
    rows = {}
    for family in FAMILIES:
        for row in importlib.import_module(f"catalogue.{family}").ROWS:
            if row.name in rows:
                raise ValueError(f"two rows are called {row.name}")
            row.family = family
            rows[row.name] = row
    return list(rows.values())
