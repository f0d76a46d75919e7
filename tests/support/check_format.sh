#!/usr/bin/env bash
# Every C++ source of the tree is as clang-format leaves it.
set -euo pipefail
cd "$(dirname "$0")/../.."
git ls-files -- '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run -Werror
