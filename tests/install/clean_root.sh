#!/usr/bin/env bash
# Tries what tools/package.sh made on a fresh Debian 12 without compilers: installs the wheel, unpacks the archives, compiles
# and trains with each. Then, with a Python that has torch (TESSERA_TORCH_PYTHON), compares a training with PyTorch's by the
# wheel's tools. Needs root, debootstrap, and a Debian mirror (TESSERA_DEBIAN_MIRROR names another); takes some 2 minutes.
#
#   clean_root.sh DIST       a folder with a wheel and both archives
set -euo pipefail
cd "$(dirname "$0")/../.."
dist=$(realpath "${1:?usage: clean_root.sh DIST}")
[ "$(id -u)" -eq 0 ] || { echo "clean_root.sh: needs root, for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "clean_root.sh: needs debootstrap (Debian: apt-get install debootstrap)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
debootstrap --variant=minbase --include=python3,python3-venv,python3-numpy bookworm "$root" \
  "${TESSERA_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 || {
  tail -n 20 "$work/debootstrap.log" >&2
  exit 1
}
mkdir "$root/try"
cp "$dist"/tessera-*-py3-none-manylinux_*.whl tools/demo/gpt.pt2 "$root/try"
for archive in "$dist"/tessera-*.tar.gz; do tar xzf "$archive" -C "$root/opt"; done

cat >"$root/try.sh" <<'TRY'
set -eu
cd /try
for compiler in cc gcc clang cmake ld; do
  if command -v $compiler; then echo "the root has a compiler" >&2; exit 1; fi
done
python3 -m venv --system-site-packages venv
venv/bin/pip install -q --no-index ./*.whl
mkdir text
cp /usr/share/common-licenses/GPL-3 text/text.txt
step="gpt.pt2 --loss cross-entropy --batch 2 --seq 32 --mesh shard=2 --strategy zero3"
venv/bin/tessera-compile $step -o wheel.tessera
venv/bin/tessera-run wheel.tessera --data text --steps 2 --out wheel
venv/bin/python -c "
import tessera
artifact = tessera.compile('gpt.pt2', 'package.tessera', batch=2, seq=32, loss='cross-entropy')
assert len(tessera.train(artifact, 'text', steps=2, out='package').losses) == 2"
/opt/tessera-[0-9]*/bin/tessera-compile $step -o archive.tessera
cmp wheel.tessera archive.tessera
/opt/tessera-runtime-*/bin/tessera-run archive.tessera --data text --steps 2 --out archive
cmp wheel/model.safetensors archive/model.safetensors
echo "clean root: works"
TRY
# The mount of /proc ends with the processes inside.
unshare --mount --pid --fork sh -c "mount -t proc proc '$root/proc' && exec chroot '$root' sh /try.sh"

if [ -n "${TESSERA_TORCH_PYTHON:-}" ]; then
  "$TESSERA_TORCH_PYTHON" -m pip install -q --no-index --no-deps --target "$work/package" "$dist"/tessera-*-py3-none-manylinux_*.whl
  cat >"$work/net.py" <<'NET'
import torch

def build():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)), (torch.randn(6, 8),)
NET
  env -u TESSERA_BIN PATH=/usr/bin:/bin PYTHONPATH="$work/package" "$TESSERA_TORCH_PYTHON" -m tessera verify "$work/net.py:build"
else
  echo "clean_root.sh: TESSERA_TORCH_PYTHON is not set, nothing was compared with PyTorch"
fi
