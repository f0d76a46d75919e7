#!/usr/bin/env bash
# Installs everything Tessera needs to build, test and run on Debian 12.
# Idempotent: when nothing is missing it only asks dpkg and Python, and changes nothing.
#
#   tools/setup.sh             compiler, runtime, tests
#   tools/setup.sh --runtime   only what runtime/ and tessera-run need (no MLIR, no LLVM)
#   tools/setup.sh --demo      only what tools/demo.sh needs where it has a wheel (no compilers)
#   tools/setup.sh --oracle    also the newest PyTorch, its ONNX exporters and transformers, in .venv-oracle (to export models, to
#                              compare with PyTorch, and for tests/bench)
#   tools/setup.sh --oldest    also the oldest PyTorch that the package tessera supports, 2.6, in .venv-oldest (to regenerate
#                              goldens and test models, and to test the export tool)
set -euo pipefail

runtime_packages=(
  build-essential cmake ninja-build ccache pkg-config git
  libflatbuffers-dev flatbuffers-compiler libdnnl-dev libonnx-dev libprotobuf-dev protobuf-compiler
  libcli11-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libxxhash-dev zlib1g-dev libzip-dev libgtest-dev
  libopenmpi-dev openmpi-bin python3 python3-venv
)
compiler_packages=(
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools liblld-22-dev zlib1g-dev libzstd-dev libre2-dev
)
test_packages=(
  libonnx-testdata libgmock-dev clang clang-14 libclang-rt-14-dev libomp-14-dev clang-format clang-tidy iproute2
  python3-numpy python3-matplotlib fortunes patchelf python3-setuptools python3-wheel
)
demo_packages=(python3-venv python3-matplotlib fortunes)

cd "$(dirname "$0")/.."
mode=all
case "${1:-}" in
  "") ;;
  --runtime | --demo) mode=${1#--} ;;
  --oracle) mode=oracle ;;
  --oldest) mode=oldest ;;
  *) echo "usage: tools/setup.sh [--runtime|--demo|--oracle|--oldest]" >&2; exit 2 ;;
esac

case "$mode" in
  runtime) wanted=("${runtime_packages[@]}") ;;
  demo) wanted=("${demo_packages[@]}") ;;
  *) wanted=("${runtime_packages[@]}" "${compiler_packages[@]}" "${test_packages[@]}") ;;
esac

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  echo "setup: installing ${missing[*]}"
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# What tests compare with and Debian's packages lack: TensorBoard's reader, and the tokenizers and file formats of
# `python -m tessera data`.
packages_of_tests=(
  tensorboard==2.21.0 transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6 pyarrow==26.0.1 zstandard==0.25.0 tqdm==4.70.1
)
if [ "$mode" != runtime ] && [ "$mode" != demo ] &&
  [ "$(cat .venv-tests/ready 2>/dev/null)" != "${packages_of_tests[*]}" ]; then
  if python3 -m venv --system-site-packages .venv-tests && .venv-tests/bin/pip install -q --no-compile "${packages_of_tests[@]}"; then
    echo "${packages_of_tests[*]}" >.venv-tests/ready
  else
    echo "setup: no packages from PyPI; the tests that compare with TensorBoard or transformers will be skipped" >&2
  fi
fi

# PyTorch and the ONNX exporters live in virtual environments beside the build; nothing that runs in CI needs them.
# Tests use the one that TESSERA_TORCH_PYTHON names: .venv-oracle/bin/python or .venv-oldest/bin/python.
install_torch() {  # folder, packages
  local folder=$1
  shift
  [ -e "$folder/bin/pip" ] || python3 -m venv "$folder"
  "$folder/bin/pip" install -q --upgrade "$@"
}
case "$mode" in
  oracle) install_torch .venv-oracle torch numpy safetensors onnx onnxscript transformers peft accelerate chess ;;
  oldest) install_torch .venv-oldest torch==2.6.0 numpy safetensors onnx onnxscript ;;
esac
