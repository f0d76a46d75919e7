//===- Passes.td - passes of the schedule phase ---------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE
#define TESSERA_PASSES_SCHEDULE

include "mlir/Pass/PassBase.td"

class SchedulePass<string mnemonic> : Pass<mnemonic, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::train::TrainDialect"];
}

def SplitAsyncPass : SchedulePass<"split-async"> {
  let summary = "Splits every collective into a start and a done";
  let description = [{
    The future between the two is the time in which the collective may run beside computation. Both stay where the
    collective was; `prefetch` moves them. Each placement carries a `schedule.reason`.

    Precondition: `localize`. Postcondition: no synchronous collective is left.

    ```mlir
    %g = dist.all_gather %u {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
    ```
    becomes
    ```mlir
    %f = dist.all_gather_start %u {axes = ["shard"], dim = 0 : i64} : (tensor<4xf32>) -> !dist.future<tensor<8xf32>>
    %g = dist.done %f : (!dist.future<tensor<8xf32>>) -> tensor<8xf32>
    ```
  }];
}

def CombineCollectivesPass : SchedulePass<"combine-collectives"> {
  let summary = "Joins small collectives of one kind, group, type and phase into one";
  let description = [{
    A collective costs a latency whatever its size, so small ones that follow each other are made one, up to `bytes` of
    the whole tensors. Only collectives of one block, op, axes, element type and phase of origin join.

    - Gathers of units stand where the first of them was; no more than `ahead` units join, since so many are gathered
      ahead anyway, and the first unit of a block stays alone, because nothing hides its gather.
    - Reductions stand where the last of them was, in front of the first use of any.

    Sums are formed per element, in group order, joined or not. A joined all-reduce works on the concatenation of its
    operands, where their producers can write directly; a joined gather or reduce-scatter interleaves the parts of the
    ranks, which costs a copy of the joined bytes. What is not joined although its size would allow it is remarked.

    Precondition: `localize`; collectives are synchronous. One along another dimension than 0 is remarked and stays.
    Postcondition: the same values; collectives are still synchronous, and no joined one is larger than `bytes`.

    Before and after:
    ```mlir
    %x = dist.all_reduce %a {axes = ["shard"], origin = #dist.origin<gradient, ["a"]>} : (tensor<4xf32>) -> tensor<4xf32>
    %y = dist.all_reduce %b {axes = ["shard"], origin = #dist.origin<gradient, ["b"]>} : (tensor<2xf32>) -> tensor<2xf32>

    %c = train.concat %a, %b {dim = 0 : i64} : (tensor<4xf32>, tensor<2xf32>) -> tensor<6xf32>
    %s = dist.all_reduce %c {axes = ["shard"], origin = #dist.origin<gradient, ["a", "b"]>} : (tensor<6xf32>) -> tensor<6xf32>
    %x = train.slice %s {starts = array<i64: 0>, limits = array<i64: 4>, …} : (tensor<6xf32>) -> tensor<4xf32>
    %y = train.slice %s {starts = array<i64: 4>, limits = array<i64: 6>, …} : (tensor<6xf32>) -> tensor<2xf32>
    ```
  }];
  let options = [
    Option<"bytes", "bytes", "int64_t", "65536", "most bytes of a joined collective (whole tensors); 0 joins nothing">,
    Option<"ahead", "ahead", "int64_t", "1", "units that prefetch gathers ahead: most units that a gather joins">,
  ];
}

def PrefetchPass : SchedulePass<"prefetch"> {
  let summary = "Starts gathers of parameters units ahead and lets reductions of gradients run on";
  let description = [{
    A gather of a value that exists at the block's start is the gather of a unit; the unit's point is the first op that
    computes with it (slices and reshapes of it move down to their uses). `done` goes to the point. A forward gather
    starts at the point of the unit `forward` gathers earlier in the block, so that at most `forward` + 1 gathered units
    are alive besides those that are still used. Units of one module (`train.module`) that follow each other count as one. A backward gather (`train.backward`) starts at the point of the unit
    before it (`pre`), after the last use of the unit before it (`post`: one unit less alive, and less to hide behind), or
    at its own (`none`).

    A reduce-scatter or all-reduce starts as soon as its operand is complete (reshapes and concatenations in front of it
    move up with it); its `done` sinks to its first use or to where the next collective of its kind and axes starts, whichever is
    earlier, so that at most one of a kind is under way.

    The order is that of the program, hence the same on all ranks. Ops do not leave their block: under
    `train.accumulate` every micro-batch prefetches for itself. Every start and done says in `schedule.reason` why it
    stands where it does.

    Precondition: `split-async`. Postcondition: that of `verify-schedule`.

    With `forward=1`, before and after:
    ```mlir
    %g1 = done(start(%u1)); use(%g1); %g2 = done(start(%u2)); use(%g2)
    %f1 = start(%u1); %f2 = start(%u2); %g1 = done(%f1); use(%g1); %g2 = done(%f2); use(%g2)
    ```
  }];
  let options = [
    Option<"forward", "forward", "int64_t", "1", "units ahead at which a forward gather starts">,
    Option<"backward", "backward", "std::string", "\"pre\"", "when a backward gather starts: pre, post or none">,
  ];
}

def PrefetchAutoPass : SchedulePass<"prefetch-auto"> {
  let summary = "Starts gathers of parameters by assigned latencies, within a memory limit";
  let description = [{
    A list scheduler. Computation keeps its order; every op gets its latency on `target` (docs/cost-model.md). Gathers of
    units run one after the other in the order of their first uses. From the last to the first each gets the latest
    start at which it, and the gathers behind it, are over in time: a gather that starts earlier holds memory and hides
    nothing more. Then, in order, each start goes in front of the last op that begins by then, or, where the units
    gathered ahead of their use would exceed `memory`, behind the first use of the unit that makes room. What cannot be
    hidden is exposed, and its reason says how much.

    Reductions and the ends of gathers are placed as by `prefetch`. Order and reasons depend on the program and the target
    file only.

    Precondition: `split-async`, and the module attribute `dist.mesh`. Postcondition: that of `verify-schedule`; units
    gathered ahead of their use never exceed `memory`.

    A unit of 2 ms behind ops of 1 ms, 3 ms and 1 ms:
    ```mlir
    %0 = op1; %1 = op2; %2 = op3; %g = done(start(%u)); use(%g)
    %0 = op1; %f = start(%u); %1 = op2; %2 = op3; %g = done(%f); use(%g)
    ```
  }];
  let options = [
    Option<"target", "target", "::tessera::OptionText", "\"cpu\"", "name or path of a target file">,
    Option<"memory", "memory", "int64_t", "0", "most bytes of units gathered ahead of their use; 0: any">,
  ];
}

def VerifyCollectiveOrderPass : Pass<"verify-collective-order"> {
  let summary = "Proves that all ranks run one sequence of collectives";
  let description = [{
    All ranks run one program, so their sequences can differ only by control flow. The pass shows that there is none that
    depends on a rank: every op with a region around a collective is one whose body runs a number of times that is
    written in the program (`train.accumulate`, `exec.repeat`, `exec.loop`); branches between blocks,
    calls, and any other region op around a collective are errors, whatever their condition. Every start has one `done`
    in its own block, hence both run equally often; in an exec program every stream with collectives is waited for
    behind its last one, in the same block. Runs on functions and on exec programs; changes nothing.

    The sequence itself (kind, group, types, stream, loops) is hashed into the artifact as `collective_hash`, which the
    ranks compare before the first step.

    Precondition: none. Postcondition: an error at the op, or all ranks run the same collectives in the same order.

    ```mlir
    scf.if %isFirstRank {                // error at the collective: how often it runs could depend on the rank
      %s = dist.all_reduce %x …
    }
    ```
  }];
}

def OffloadPass : SchedulePass<"offload"> {
  let summary = "Keeps classes of memory on the host and copies them to the device for use";
  let description = [{
    | class | on the host | on the device |
    |---|---|---|
    | `optimizer` | state of all units | that of a unit around its update |
    | `parameters` | parameters (this rank's shards) and frozen tensors | those of a unit around its uses in forward, backward and update |
    | `activations` | what the backward pass reads of the forward pass, from `min-bytes` on | the same, until it has been copied and again from shortly before it is read |

    Arguments on the host carry `dist.memory = "host"`; their next values are copied back into their places. Copies are
    `dist.copy_start` and `dist.done`. Those to the device start one unit ahead: where the first op computes with the unit
    before. Those to the host start when the value is computed and have ended two units later, so that at most three
    units are on the device. A unit of activations is what one block of the model keeps (by location); the last one,
    which is read first, does not move. Views (and barriers) of what comes back are repeated in the backward pass.

    The order is that of the program, hence the same on all ranks. Every start and done says in `schedule.reason` why it
    stands where it does.

    Precondition: `split-async`, `prefetch`. Postcondition: the same results, bit for bit.

    ```mlir
    %p2, %m2, %v2 = train.adamw_update %p, %m, %v, %g …   // %m is an argument
    return %p2, %m2, %v2
    // becomes with optimizer
    %fm = dist.copy_start %m to "device" …
    …
    %dm = dist.done %fm …
    %p2, %m2, %v2 = train.adamw_update %p, %dm, %dv, %g …
    %fm2 = dist.copy_start %m2 to "host" …
    …
    %hm2 = dist.done %fm2 …
    return %p2, %hm2, %hv2
    ```
  }];
  let options = [
    Option<"optimizer", "optimizer", "bool", "false", "Offload optimizer state">,
    Option<"parameters", "parameters", "bool", "false", "Offload parameters">,
    Option<"activations", "activations", "bool", "false", "Offload activations">,
    Option<"minBytes", "min-bytes", "int64_t", "4096", "Bytes from which on an activation is worth a copy">,
  ];
}

def VerifySchedulePass : SchedulePass<"verify-schedule"> {
  let summary = "Checks that every collective that starts is waited for once, in order";
  let description = [{
    Every start has a reason and exactly one `dist.done`, in its block, hence on every path; a future has no other use;
    collectives of one kind over one group end in the order in which they start; none is synchronous. Changes nothing.

    Precondition: `split-async`, `prefetch`. Postcondition: an error at the op, or the above holds.

    ```mlir
    %f = dist.all_gather_start %u …      // error without a dist.done of %f in this block
    ```
  }];
}

#endif // TESSERA_PASSES_SCHEDULE
