// Activations wait for memory, not for instructions: count_ptx.py holds what a thread executes for an element against what
// a GPU can issue while the element's bytes are moved. After each kernel's name: bytes an element.
// GELU by erf is bound by memory on an H100, not quite on an H200.
// RUN: kernel-check --ptx=sm_90 %s | python3 %S/Inputs/count_ptx.py --elements=65536 --gpu=h100 silu=4 silu_grad=6 swiglu=6 \
// RUN:   swiglu_grad=10 gelu_tanh=4 gelu_tanh_grad=6 gelu_erf=4 gelu_erf_grad=6
// RUN: kernel-check --ptx=sm_90 %s | python3 %S/Inputs/count_ptx.py --elements=65536 --gpu=h200 silu=4 silu_grad=6 swiglu=6 \
// RUN:   swiglu_grad=10 gelu_tanh=4 gelu_tanh_grad=6
// RUN: kernel-check --gpu %s

func.func @silu(%x: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.sigmoid %0 : tensor<65536xf32>
  %2 = train.mul %0, %1 : tensor<65536xf32>
  %3 = train.convert %2 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %3 : tensor<65536xbf16>
}

func.func @silu_grad(%x: tensor<65536xbf16>, %dy: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.convert %dy : (tensor<65536xbf16>) -> tensor<65536xf32>
  %2 = train.sigmoid %0 : tensor<65536xf32>
  %3 = train.constant dense<1.0> : tensor<65536xf32>
  %4 = train.sub %3, %2 : tensor<65536xf32>
  %5 = train.mul %0, %4 : tensor<65536xf32>
  %6 = train.add %3, %5 : tensor<65536xf32>
  %7 = train.mul %2, %6 : tensor<65536xf32>
  %8 = train.mul %1, %7 : tensor<65536xf32>
  %9 = train.convert %8 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %9 : tensor<65536xbf16>
}

func.func @swiglu(%g: tensor<65536xbf16>, %u: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %g : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.convert %u : (tensor<65536xbf16>) -> tensor<65536xf32>
  %2 = train.sigmoid %0 : tensor<65536xf32>
  %3 = train.mul %0, %2 : tensor<65536xf32>
  %4 = train.mul %3, %1 : tensor<65536xf32>
  %5 = train.convert %4 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %5 : tensor<65536xbf16>
}

func.func @swiglu_grad(%g: tensor<65536xbf16>, %u: tensor<65536xbf16>, %dy: tensor<65536xbf16>) -> (tensor<65536xbf16>, tensor<65536xbf16>) {
  %0 = train.convert %g : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.convert %u : (tensor<65536xbf16>) -> tensor<65536xf32>
  %2 = train.convert %dy : (tensor<65536xbf16>) -> tensor<65536xf32>
  %3 = train.sigmoid %0 : tensor<65536xf32>
  %4 = train.mul %0, %3 : tensor<65536xf32>
  %5 = train.mul %2, %4 : tensor<65536xf32>
  %6 = train.mul %2, %1 : tensor<65536xf32>
  %7 = train.constant dense<1.0> : tensor<65536xf32>
  %8 = train.sub %7, %3 : tensor<65536xf32>
  %9 = train.mul %0, %8 : tensor<65536xf32>
  %10 = train.add %7, %9 : tensor<65536xf32>
  %11 = train.mul %3, %10 : tensor<65536xf32>
  %12 = train.mul %6, %11 : tensor<65536xf32>
  %13 = train.convert %12 : (tensor<65536xf32>) -> tensor<65536xbf16>
  %14 = train.convert %5 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %13, %14 : tensor<65536xbf16>, tensor<65536xbf16>
}

func.func @gelu_tanh(%x: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.mul %0, %0 : tensor<65536xf32>
  %2 = train.constant dense<0.0356774069> : tensor<65536xf32>
  %3 = train.mul %1, %2 : tensor<65536xf32>
  %4 = train.constant dense<0.797884583> : tensor<65536xf32>
  %5 = train.add %3, %4 : tensor<65536xf32>
  %6 = train.mul %0, %5 : tensor<65536xf32>
  %7 = train.tanh %6 : tensor<65536xf32>
  %8 = train.constant dense<0.5> : tensor<65536xf32>
  %9 = train.mul %0, %8 : tensor<65536xf32>
  %10 = train.constant dense<1.0> : tensor<65536xf32>
  %11 = train.add %7, %10 : tensor<65536xf32>
  %12 = train.mul %9, %11 : tensor<65536xf32>
  %13 = train.convert %12 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %13 : tensor<65536xbf16>
}

func.func @gelu_tanh_grad(%x: tensor<65536xbf16>, %dy: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.convert %dy : (tensor<65536xbf16>) -> tensor<65536xf32>
  %2 = train.mul %0, %0 : tensor<65536xf32>
  %3 = train.constant dense<0.0356774069> : tensor<65536xf32>
  %4 = train.mul %2, %3 : tensor<65536xf32>
  %5 = train.constant dense<0.797884583> : tensor<65536xf32>
  %6 = train.add %4, %5 : tensor<65536xf32>
  %7 = train.mul %0, %6 : tensor<65536xf32>
  %8 = train.tanh %7 : tensor<65536xf32>
  %9 = train.constant dense<1.0> : tensor<65536xf32>
  %10 = train.constant dense<0.5> : tensor<65536xf32>
  %11 = train.add %8, %9 : tensor<65536xf32>
  %12 = train.mul %10, %11 : tensor<65536xf32>
  %13 = train.mul %0, %10 : tensor<65536xf32>
  %14 = train.mul %8, %8 : tensor<65536xf32>
  %15 = train.sub %9, %14 : tensor<65536xf32>
  %16 = train.mul %13, %15 : tensor<65536xf32>
  %17 = train.constant dense<0.107032217> : tensor<65536xf32>
  %18 = train.mul %2, %17 : tensor<65536xf32>
  %19 = train.constant dense<0.797884583> : tensor<65536xf32>
  %20 = train.add %18, %19 : tensor<65536xf32>
  %21 = train.mul %16, %20 : tensor<65536xf32>
  %22 = train.add %12, %21 : tensor<65536xf32>
  %23 = train.mul %1, %22 : tensor<65536xf32>
  %24 = train.convert %23 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %24 : tensor<65536xbf16>
}

func.func @gelu_erf(%x: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.constant dense<0.707106769> : tensor<65536xf32>
  %2 = train.mul %0, %1 : tensor<65536xf32>
  %3 = train.erf %2 : tensor<65536xf32>
  %4 = train.constant dense<0.5> : tensor<65536xf32>
  %5 = train.mul %0, %4 : tensor<65536xf32>
  %6 = train.constant dense<1.0> : tensor<65536xf32>
  %7 = train.add %3, %6 : tensor<65536xf32>
  %8 = train.mul %5, %7 : tensor<65536xf32>
  %9 = train.convert %8 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %9 : tensor<65536xbf16>
}

func.func @gelu_erf_grad(%x: tensor<65536xbf16>, %dy: tensor<65536xbf16>) -> tensor<65536xbf16> {
  %0 = train.convert %x : (tensor<65536xbf16>) -> tensor<65536xf32>
  %1 = train.convert %dy : (tensor<65536xbf16>) -> tensor<65536xf32>
  %2 = train.constant dense<0.707106769> : tensor<65536xf32>
  %3 = train.mul %0, %2 : tensor<65536xf32>
  %4 = train.erf %3 : tensor<65536xf32>
  %5 = train.mul %0, %0 : tensor<65536xf32>
  %6 = train.constant dense<-0.5> : tensor<65536xf32>
  %7 = train.mul %5, %6 : tensor<65536xf32>
  %8 = train.exp %7 : tensor<65536xf32>
  %9 = train.constant dense<0.398942292> : tensor<65536xf32>
  %10 = train.mul %8, %9 : tensor<65536xf32>
  %11 = train.constant dense<0.5> : tensor<65536xf32>
  %12 = train.constant dense<1.0> : tensor<65536xf32>
  %13 = train.add %4, %12 : tensor<65536xf32>
  %14 = train.mul %11, %13 : tensor<65536xf32>
  %15 = train.mul %0, %10 : tensor<65536xf32>
  %16 = train.add %14, %15 : tensor<65536xf32>
  %17 = train.mul %1, %16 : tensor<65536xf32>
  %18 = train.convert %17 : (tensor<65536xf32>) -> tensor<65536xbf16>
  return %18 : tensor<65536xbf16>
}
