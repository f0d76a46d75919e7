"""All rows of the operators' table, by family: a file of the folder families for each. Needs torch."""

import importlib
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
sys.path.insert(0, FOLDER)
FAMILIES = {name[:-3]: importlib.import_module(name[:-3]).ROWS for name in sorted(os.listdir(FOLDER)) if name.endswith(".py")}
for family, rows in FAMILIES.items():
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"rows of {family} have one name: {', '.join(twice)}")
