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

def PrefetchPass : SchedulePass<"prefetch"> {
  let summary = "Starts gathers of parameters units ahead and lets reductions of gradients run on";
  let description = [{
    A gather of a value that exists at the block's start is the gather of a unit; the unit's point is the first op that
    computes with it (slices and reshapes of it move down to their uses). `done` goes to the point, the start to the
    point of the unit k gathers earlier in the block, with k = `forward`, or `backward` for gathers with
    `train.backward`. So at most k + 1 gathered units of a phase are alive besides those that are still used.

    A reduce-scatter or all-reduce starts as soon as its operand is complete (reshapes and concatenations in front of it
    move up with it); its `done` sinks to its first use or to where the next collective of its kind starts, whichever is
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
    Option<"backward", "backward", "int64_t", "1", "units ahead at which a backward gather starts">,
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
