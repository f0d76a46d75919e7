#!/usr/bin/env bash
# The main job on real input: compiles a GPT of 10.8 M parameters, a program of torch.export, into one artifact for
# ZeRO-3 over two ranks, shows what it will need, and trains it on English text on this machine's CPU.
#
# The tools are those of the wheel in dist/ if there is one (tools/package.sh), else they are built, which takes long once.
#
#   tools/demo.sh             200 steps, a few minutes
#   tools/demo.sh --steps N   N steps
set -euo pipefail
cd "$(dirname "$0")/.."

steps=200
case "${1:-}" in
  "") ;;
  --steps) steps=${2:?"--steps needs a number"} ;;
  *) echo "usage: tools/demo.sh [--steps N]" >&2; exit 2 ;;
esac

version=$(sed -nE 's/^version = "([0-9.]+)".*/\1/p' frontends/python/pyproject.toml)
wheels=(dist/tessera-"$version"-py3-none-manylinux_*_"$(uname -m)".whl)
mkdir -p build
if [ -e "${wheels[0]}" ]; then
  echo "== install ${wheels[0]} in build/demo-venv (remove it from dist/ to build the tools instead)"
  tools/setup.sh --demo
  /usr/bin/python3 -m venv build/demo-venv
  build/demo-venv/bin/pip install -q --no-index --no-deps --force-reinstall "${wheels[0]}"
  bin=build/demo-venv/bin
else
  echo "== install what is missing, and build the tools (none is built where a wheel of tools/package.sh lies in dist/)"
  tools/setup.sh
  tools/build-tools.sh
  bin=build/release/bin
fi
out=runs/demo
text=build/demo-text

# Debian's fortunes: quotations, literature, science, riddles; 1.8 MB of English in plain files.
rm -rf "$text" "$out"
mkdir -p "$text" runs
for file in /usr/share/games/fortunes/*; do
  case $file in *.dat | *.u8) ;; *) cp "$file" "$text/$(basename "$file").txt" ;; esac
done

echo "== compile"
"$bin/tessera-compile" tools/demo/gpt.pt2 -o build/gpt.tessera --loss cross-entropy --optimizer adamw --lr 6e-4 \
  --schedule cosine --warmup 40 --min-lr 6e-5 --weight-decay 0.1 --betas 0.9 0.95 --clip-norm 1 --batch 8 --seq 256 \
  --mesh shard=2 --strategy zero3 --embed-ir --timing
echo "== what it will need"
"$bin/tessera-dump" build/gpt.tessera
echo "== train"
"$bin/tessera-run" build/gpt.tessera --data "$text" --steps "$steps" --out "$out" --trace-steps 3 \
  --checkpoint-every $((steps / 2)) --log-every 10
/usr/bin/python3 tools/plot-loss.py "$out"
echo "== left in $out"
ls -1 "$out"
echo "== the tools are in $bin"
