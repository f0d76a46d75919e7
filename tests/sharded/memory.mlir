// A two-layer GPT whose blocks are recomputed and whose memory is on the host computes what it did, bit for bit: on one
// rank after the pass, and on two as a sharded and scheduled step with and without micro-batches.
// DEFINE: %{remat} =
// DEFINE: %{offload} =
// DEFINE: %{strategy} = zero3
// DEFINE: %{count} = 1
// DEFINE: %{out} = %t
// DEFINE: %{compile} = sed "s/shard = 1/shard = 2/" %S/Inputs/gpt.mlir | tessera-opt --add-loss=kind=cross-entropy --differentiate --canonicalize --cse %{remat} --flatten-parameters="wrap=module pad-multiple=12" --accumulate-gradients=count=%{count} --clip-gradients=max-norm=1.0 --insert-optimizer --canonicalize --cse --annotate-sharding=strategy=%{strategy} --propagate-sharding --insert-reshards --verify-sharding --localize --canonicalize --cse --verify-sharding --split-async --prefetch %{offload} --verify-schedule -o %{out}
// DEFINE: %{same} = tessera-interp %{out} --compare=%t.plain --rtol=0 --atol=0 --quiet

// REDEFINE: %{out} = %t.plain
// RUN: %{compile}
// REDEFINE: %{out} = %t.changed
// REDEFINE: %{remat} = --rematerialise=policy=full
// RUN: %{compile}
// RUN: FileCheck %s --input-file=%t.changed
// RUN: %{same}
// REDEFINE: %{offload} = --offload="optimizer=true parameters=true activations=true min-bytes=1"
// RUN: %{compile}
// RUN: %{same}
// REDEFINE: %{remat} = --rematerialise=policy=selective
// RUN: %{compile}
// RUN: %{same}

// REDEFINE: %{count} = 3
// REDEFINE: %{remat} =
// REDEFINE: %{offload} =
// REDEFINE: %{out} = %t.plain
// RUN: %{compile}
// REDEFINE: %{out} = %t.changed
// REDEFINE: %{remat} = --rematerialise="policy=budget budget=10000"
// REDEFINE: %{offload} = --offload="optimizer=true parameters=true activations=true min-bytes=1"
// RUN: %{compile}
// RUN: %{same}

// REDEFINE: %{strategy} = ddp
// REDEFINE: %{remat} =
// REDEFINE: %{offload} =
// REDEFINE: %{out} = %t.plain
// RUN: %{compile}
// REDEFINE: %{out} = %t.changed
// REDEFINE: %{remat} = --rematerialise=policy=selective
// RUN: %{compile}
// RUN: %{same}
// REDEFINE: %{offload} = --offload="parameters=true activations=true min-bytes=1"
// RUN: %{compile}
// RUN: %{same}

// The recomputation of a block waits for the backward pass's gather of its unit.
// CHECK: dist.all_gather_start {{.*}}origin = #dist.origin<backward, ["{{.*}}1"]>
// CHECK: train.barrier {{.*}}train.recompute
// CHECK: train.dot_general {{.*}}train.recompute
// CHECK: train.attention {{.*}}train.recompute
