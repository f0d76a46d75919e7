"""All rows of the operators' table, by family: a file of the folder families for each. Needs torch."""

import importlib
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
sys.path.insert(0, FOLDER)
FAMILIES = {name[:-3]: importlib.import_module(name[:-3]).ROWS for name in sorted(os.listdir(FOLDER)) if name.endswith(".py")}
if len({row.name for rows in FAMILIES.values() for row in rows}) != sum(map(len, FAMILIES.values())):
    raise ValueError("two rows have one name: " + str(sorted(row.name for rows in FAMILIES.values() for row in rows)))
