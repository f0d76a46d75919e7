// Where files have parameters, printed and read.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK: train.weight_map = #train.weight_map<root = "model", prefix = "transformer",
// CHECK-SAME: parameters = [#train.stored<"model.lm_head.weight", pieces = [#train.piece<"transformer.wte.weight",
// CHECK-SAME: shape = [64, 8], sizes = [512], offset = 0, strides = [1], tensor_offset = 0, tensor_strides = [1]>],
// CHECK-SAME: others = ["lm_head.weight"]>, #train.stored<"model.scale", pieces = [#train.piece<"s", shape = [],
// CHECK-SAME: sizes = [1], offset = 0, strides = [1], tensor_offset = 0, tensor_strides = [1]>], others = []>],
// CHECK-SAME: unread = ["rotary.inv_freq"], refused = "">
module attributes {train.weight_map = #train.weight_map<root = "model", prefix = "transformer", parameters =
    [#train.stored<"model.lm_head.weight", pieces = [#train.piece<"transformer.wte.weight", shape = [64, 8],
      sizes = [512], offset = 0, strides = [1], tensor_offset = 0, tensor_strides = [1]>], others = ["lm_head.weight"]>,
     #train.stored<"model.scale", pieces = [#train.piece<"s", shape = [], sizes = [1], offset = 0, strides = [1],
      tensor_offset = 0, tensor_strides = [1]>], others = []>],
    unread = ["rotary.inv_freq"], refused = "">} {
}
