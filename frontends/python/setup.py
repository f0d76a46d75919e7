"""The version of the package is that of the project, which the clone's CMakeLists.txt says."""

import pathlib
import re

from setuptools import setup

text = (pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt").read_text()
setup(version=re.search(r"project\(tessera VERSION ([\d.]+)", text)[1])
