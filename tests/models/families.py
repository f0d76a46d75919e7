"""What transformers' families need beside the usual small sizes; see shrink.py."""

# Attributes of configurations by family; nested dictionaries are those of nested configurations. "start" holds what
# even the full-size configuration cannot be made without.
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16}
MLA = {"head_dim": 8, "qk_rope_head_dim": 8}
NO_VISION = {"vision_config": None, "audio_config": None}
GEMMA4_ASSISTANT = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
INDEXER = {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 8,
           "indexer_compress_ratio": 4}
TINY_VISION = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
               "image_size": 28, "patch_size": 14}
SWA = {"swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_q_lora_rank": 16, "swa_kv_lora_rank": 16,
       "swa_head_dim": 24, "swa_qk_nope_head_dim": 16, "swa_v_head_dim": 16, "head_dim": 24, "qk_rope_head_dim": 8}
OVERRIDES = {
    "axk1": MLA,
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "blt": {"encoder_config": {"hidden_size_global": 64}, "decoder_config": {"hidden_size_global": 64},
            "vocab_size": 260, "encoder_hash_byte_group_vocab": 50},
    "cohere_compass_text": {"rope_parameters": {
        kind: {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]}
        for kind in ("full_attention", "sliding_attention")}},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}, "ffn_config": {"hidden_size": 64}},
    "deepseek_v2": {**MLA, "num_experts_per_tok": 2},
    "deepseek_v3": MLA,
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1},
    "dots3_note_text": SWA,
    "dots3_note": {"text_config": SWA, "vision_config": {"adapter_in_dim": 64, "adapter_out_dim": 64},
                   "audio_config": {"adapter_input_size": 64, "adapter_out_dim": 64}},
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 128},
    "gemma3n_text": {"num_hidden_layers": 4, "num_kv_shared_layers": 2, "intermediate_size": [128] * 4,
                     "layer_types": ["sliding_attention", "full_attention"] * 2,
                     "activation_sparsity_pattern": [0.95, 0.0, 0.95, 0.0]},
    "gemma4_assistant": {"start": {"text_config": GEMMA4_ASSISTANT},
                         "text_config": {**GEMMA4_ASSISTANT, "num_kv_shared_layers": 0}},
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 0}},
    "got_ocr2": {"vision_config": {"image_size": 64, "mlp_dim": 64, "output_channels": 16}},
    "granitemoehybrid": {**MAMBA, "layer_types": ["linear_attention", "full_attention"]},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16, "num_experts": 4, "moe_topk": 2},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_multiple_of": 16},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "llama4": {"vision_config": {"hidden_size": 64, "num_attention_heads": 4, "projector_input_dim": 64,
                                 "projector_output_dim": 64, "vision_output_dim": 64, "image_size": 28}},
    "longcat_flash": MLA,
    "mamba2": {"num_heads": 8, "n_groups": 2},
    "ministral": {"head_dim": 16},
    "nemotron": {"num_key_value_heads": 2},
    "phi4_multimodal": {
        "vision_config": {"image_size": 56, "crop_size": 56},
        "audio_config": {"nemo_conv_channels": 16, "ext_pw_out_channel": 64, "depthwise_separable_out_channel": 64}},
    "qwen4_exp": {"text_config": INDEXER},
    "qwen4_exp_text": INDEXER,
    "reformer": {"is_decoder": True, "axial_pos_shape": [4, 4], "axial_pos_embds_dim": [32, 32], "num_buckets": 4,
                 "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8},
    "roc_bert": {"shape_vocab_size": 128, "pronunciation_vocab_size": 128},
    "xmod": {"default_language": "en_XX"},
    "youtu": MLA,
    "zamba": {"num_hidden_layers": 3, "layers_block_type": ["linear_attention", "hybrid", "hybrid"]},
    "zamba2": {"num_hidden_layers": 3, "layers_block_type": ["linear_attention", "hybrid", "hybrid"]},
}
