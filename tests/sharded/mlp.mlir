// A whole step (forward, backward, global-norm clipping, AdamW) on 1 to 4 virtual ranks equals the step on one, and zero3
// equals ddp bit for bit, also after scheduling.
// DEFINE: %{model} = %S/Inputs/mlp.mlir
// DEFINE: %{mesh} = shard = 2
// DEFINE: %{strategy} = zero3
// DEFINE: %{schedule} =
// DEFINE: %{out} = %t
// DEFINE: %{shard} = sed "s/shard = 1/%{mesh}/" %{model} | tessera-opt --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding --cse --canonicalize %{schedule} > %{out}

// REDEFINE: %{mesh} = shard = 1
// REDEFINE: %{out} = %t.1
// RUN: %{shard}
// RUN: tessera-interp %t.1 --compare=%{model} --rtol=0 --atol=0
// RUN: FileCheck %s --input-file=%t.1 --check-prefix=ONE
// ONE-NOT: dist.all
// ONE-NOT: dist.reduce

// REDEFINE: %{mesh} = shard = 2
// REDEFINE: %{out} = %t.z2
// RUN: %{shard}
// RUN: tessera-interp %t.z2 --compare=%{model} --rtol=1e-6
// REDEFINE: %{strategy} = ddp
// REDEFINE: %{out} = %t.d2
// RUN: %{shard}
// RUN: tessera-interp %t.d2 --compare=%{model} --rtol=1e-6
// RUN: tessera-interp %t.d2 --compare=%t.z2 --rtol=0 --atol=0

// REDEFINE: %{mesh} = shard = 3
// REDEFINE: %{out} = %t.d3
// RUN: %{shard}
// RUN: tessera-interp %t.d3 --compare=%{model} --rtol=1e-6
// REDEFINE: %{strategy} = zero3
// REDEFINE: %{schedule} = --split-async --prefetch --verify-schedule
// REDEFINE: %{out} = %t.z3
// RUN: %{shard}
// RUN: tessera-interp %t.z3 --compare=%{model} --rtol=1e-6
// RUN: tessera-interp %t.d3 --compare=%t.z3 --rtol=0 --atol=0

// REDEFINE: %{mesh} = replicate = 2, shard = 2
// REDEFINE: %{schedule} = --split-async --prefetch="forward=2 backward=none" --verify-schedule
// REDEFINE: %{out} = %t.z4
// RUN: %{shard}
// RUN: tessera-interp %t.z4 --compare=%{model} --rtol=1e-6
// REDEFINE: %{mesh} = shard = 4
// REDEFINE: %{strategy} = ddp
// REDEFINE: %{out} = %t.d4
// RUN: %{shard}
// RUN: tessera-interp %t.d4 --compare=%{model} --rtol=1e-6
