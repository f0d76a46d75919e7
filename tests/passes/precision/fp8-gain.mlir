// Which layers gain from 8 bits: all, those that the recipe's authors cast, or those that a target is faster with.
// RUN: tessera-opt %s --choose-fp8=recipe=tensorwise 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %s --choose-fp8="recipe=tensorwise select=rules" 2>&1 | FileCheck %s --check-prefix=RULES
// RUN: tessera-opt %s --choose-fp8="recipe=mxfp8 select=rules" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not tessera-opt %s --choose-fp8="recipe=tensorwise select=some" 2>&1 | FileCheck %s --check-prefix=SELECT
// RUN: not tessera-opt %s --choose-fp8="recipe=tensorwise select=auto target=nothing" 2>&1 | FileCheck %s --check-prefix=TARGET

// 0.5 TFLOP/s of products in bf16 and 1 in 8 bits, 10 GB/s: numbers that can be computed by hand.
// RUN: sed -e '/"memory_bandwidth"/,/value/s/1000000000000.0/1e10/' \
// RUN:     -e '/"peak_flops"/a "bf16": {"value": 1e12, "unit": "FLOP/s", "source": "a test"}, "fp8": {"value": 2e12, "unit": "FLOP/s", "source": "a test"},' \
// RUN:     -e '/"gemm_efficiency"/a "bf16": {"points": [[1000, 1000, 1000, 0.5]], "unit": "fraction", "source": "a test"}, "fp8": {"points": [[1000, 1000, 1000, 0.5]], "unit": "fraction", "source": "a test"},' \
// RUN:     %S/../schedule/Inputs/round-numbers.json > %t.json
// RUN: tessera-opt %s --choose-fp8="recipe=tensorwise select=auto target=%t.json" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: tessera-opt %s --choose-fp8="recipe=tensorwise select=auto target=%t.json parts=4" 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: tessera-opt %s --choose-fp8="recipe=rowwise_hp select=auto target=%t.json" 2>&1 | FileCheck %s --check-prefix=HP
// The same without products that are faster in 8 bits: casts alone.
// RUN: sed 's/"value": 2e12/"value": 1e12/' %t.json > %t.slow.json
// RUN: not tessera-opt %s --choose-fp8="recipe=tensorwise select=auto target=%t.slow.json" 2>&1 | FileCheck %s --check-prefix=SLOW

// ALL-NOT: the product of '{{small|wide|large}}'
// ALL-COUNT-3: scaling = #train.scaling<

// Thresholds are of a recipe, and of inputs and outputs together.
// RULES: remark: the product of 'small' stays in bf16: 128 inputs and 128 outputs are too few to gain from recipe tensorwise
// RULES-NOT: the product of '{{wide|large}}'
// RULES: train.dot_general {{.*}} {lhs_batch
// RULES-COUNT-2: scaling = #train.scaling<tensorwise, activation, weight>
// RULES-NOT: scaling =

// SELECT: error: --fp8-select: expected all, rules or auto, got 'some'
// TARGET: error: unknown target 'nothing'

// 4096 tokens: three products of 2 * 4096 * 128 * 128 FLOPs, and 7 bytes for each activation and gradient: once for the
// largest value, once for the cast, and for a transpose.
// AUTO: remark: the product of 'small' stays in bf16: in bf16 its products take 805.3 us on a rank of round-numbers, in 8 bits 1136.7 us with casts
// AUTO-NOT: the product of '{{wide|large}}'
// AUTO-COUNT-2: scaling = #train.scaling<tensorwise, activation, weight>
// AUTO-NOT: scaling =
// PARTS: remark: the product of 'small' stays in bf16: in bf16 its products take 201.3 us on a rank of round-numbers, in 8 bits 284.2 us with casts
// The gradient of the weight is left in bf16; a scale for each row needs no pass of its own.
// HP: remark: the product of 'small' stays in bf16: in bf16 its products take 805.3 us on a rank of round-numbers, in 8 bits 851.4 us with casts
// HP-NOT: the product of '{{wide|large}}'
// HP-COUNT-2: scaling = #train.scaling<rowwise_hp, activation, weight>
// SLOW: error: no product can be computed in 8 bits by recipe tensorwise:
// SLOW-NEXT: the product of 'small': in bf16 its products take 805.3 us on a rank of round-numbers, in 8 bits 1539.3 us with casts
// SLOW-NEXT: the product of 'wide': in bf16
// SLOW-NEXT: the product of 'large': in bf16
func.func @layers(%x: tensor<4096x128xf32> {train.role = "input", train.name = "x"},
                  %small: tensor<128x128xf32> {train.role = "param", train.name = "small"},
                  %wide: tensor<2048x128xf32> {train.role = "param", train.name = "wide"},
                  %large: tensor<2048x2048xf32> {train.role = "param", train.name = "large"},
                  %head: tensor<128x2048xf32> {train.role = "param", train.name = "head"}) -> (tensor<f32> {train.role = "loss"}) {
  %0 = train.dot_general %x, %small {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4096x128xf32>, tensor<128x128xf32>) -> tensor<4096x128xf32>
  %1 = train.dot_general %0, %wide {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4096x128xf32>, tensor<2048x128xf32>) -> tensor<4096x2048xf32>
  %2 = train.dot_general %1, %large {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4096x2048xf32>, tensor<2048x2048xf32>) -> tensor<4096x2048xf32>
  %y = train.dot_general %2, %head {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 1>} : (tensor<4096x2048xf32>, tensor<128x2048xf32>) -> tensor<4096x128xf32>
  %loss = train.reduce sum, %y {dimensions = array<i64: 0, 1>} : (tensor<4096x128xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
