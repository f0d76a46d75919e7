// A two-layer GPT with tied embeddings, forward only.

module attributes {dist.mesh = #dist.mesh<shard = 1>} {
func.func @step(
    %wte_weight: tensor<10x8xf32> {train.role = "param", train.name = "wte.weight"},
    %wpe_weight: tensor<4x8xf32> {train.role = "param", train.name = "wpe.weight"},
    %h_0_ln_1_weight: tensor<8xf32> {train.role = "param", train.name = "h.0.ln_1.weight"},
    %h_0_ln_1_bias: tensor<8xf32> {train.role = "param", train.name = "h.0.ln_1.bias"},
    %h_0_attn_c_attn_weight: tensor<8x24xf32> {train.role = "param", train.name = "h.0.attn.c_attn.weight"},
    %h_0_attn_c_attn_bias: tensor<24xf32> {train.role = "param", train.name = "h.0.attn.c_attn.bias"},
    %h_0_attn_c_proj_weight: tensor<8x8xf32> {train.role = "param", train.name = "h.0.attn.c_proj.weight"},
    %h_0_attn_c_proj_bias: tensor<8xf32> {train.role = "param", train.name = "h.0.attn.c_proj.bias"},
    %h_0_ln_2_weight: tensor<8xf32> {train.role = "param", train.name = "h.0.ln_2.weight"},
    %h_0_ln_2_bias: tensor<8xf32> {train.role = "param", train.name = "h.0.ln_2.bias"},
    %h_0_mlp_c_fc_weight: tensor<8x16xf32> {train.role = "param", train.name = "h.0.mlp.c_fc.weight"},
    %h_0_mlp_c_fc_bias: tensor<16xf32> {train.role = "param", train.name = "h.0.mlp.c_fc.bias"},
    %h_0_mlp_c_proj_weight: tensor<16x8xf32> {train.role = "param", train.name = "h.0.mlp.c_proj.weight"},
    %h_0_mlp_c_proj_bias: tensor<8xf32> {train.role = "param", train.name = "h.0.mlp.c_proj.bias"},
    %h_1_ln_1_weight: tensor<8xf32> {train.role = "param", train.name = "h.1.ln_1.weight"},
    %h_1_ln_1_bias: tensor<8xf32> {train.role = "param", train.name = "h.1.ln_1.bias"},
    %h_1_attn_c_attn_weight: tensor<8x24xf32> {train.role = "param", train.name = "h.1.attn.c_attn.weight"},
    %h_1_attn_c_attn_bias: tensor<24xf32> {train.role = "param", train.name = "h.1.attn.c_attn.bias"},
    %h_1_attn_c_proj_weight: tensor<8x8xf32> {train.role = "param", train.name = "h.1.attn.c_proj.weight"},
    %h_1_attn_c_proj_bias: tensor<8xf32> {train.role = "param", train.name = "h.1.attn.c_proj.bias"},
    %h_1_ln_2_weight: tensor<8xf32> {train.role = "param", train.name = "h.1.ln_2.weight"},
    %h_1_ln_2_bias: tensor<8xf32> {train.role = "param", train.name = "h.1.ln_2.bias"},
    %h_1_mlp_c_fc_weight: tensor<8x16xf32> {train.role = "param", train.name = "h.1.mlp.c_fc.weight"},
    %h_1_mlp_c_fc_bias: tensor<16xf32> {train.role = "param", train.name = "h.1.mlp.c_fc.bias"},
    %h_1_mlp_c_proj_weight: tensor<16x8xf32> {train.role = "param", train.name = "h.1.mlp.c_proj.weight"},
    %h_1_mlp_c_proj_bias: tensor<8xf32> {train.role = "param", train.name = "h.1.mlp.c_proj.bias"},
    %ln_f_weight: tensor<8xf32> {train.role = "param", train.name = "ln_f.weight"},
    %ln_f_bias: tensor<8xf32> {train.role = "param", train.name = "ln_f.bias"},
    %tokens: tensor<12x4xi32> {train.role = "input", train.name = "tokens"})
    -> (tensor<12x4x10xf32> {train.role = "output", train.name = "logits"}) {
  %1 = train.gather_rows %wte_weight, %tokens : (tensor<10x8xf32>, tensor<12x4xi32>) -> tensor<12x4x8xf32>
  %2 = train.iota {dim = 0 : i64} : tensor<4xi32>
  %3 = train.gather_rows %wpe_weight, %2 : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  %4 = train.broadcast %3 {broadcast_dimensions = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<12x4x8xf32>
  %5 = train.add %1, %4 : tensor<12x4x8xf32>
  %6:3 = train.layer_norm layer, %5 scale(%h_0_ln_1_weight) bias(%h_0_ln_1_bias) {epsilon = 1.0e-05} : (tensor<12x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<12x4x8xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %7 = train.dot_general %6#0, %h_0_attn_c_attn_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x24xf32>) -> tensor<12x4x24xf32>
  %8 = train.broadcast %h_0_attn_c_attn_bias {broadcast_dimensions = array<i64: 2>} : (tensor<24xf32>) -> tensor<12x4x24xf32>
  %9 = train.add %7, %8 : tensor<12x4x24xf32>
  %10 = train.slice %9 {starts = array<i64: 0, 0, 0>, limits = array<i64: 12, 4, 8>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %11 = train.reshape %10 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %12 = train.transpose %11 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %13 = train.slice %9 {starts = array<i64: 0, 0, 8>, limits = array<i64: 12, 4, 16>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %14 = train.reshape %13 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %15 = train.transpose %14 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %16 = train.slice %9 {starts = array<i64: 0, 0, 16>, limits = array<i64: 12, 4, 24>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %17 = train.reshape %16 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %18 = train.transpose %17 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %19:2 = train.attention %12, %15, %18 {scale = 0.5, causal} : (tensor<12x2x4x4xf32>, tensor<12x2x4x4xf32>, tensor<12x2x4x4xf32>) -> (tensor<12x2x4x4xf32>, tensor<12x2x4xf32>)
  %20 = train.transpose %19#0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x2x4x4xf32>) -> tensor<12x4x2x4xf32>
  %21 = train.reshape %20 : (tensor<12x4x2x4xf32>) -> tensor<12x4x8xf32>
  %22 = train.dot_general %21, %h_0_attn_c_proj_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x8xf32>) -> tensor<12x4x8xf32>
  %23 = train.broadcast %h_0_attn_c_proj_bias {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<12x4x8xf32>
  %24 = train.add %22, %23 : tensor<12x4x8xf32>
  %25 = train.add %5, %24 : tensor<12x4x8xf32>
  %26:3 = train.layer_norm layer, %25 scale(%h_0_ln_2_weight) bias(%h_0_ln_2_bias) {epsilon = 1.0e-05} : (tensor<12x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<12x4x8xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %27 = train.dot_general %26#0, %h_0_mlp_c_fc_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x16xf32>) -> tensor<12x4x16xf32>
  %28 = train.broadcast %h_0_mlp_c_fc_bias {broadcast_dimensions = array<i64: 2>} : (tensor<16xf32>) -> tensor<12x4x16xf32>
  %29 = train.add %27, %28 : tensor<12x4x16xf32>
  %30 = train.tanh %29 : tensor<12x4x16xf32>
  %31 = train.dot_general %30, %h_0_mlp_c_proj_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x16xf32>, tensor<16x8xf32>) -> tensor<12x4x8xf32>
  %32 = train.broadcast %h_0_mlp_c_proj_bias {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<12x4x8xf32>
  %33 = train.add %31, %32 : tensor<12x4x8xf32>
  %34 = train.add %25, %33 : tensor<12x4x8xf32>
  %35:3 = train.layer_norm layer, %34 scale(%h_1_ln_1_weight) bias(%h_1_ln_1_bias) {epsilon = 1.0e-05} : (tensor<12x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<12x4x8xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %36 = train.dot_general %35#0, %h_1_attn_c_attn_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x24xf32>) -> tensor<12x4x24xf32>
  %37 = train.broadcast %h_1_attn_c_attn_bias {broadcast_dimensions = array<i64: 2>} : (tensor<24xf32>) -> tensor<12x4x24xf32>
  %38 = train.add %36, %37 : tensor<12x4x24xf32>
  %39 = train.slice %38 {starts = array<i64: 0, 0, 0>, limits = array<i64: 12, 4, 8>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %40 = train.reshape %39 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %41 = train.transpose %40 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %42 = train.slice %38 {starts = array<i64: 0, 0, 8>, limits = array<i64: 12, 4, 16>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %43 = train.reshape %42 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %44 = train.transpose %43 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %45 = train.slice %38 {starts = array<i64: 0, 0, 16>, limits = array<i64: 12, 4, 24>, strides = array<i64: 1, 1, 1>} : (tensor<12x4x24xf32>) -> tensor<12x4x8xf32>
  %46 = train.reshape %45 : (tensor<12x4x8xf32>) -> tensor<12x4x2x4xf32>
  %47 = train.transpose %46 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x4x2x4xf32>) -> tensor<12x2x4x4xf32>
  %48:2 = train.attention %41, %44, %47 {scale = 0.5, causal} : (tensor<12x2x4x4xf32>, tensor<12x2x4x4xf32>, tensor<12x2x4x4xf32>) -> (tensor<12x2x4x4xf32>, tensor<12x2x4xf32>)
  %49 = train.transpose %48#0 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<12x2x4x4xf32>) -> tensor<12x4x2x4xf32>
  %50 = train.reshape %49 : (tensor<12x4x2x4xf32>) -> tensor<12x4x8xf32>
  %51 = train.dot_general %50, %h_1_attn_c_proj_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x8xf32>) -> tensor<12x4x8xf32>
  %52 = train.broadcast %h_1_attn_c_proj_bias {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<12x4x8xf32>
  %53 = train.add %51, %52 : tensor<12x4x8xf32>
  %54 = train.add %34, %53 : tensor<12x4x8xf32>
  %55:3 = train.layer_norm layer, %54 scale(%h_1_ln_2_weight) bias(%h_1_ln_2_bias) {epsilon = 1.0e-05} : (tensor<12x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<12x4x8xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %56 = train.dot_general %55#0, %h_1_mlp_c_fc_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x8xf32>, tensor<8x16xf32>) -> tensor<12x4x16xf32>
  %57 = train.broadcast %h_1_mlp_c_fc_bias {broadcast_dimensions = array<i64: 2>} : (tensor<16xf32>) -> tensor<12x4x16xf32>
  %58 = train.add %56, %57 : tensor<12x4x16xf32>
  %59 = train.tanh %58 : tensor<12x4x16xf32>
  %60 = train.dot_general %59, %h_1_mlp_c_proj_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 0>} : (tensor<12x4x16xf32>, tensor<16x8xf32>) -> tensor<12x4x8xf32>
  %61 = train.broadcast %h_1_mlp_c_proj_bias {broadcast_dimensions = array<i64: 2>} : (tensor<8xf32>) -> tensor<12x4x8xf32>
  %62 = train.add %60, %61 : tensor<12x4x8xf32>
  %63 = train.add %54, %62 : tensor<12x4x8xf32>
  %64:3 = train.layer_norm layer, %63 scale(%ln_f_weight) bias(%ln_f_bias) {epsilon = 1.0e-05} : (tensor<12x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<12x4x8xf32>, tensor<12x4xf32>, tensor<12x4xf32>)
  %65 = train.dot_general %64#0, %wte_weight {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 2>, rhs_contract = array<i64: 1>} : (tensor<12x4x8xf32>, tensor<10x8xf32>) -> tensor<12x4x10xf32>
  return %65 : tensor<12x4x10xf32>
}
}
