"""Makes small models of transformers' families: a configuration of any family at d=64, two layers and 128 tokens."""

import warnings

from families import OVERRIDES

WIDTH, HEADS, HEAD, LAYERS, VOCABULARY, POSITIONS, INNER, EXPERTS = 64, 4, 16, 2, 128, 64, 128, 4

# What the usual attributes of configurations are set to. The attributes that a family has not are not set.
SIZES = [
    (WIDTH, """hidden_size d_model n_embd emb_dim embedding_dim word_embed_proj_dim lru_width
        backbone_hidden_size output_embedding_size conv_dim pronunciation_embed_dim shape_embed_dim dim_model_base"""),
    (HEADS, """num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads
        attention_heads num_encoder_attention_heads num_decoder_attention_heads swa_num_attention_heads
        linear_num_value_heads linear_num_heads index_n_heads num_query_groups"""),
    (LAYERS, """num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers num_encoder_layers
        num_decoder_layers num_blocks num_layers_per_stack"""),
    (INNER, """intermediate_size ffn_dim decoder_ffn_dim encoder_ffn_dim dff d_inner dim_ff feed_forward_size n_inner
        intermediate_size_mlp dense_intermediate_size ffn_hidden_size"""),
    (HEAD, """head_dim d_head dim_head kv_channels attention_head_size v_head_dim swa_head_dim linear_key_head_dim
        linear_value_head_dim linear_head_dim index_head_dim global_head_dim mamba_d_head mamba_head_dim mamba_headdim
        kv_lora_rank q_lora_rank qk_nope_head_dim hc_lowrank o_lora_rank adapter_rank rel_extent"""),
    (VOCABULARY, "vocab_size decoder_vocab_size vocab_size_per_layer_input"),
    (POSITIONS, """max_position_embeddings n_positions n_ctx max_seq_len context_length original_max_position_embeddings
        model_max_length max_target_positions axial_positions max_source_positions"""),
    (32, """moe_intermediate_size shared_expert_intermediate_size shared_experts_intermediate_size
        expert_ffn_hidden_size moe_shared_expert_intermediate_size shared_intermediate_size embedding_size
        input_embedding_size router_hidden_size prompt_mid_dim"""),
    (EXPERTS, "num_experts num_local_experts n_routed_experts moe_num_experts zero_expert_num"),
    (2, """num_experts_per_tok moe_topk moe_k num_experts_per_token linear_num_key_heads swa_num_key_value_heads
        moe_top_k"""),
    (8, """sliding_window sliding_window_size local_attention attention_window_size attention_chunk_size window_size
        qk_rope_head_dim mamba_chunk_size chunk_size block_size rotary_dim index_topk hidden_size_per_layer_input
        laurel_rank mamba_d_state state_size ssm_state_size d_rel gated_norm_rank keep_window_size mamba_dt_rank
        time_step_rank"""),
    (1, "n_group topk_group num_expert_group first_k_dense_replace num_dense_layers number_of_conv_states"),
    (0, "num_nextn_predict_layers"),
]
SIZE = {name: size for size, names in SIZES for name in names.split()}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "sep_token_id": 2, "cls_token_id": 1,
          "forced_eos_token_id": 2, "eod_token_id": 2, "bos_index": 1, "eos_index": 2, "unk_index": 3, "mask_index": 4}
LENGTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")


def small_value(name, value, config):
    """The small value of an attribute, or None to leave it as it is."""
    if name in TOKENS:
        return TOKENS[name]
    if name in ("num_key_value_heads", "num_kv_heads", "swa_num_key_value_heads", "num_global_key_value_heads"):
        heads = vars(config).get("num_attention_heads")
        return None if value is None else 1 if value == 1 else HEADS if value == heads else 2
    if name in SIZE and isinstance(value, (int, float)) and not isinstance(value, bool):
        return min(SIZE[name], value) if value > 0 or SIZE[name] == 0 else None
    return None


def keep_layers(attributes):
    """Which layers of the full model to keep: the first of each kind, two at least. None: any."""
    count = next((attributes[name] for name in LENGTHS if isinstance(attributes.get(name), int)), None)
    lists = {name: value for name, value in attributes.items()
             if isinstance(value, (list, tuple)) and len(value) == count and count > 1}
    first = {0}
    for values in lists.values():
        kinds = set(values) if all(isinstance(value, (str, int)) for value in values) else ()
        if len(kinds) <= LAYERS + 2:  # otherwise they number the layers
            first |= {values.index(kind) for kind in kinds}
    first = sorted(first)
    while len(first) < LAYERS:
        first.append(first[-1] + 1)
    return lists, first


def small_settings(config, overrides=None):
    """Keyword arguments that make a small configuration of this one's class; nested configurations are made small
    too."""
    from transformers import PretrainedConfig
    attributes = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    settings = {}
    for name, value in attributes.items():
        if isinstance(value, PretrainedConfig):
            settings[name] = small_settings(value)
            continue
        small = small_value(name, value, config)
        if small is not None:
            settings[name] = small
    lists, kept = keep_layers(attributes)
    for name, values in lists.items():
        settings[name] = [values[index] for index in kept]
    if lists:
        for name in LENGTHS:
            if name in settings:
                settings[name] = len(kept)
    for name, value in (overrides or {}).items():
        if isinstance(value, dict) and isinstance(settings.get(name), dict):
            settings[name] = {**settings[name], **value}
        else:
            settings[name] = value
    return settings


def family_settings(family, pad):
    """Keyword arguments of a small configuration of the family, as --set of python -m tessera takes them. pad: the
    padding token's id, or None for no such token."""
    from transformers import CONFIG_MAPPING
    own = dict(OVERRIDES.get(family, {}))
    start = own.pop("start", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {**start, **small_settings(CONFIG_MAPPING[family](**start), own)}
    for nested in [settings, *(value for value in settings.values() if isinstance(value, dict))]:
        if nested is settings or "vocab_size" in nested:
            nested["pad_token_id"] = pad
    return settings
