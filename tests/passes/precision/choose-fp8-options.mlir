// RUN: tessera-opt %s --choose-fp8="recipe=tensorwise filter=fc" | FileCheck %s --check-prefix=FILTER
// RUN: tessera-opt %s --choose-fp8="recipe=tensorwise keep-bf16=first:1,last:2" 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: not tessera-opt %s --choose-fp8=filter=nothing 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not tessera-opt %s --choose-fp8=keep-bf16=middle:1 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: not tessera-opt %s --choose-fp8=keep-bf16=first:1,first:0 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: not tessera-opt %s --choose-fp8=keep-bf16=first:2,last:3 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: sed 's/h[.]\([0-9]\)[.]/layer\1/' %s | not tessera-opt --choose-fp8=keep-bf16=first:1 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: not tessera-opt %s --choose-fp8=recipe=nvfp4 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not tessera-opt %s --choose-fp8=filter=head 2>&1 | FileCheck %s --check-prefix=ALL
// The options of choose-fp8, and the list of all products where none is left.

// FILTER-COUNT-3: scaling = #train.scaling<tensorwise, activation, weight>
// FILTER-NOT: #train.scaling
// BLOCKS: remark: the product of 'h.0.proj.weight' stays in bf16: --fp8-keep-bf16 names its block, 'h.0'
// BLOCKS: remark: the product of 'h.2.fc.weight' stays in bf16: --fp8-keep-bf16 names its block, 'h.2'
// BLOCKS: remark: the product of 'h.3.fc.weight' stays in bf16: --fp8-keep-bf16 names its block, 'h.3'
// BLOCKS-COUNT-1: scaling = #train.scaling<tensorwise, activation, weight>
// BLOCKS-NOT: scaling
// NOTHING: error: --fp8-filter: no parameter of a product matches 'nothing'; nearest: '
// KEEP: error: --fp8-keep-bf16: expected first:<blocks>,last:<blocks>, got 'middle:1'
// GIVEN: error: --fp8-keep-bf16: expected first:<blocks>,last:<blocks>, got 'first:1,first:0'
// MANY: error: --fp8-keep-bf16 names 5 blocks, but products are in 4 (as parameters are named)
// NAMES: error: --fp8-keep-bf16 names 1 block, but products are in 0 (as parameters are named)
// ALL: error: no product can be computed in 8 bits by recipe rowwise:
// ALL-NEXT: the product of 'h.0.proj.weight': --fp8-filter does not name its parameter
// ALL: the product of 'head.weight': a head: only the loss and outputs follow from it
// RECIPE: error: unknown recipe 'nvfp4', expected one of tensorwise, rowwise, rowwise_hp, block128, mxfp8

func.func @blocks(%x: tensor<8x16xf32> {train.role = "input", train.name = "x"},
                  %w0: tensor<16x16xf32> {train.role = "param", train.name = "h.0.proj.weight"},
                  %w1: tensor<16x16xf32> {train.role = "param", train.name = "h.1.fc.weight"},
                  %w2: tensor<16x16xf32> {train.role = "param", train.name = "h.2.fc.weight"},
                  %w3: tensor<16x16xf32> {train.role = "param", train.name = "h.3.fc.weight"},
                  %head: tensor<16x16xf32> {train.role = "param", train.name = "head.weight"})
    -> (tensor<f32> {train.role = "loss"}) {
  %h0 = train.dot_general %x, %w0 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %h1 = train.dot_general %h0, %w1 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %h2 = train.dot_general %h1, %w2 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %h3 = train.dot_general %h2, %w3 {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %y = train.dot_general %h3, %head {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
