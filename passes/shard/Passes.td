//===- Passes.td - passes of the shard phase ------------------------------===//

#ifndef TESSERA_PASSES_SHARD
#define TESSERA_PASSES_SHARD

include "mlir/Pass/PassBase.td"

class ShardPass<string mnemonic> : Pass<mnemonic, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::tessera::dist::DistDialect", "::tessera::train::TrainDialect"];
}

def AnnotateShardingPass : ShardPass<"annotate-sharding"> {
  let summary = "Says how a strategy shards parameters, gradients, optimizer state and batches";
  let description = [{
    The only pass that knows strategies (rows of Strategy.h). It sets `dist.sharding` on arguments and results and inserts `dist.constrain`;
    everything else follows by propagation.

    | | parameters at rest, state | compute parameters | gradients |
    |---|---|---|---|
    | `ddp` | replicated | the same | all-reduced once per step |
    | `zero1` | split | gathered once per step, kept | accumulated whole, reduce-scattered once per step |
    | `zero2` | split | gathered once per step, kept | reduce-scattered in every micro-batch |
    | `zero3` | split | gathered per unit for forward, again for backward | reduce-scattered in every micro-batch |

    A unit that computes at both ends of the forward pass, and then begins the backward pass (an embedding that is tied to
    the head), is whole all that time: it is gathered once for both, with a remark.

    State is split over the axes whose role allows it (`data`, `sequence`). `hsdp` is `zero3` that insists on an axis of replicas
    beside them; with both every strategy adds gradients up over data axes first and, once per step, over replicas. An
    axis larger than 1 of a role that nothing is split over yet is an error. Units whose name matches `keep-gathered` are gathered
    once per step under `zero3` too.

    A unit that the model reads through one narrowing `convert` is gathered narrow: each rank converts its part. With
    `reduce-dtype=bf16` ranks round their gradients to bf16, add them up so and widen the sums; accumulation over
    micro-batches, clipping and the update stay in the gradient's own type.

    A placed unit (`train.placement` of its segments) is split over its axes by every strategy, states and gradient too: a
    rank has its row, and the strategy's axes split that further (`{"tp", "shard"}`). An axis of parameters that no unit is
    placed on is an error.

    Positions are split over the sequence axes, along the dimension that counts them, in ranges or in a zigzag (`sequence-order`). With
    `dealt` inputs are split in ranges; the pairs of a query and a key that attention sees of each block of queries are counted from them, a `dist.deal`
    says which blocks each rank has, and inputs are constrained to that order where anything but the order itself follows from them.
    Batches are split over all axes that split samples, in the order of the mesh, along the dimension that counts samples
    (`train.dims`; where that is assumed it is written down). What has none is not split, with a remark. Uses of a gradient other than its update (the global norm) see a slice of it under `ddp`, so that
    all strategies add up in the same order. `train.count_valid` is written out, because its clamp to 1 cannot be
    sharded while its sum can.

    Precondition: module attribute `dist.mesh`; for all but `ddp`, parameters are flat units whose size the data axes
    divide. Postcondition: every argument has `dist.sharding`, every result but outputs too.

    Before, `zero3` over `shard = 2`:
    ```mlir
    func.func @step(%u: tensor<8xf32> {train.role = "param", train.name = "u"}, …)
      %w = train.reshape %u : (tensor<8xf32>) -> tensor<2x4xf32>
    ```
    After:
    ```mlir
    func.func @step(%u: tensor<8xf32> {dist.sharding = #dist.sharding<[{"shard"} ]>, …}, …)
      %c = dist.constrain %u <[{} ]> {origin = #dist.origin<forward, ["u"]>} : tensor<8xf32>
      %w = train.reshape %c : (tensor<8xf32>) -> tensor<2x4xf32>
    ```
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"ddp\"", "ddp, zero1, zero2, zero3 or hsdp">,
    Option<"reduceDtype", "reduce-dtype", "std::string", "\"fp32\"",
           "what gradients are added up in over ranks: fp32 (their own type) or bf16">,
    Option<"keepGathered", "keep-gathered", "::tessera::OptionText", "", "regular expression of units that are gathered once">,
    Option<"attention", "attention", "std::string", "\"auto\"", "as of split-attention, which it must agree with">,
    Option<"sequenceOrder", "sequence-order", "std::string", "\"auto\"",
           "how positions are dealt to ranks: contiguous, zigzag, dealt (or dealt:blocks=<of a rank>), or auto (dealt where the keys "
           "that queries see follow from the batch, zigzag where it balances causal attention)">,
  ];
}

def SplitAttentionPass : ShardPass<"split-attention"> {
  let summary = "Says how attention is computed where positions are split over ranks";
  let description = [{
    The only pass that knows ways to compute attention over a split sequence (rows of SequenceStrategy.h); what is sent follows
    from sharding rules and partitions.

    | | what a rank has for attention | what is sent |
    |---|---|---|
    | `allgather` | its queries, all keys | keys and values gathered, their gradients reduce-scattered |
    | `ring` | its queries, a block of keys at a time | keys and values from rank to rank, in the backward pass their gradients with them |
    | `ulysses` | its heads, all positions | queries, keys, values and results exchanged, heads for positions |
    | `ring+ulysses` | heads by the last sequence axis, a ring over the others | both |

    `auto` takes the exchange of heads where they divide, over the last axis, and a ring over others. Heads of queries or keys that do
    not divide by the ranks that exchange them are an error.

    Where keys are gathered, `gather-bytes` and `gather-type` become attributes of the ops, `dist.gather_bytes` and
    `dist.gather_type`. `localize` then gathers so many key heads at a time as take no more bytes (at least one, with a
    remark), each block in front of the computation of the one before; gradients are reduce-scattered block by block. Every
    head is computed as it is otherwise. An attention with other numbers of keys than queries is not changed, with a
    remark; where none is, it is an error.

    Precondition: `annotate-sharding` with the same options. Postcondition: `attention` and `attention_grad` have
    `split = ring`, or stand between `dist.move_axes`, or have `dist.gather_…`. A mesh without sequence axes larger than 1 changes nothing.

    Before, with `seq = 2`:
    ```mlir
    %o, %lse = train.attention %q, %k, %v {scale = 1.0 : f64, causal} : …
    ```
    After, `ulysses`:
    ```mlir
    %qh = dist.move_axes %q {axes = ["seq"], from = 2, to = 1} : tensor<1x2x8x4xf32>
    …
    %o, %lse = train.attention %qh, %kh, %vh {scale = 1.0 : f64, causal} : …
    %op = dist.move_axes %o {axes = ["seq"], from = 1, to = 2} : tensor<1x2x8x4xf32>
    ```
  }];
  let options = [
    Option<"attention", "attention", "std::string", "\"auto\"", "allgather, ring, ulysses, ring+ulysses or auto">,
    Option<"sequenceOrder", "sequence-order", "std::string", "\"auto\"", "as of annotate-sharding">,
    Option<"gatherBytes", "gather-bytes", "int64_t", "0", "bytes that keys and values of a rank may take when they are gathered, with their gradients in the backward pass; 0: all heads at once">,
    Option<"gatherType", "gather-type", "std::string", "\"compute\"", "compute (their own) or fp32: what keys and values are gathered in, and their gradients added up in over ranks">,
    Option<"isChosen", "is-chosen", "bool", "false", "the compiler has chosen the attention: that it gathers nothing is a remark and no error">,
  ];
}

def PropagateShardingPass : ShardPass<"propagate-sharding"> {
  let summary = "Gives every value a sharding, from those of arguments and constraints";
  let description = [{
    Knows ops only by their sharding rules. Forward, the operands of an op decide its factors and those its results;
    backward, a dimension that nothing split is split as its users want, if its producer can and no other user minds.
    A sum or a maximum over a split dimension leaves its result *unreduced* over the axis; linear or monotone ops pass that
    on. An op that can run on parts by collectives of its own does where that sends less than gathering.

    Precondition: `annotate-sharding`, or hand-written `dist.sharding` and `dist.constrain`. Postcondition: each op has
    `dist.shardings` with one sharding per result, each function argument and result `dist.sharding`. Of ops it inserts
    `dist.constrain` alone: where a sum that is owed over an axis of parameters is read by several ops, it is added up before
    them, once.

    Before:
    ```mlir
    %s = train.reduce sum, %x {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    ```
    After, with `%x` split over `shard`:
    ```mlir
    %s = train.reduce sum, %x {dimensions = array<i64: 0>,
                               dist.shardings = [#dist.sharding<[], unreduced = {"shard"}>] } : …
    ```
  }];
}

def InsertReshardsPass : ShardPass<"insert-reshards"> {
  let summary = "Makes every change of sharding a `dist.reshard`";
  let description = [{
    Where an operand's sharding differs from what its op's rule needs, and where a constraint changes a sharding, a
    `dist.reshard` is inserted; a partial sum is reduced before an op that is not linear in it. One reshard serves all
    uses of a value that need the same sharding. Splat constants are made again instead. Constraints disappear. Where an op
    could also run on parts, a remark says what was chosen and what each way sends.

    Precondition: `propagate-sharding`. Postcondition: that of `verify-sharding`.

    ```mlir
    %r = dist.reshard %s <[], unreduced = {"shard"}> to <[]> : tensor<f32>
    %y = train.sqrt %r : tensor<f32>
    ```
  }];
}

def VerifyShardingPass : ShardPass<"verify-sharding"> {
  let summary = "Checks shardings before localisation and collectives after it";
  let description = [{
    Before localisation: every operand has exactly the sharding that its op's rule needs, a reshard is between the
    shardings it names, no partial sum is returned or used as if it were whole. After: types of arguments and results
    agree with `dist.sharding` and `dist.global`, collectives work along dimension 0 over axes of the mesh, each once, and
    no op of the global form is left. Changes nothing.

    Precondition: `insert-reshards` (before) or `localize` (after). Postcondition: an error at the op, or the above holds.

    ```mlir
    %s = train.reduce sum, %x …          // with %x sharded, %s is a partial sum:
    %y = train.exp %s                    // error without a dist.reshard between them
    ```
  }];
}

def LocalizePass : ShardPass<"localize"> {
  let summary = "Rewrites the step from global tensors to the parts of one rank";
  let description = [{
    Types become local. A reshard becomes collectives: an unreduced axis that is to split a dimension a
    `reduce_scatter`, another an `all_reduce`, an axis that disappears an `all_gather`, one that appears a
    `slice_local`, one that changes dimensions an `all_to_all`. All but the last work along dimension 0, between
    transposes where the dimension is another. Labels of constraints move to their collectives. Ops that depend on
    their place in the global tensor get an offset (iota, random numbers, weight decay).

    Precondition: `insert-reshards`. Postcondition: no `dist.constrain`, `dist.reshard` or `dist.shardings`; arguments
    and results keep `dist.sharding` and have `dist.global`, their global type. A dimension that the axes do not divide is
    an error.

    Before:
    ```mlir
    %g = dist.reshard %u <[{"shard"} ]> to <[{} ]> {origin = #dist.origin<forward, ["u"]>} : tensor<8xf32>
    ```
    After, with `shard = 2`:
    ```mlir
    %g = dist.all_gather %u {axes = ["shard"], dim = 0 : i64, origin = #dist.origin<forward, ["u"]>} : (tensor<4xf32>) -> tensor<8xf32>
    ```
  }];
}

#endif // TESSERA_PASSES_SHARD
