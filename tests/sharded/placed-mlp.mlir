// Weight-stationary model parallelism: the MLPs of a two-layer GPT are placed on model axes (the outputs of the first
// product, the inputs of the second), alone and together with every way to split the rest over data axes. A whole step,
// with clipping by the norm and AdamW, equals the step on one rank, parameter by parameter and moment by moment.
// DEFINE: %{mesh} = tp:model = 2
// DEFINE: %{rules} =
// DEFINE: %{strategy} = zero3
// DEFINE: %{count} = 1
// DEFINE: %{whole} = %t.whole
// DEFINE: %{out} = %t
// DEFINE: %{schedule} =
// DEFINE: %{optimize} = --accumulate-gradients=count=%{count} --clip-gradients=max-norm=0.5 --insert-optimizer --cse --canonicalize
// DEFINE: %{joint} = tessera-opt %S/Inputs/gpt.mlir --add-loss=kind=cross-entropy --join-products --differentiate --flatten-parameters="wrap=module pad-multiple=12" %{optimize} -o %{whole}
// DEFINE: %{shard} = sed "s/shard = 1/%{mesh}/" %S/Inputs/gpt.mlir | tessera-opt --place-parameters="rules=%{rules}{mlp.c_fc.weight=1},{mlp.c_fc.bias=0},{mlp.c_proj.weight=0}" --add-loss=kind=cross-entropy --join-products --differentiate --flatten-parameters="wrap=module pad-multiple=12" %{optimize} --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding --cse --canonicalize %{schedule} -o %{out}

// RUN: %{joint}
// REDEFINE: %{out} = %t.m2
// RUN: %{shard}
// RUN: tessera-interp %t.m2 --compare=%t.whole --rtol=1e-5 --quiet
// RUN: FileCheck %s --input-file=%t.m2

// REDEFINE: %{mesh} = tp:model = 4
// REDEFINE: %{strategy} = ddp
// REDEFINE: %{out} = %t.m4
// RUN: %{shard}
// RUN: tessera-interp %t.m4 --compare=%t.whole --rtol=1e-5 --quiet

// Two model axes; the data axis is between them.
// REDEFINE: %{mesh} = a:model = 2, shard = 3, b:model = 2
// REDEFINE: %{out} = %t.d12
// RUN: %{shard}
// RUN: tessera-interp %t.d12 --compare=%t.whole --rtol=1e-5 --quiet
// REDEFINE: %{strategy} = zero3
// REDEFINE: %{schedule} = --split-async --prefetch --verify-schedule
// REDEFINE: %{out} = %t.z12
// RUN: %{shard}
// RUN: tessera-interp %t.z12 --compare=%t.whole --rtol=1e-5 --quiet

// Some on one of two axes, some on the other, some on both.
// REDEFINE: %{mesh} = a:model = 2, shard = 2, b:model = 4
// REDEFINE: %{rules} = {h.0.mlp.c_fc.weight=1:b},{h.0.mlp.c_proj.weight=0:b},{h.1.mlp.c_fc.bias=0:a},{h.1.attn.c_proj.weight=0:a+b},
// REDEFINE: %{out} = %t.two
// RUN: %{shard}
// RUN: tessera-interp %t.two --compare=%t.whole --rtol=1e-5 --quiet
// REDEFINE: %{rules} =

// REDEFINE: %{count} = 4
// REDEFINE: %{whole} = %t.whole4
// RUN: %{joint}
// REDEFINE: %{mesh} = replicate = 2, shard = 2, tp:model = 2
// REDEFINE: %{strategy} = hsdp
// REDEFINE: %{out} = %t.h8
// RUN: %{shard}
// RUN: tessera-interp %t.h8 --compare=%t.whole4 --rtol=1e-5 --quiet
// REDEFINE: %{strategy} = zero1
// REDEFINE: %{mesh} = tp:model = 2, shard = 2
// REDEFINE: %{out} = %t.o4
// RUN: %{shard}
// RUN: tessera-interp %t.o4 --compare=%t.whole4 --rtol=1e-5 --quiet

// Nothing of a placed parameter, its gradient or its moments travels. What does are activations: of each MLP one sum
// forward and one backward, and the squared norm.
// CHECK-LABEL: func @step
// CHECK-SAME: tensor<132xf32> {{.*}}dist.global = tensor<264xf32>{{.*}}train.name = "h.0.tp"
// CHECK-NOT: dist.{{all_gather|reduce_scatter|all_to_all}}
// CHECK-COUNT-4: dist.all_reduce {{.*}} : (tensor<{{.*}}x8xf32>)
// CHECK-NOT: dist.{{all_gather|reduce_scatter|all_to_all}}
// CHECK: return
