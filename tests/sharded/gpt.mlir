// A two-layer GPT with tied embeddings, differentiated, flattened and given AdamW by the real passes: its sharded steps on
// 2 to 4 virtual ranks, with and without accumulation, equal the step on one rank.
// DEFINE: %{mesh} = shard = 2
// DEFINE: %{strategy} = zero3
// DEFINE: %{schedule} =
// DEFINE: %{whole} = %t.whole
// DEFINE: %{out} = %t
// DEFINE: %{count} = 1
// DEFINE: %{joint} = tessera-opt %S/Inputs/gpt.mlir --add-loss=kind=cross-entropy --differentiate --flatten-parameters="wrap=module pad-multiple=12" --accumulate-gradients=count=%{count} --clip-gradients=max-norm=1.0 --insert-optimizer --cse --canonicalize -o %{whole}
// DEFINE: %{shard} = sed "s/shard = 1/%{mesh}/" %{whole} | tessera-opt --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --verify-sharding --localize --verify-sharding --cse --canonicalize %{schedule} -o %{out}

// RUN: %{joint}
// REDEFINE: %{mesh} = shard = 3
// REDEFINE: %{out} = %t.z3
// RUN: %{shard}
// RUN: tessera-interp %t.z3 --compare=%t.whole --rtol=1e-5 --quiet
// RUN: FileCheck %s --input-file=%t.z3
// REDEFINE: %{strategy} = ddp
// REDEFINE: %{schedule} = --split-async --prefetch --verify-schedule
// REDEFINE: %{out} = %t.d3
// RUN: %{shard}
// RUN: tessera-interp %t.d3 --compare=%t.z3 --rtol=0 --atol=0 --quiet

// REDEFINE: %{count} = 4
// REDEFINE: %{whole} = %t.whole4
// RUN: %{joint}
// REDEFINE: %{mesh} = shard = 2
// REDEFINE: %{out} = %t.d2
// RUN: %{shard}
// RUN: tessera-interp %t.d2 --compare=%t.whole4 --rtol=1e-5 --quiet
// REDEFINE: %{mesh} = replicate = 2, shard = 2
// REDEFINE: %{strategy} = zero3
// REDEFINE: %{out} = %t.z4
// RUN: %{shard}
// RUN: tessera-interp %t.z4 --compare=%t.whole4 --rtol=1e-5 --quiet
// RUN: FileCheck %s --input-file=%t.z4 --check-prefix=HYBRID

// Nothing but units is communicated, and three scalars: the count, the squared norm, the loss. The embedding is tied to the
// head, so what was gathered for forward serves backward too.
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<forward, ["embed"]>
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<forward, ["h.0"]>
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<forward, ["h.1"]>
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<forward, ["head"]>
// CHECK: dist.all_reduce {{.*}} : (tensor<f32>)
// CHECK-DAG: dist.all_gather {{.*}}origin = #dist.origin<backward, ["head"]>
// CHECK-DAG: dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["head"]>
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<backward, ["h.1"]>
// CHECK: dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["h.1"]>
// CHECK: dist.all_gather {{.*}}origin = #dist.origin<backward, ["h.0"]>
// CHECK: dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["h.0"]>
// CHECK: dist.reduce_scatter {{.*}}origin = #dist.origin<gradient, ["embed"]>
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: dist.all_reduce {{.*}} : (tensor<f32>)
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: dist.all_reduce {{.*}}origin = #dist.origin<result, ["loss"]>} : (tensor<f32>)
// CHECK-NOT: dist.{{all|reduce}}

// The sum over replicas is owed until after the last micro-batch.
// HYBRID: train.accumulate
// HYBRID: dist.reduce_scatter_start {{.*}}axes = ["shard"]
// HYBRID-NOT: "replicate"
// HYBRID: train.yield
// HYBRID: dist.all_reduce_start {{.*}}axes = ["replicate"]
