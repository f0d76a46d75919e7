"""The keywords of `tessera.compile`, `tessera.report` and `tessera.train`, and the flags that they stand for: one table for
each tool. Anything else is a TypeError."""

import numbers
import os

# The forms of values. A flag that may be repeated takes a list, or a dictionary of what stands on both sides of "=".
TEXT, INTEGER, NUMBER, SWITCH, PAIR, LIST, MESH, SIZE = "text", "integer", "number", "switch", "pair", "list", "mesh", "size"

COMPILE = {
    "batch": ("--batch", INTEGER), "seq": ("--seq", INTEGER), "dim": ("--dim", LIST), "dim_role": ("--dim-role", LIST),
    "parameters": ("--parameters", TEXT), "constants": ("--constants", TEXT), "frozen": ("--frozen", TEXT),
    "tied": ("--tied", TEXT), "padding_idx": ("--padding-idx", LIST), "batch_norm": ("--batch-norm", TEXT),
    "recognize_by_values": ("--recognize-by-values", TEXT), "lora": ("--lora", TEXT), "init": ("--init", LIST),
    "place": ("--place", LIST), "loss": ("--loss", TEXT), "loss_tile": ("--loss-tile", SIZE), "mlp_tile": ("--mlp-tile", SIZE),
    "ignore_index": ("--ignore-index", INTEGER), "label_smoothing": ("--label-smoothing", NUMBER),
    "optimizer": ("--optimizer", TEXT), "betas": ("--betas", PAIR), "epsilon": ("--epsilon", NUMBER),
    "momentum": ("--momentum", NUMBER), "nesterov": ("--nesterov", SWITCH), "moments": ("--moments", TEXT),
    "lr": ("--lr", NUMBER), "weight_decay": ("--weight-decay", NUMBER), "no_decay": ("--no-decay", TEXT),
    "clip_norm": ("--clip-norm", NUMBER), "clip_value": ("--clip-value", NUMBER), "ema": ("--ema", NUMBER),
    "guard_updates": ("--guard-updates", TEXT), "evaluate": ("--evaluate", SWITCH), "metric": ("--metric", LIST), "schedule": ("--schedule", TEXT),
    "warmup": ("--warmup", INTEGER), "min_lr": ("--min-lr", NUMBER), "decay_steps": ("--decay-steps", INTEGER),
    "decay_curve": ("--decay-curve", TEXT), "accumulate": ("--accumulate", INTEGER),
    "global_batch": ("--global-batch", INTEGER), "index_check": ("--index-check", TEXT),
    "document_ids": ("--document-ids", TEXT), "remat": ("--remat", TEXT), "precision": ("--precision", TEXT),
    "fp8_recipe": ("--fp8-recipe", TEXT), "fp8_filter": ("--fp8-filter", TEXT), "fp8_keep_bf16": ("--fp8-keep-bf16", TEXT),
    "fp8_select": ("--fp8-select", TEXT), "fp8_amax": ("--fp8-amax", TEXT), "fp8_nonfinite": ("--fp8-nonfinite", TEXT),
    "frozen_dtype": ("--frozen-dtype", TEXT), "keep_f32": ("--keep-f32", TEXT), "reduce_dtype": ("--reduce-dtype", TEXT),
    "mesh": ("--mesh", MESH), "strategy": ("--strategy", TEXT), "attention": ("--attention", TEXT),
    "attention_memory": ("--attention-memory", SIZE), "attention_gather": ("--attention-gather", TEXT),
    "sequence_order": ("--sequence-order", TEXT), "keep_gathered": ("--keep-gathered", TEXT),
    "memory_limit": ("--memory-limit", SIZE), "wrap": ("--wrap", TEXT), "prefetch": ("--prefetch", TEXT),
    "combine_bytes": ("--combine-bytes", INTEGER), "target": ("--target", TEXT), "offload": ("--offload", LIST),
    "epilogues": ("--epilogues", TEXT), "target_cpu": ("--target-cpu", TEXT),
    "attention_gradient": ("--attention-gradient", TEXT), "embed_ir": ("--embed-ir", SWITCH),
    "keep_gradients": ("--keep-gradients", SWITCH),
}
TRAIN = {
    "comm": ("--comm", TEXT), "ranks": ("--ranks", INTEGER), "threads": ("--threads", INTEGER), "seed": ("--seed", INTEGER),
    "lr": ("--lr", NUMBER), "min_lr": ("--min-lr", NUMBER), "warmup": ("--warmup", SIZE), "schedule": ("--schedule", TEXT),
    "decay_steps": ("--decay-steps", SIZE), "decay_curve": ("--decay-curve", TEXT),
    "keep_best": ("--keep-best", SWITCH), "patience": ("--patience", INTEGER), "export_step": ("--export-step", TEXT),
    "on_nonfinite": ("--on-nonfinite", TEXT), "resume": ("--resume", TEXT), "model_file": ("--model-file", TEXT), "checkpoint_every": ("--checkpoint-every", INTEGER),
    "keep": ("--keep", INTEGER), "check_replicas": ("--check-replicas", INTEGER), "take_over": ("--take-over", SWITCH),
    "weights_partial": ("--weights-partial", TEXT), "export_hf": ("--export-hf", TEXT), "export_like": ("--export-like", TEXT),
    "export_dtype": ("--export-dtype", TEXT),
    "export": ("--export", TEXT), "export_lora": ("--export-lora", TEXT), "no_export": ("--no-export", SWITCH),
    "eval_data": ("--eval-data", TEXT), "eval_every": ("--eval-every", INTEGER), "eval_batches": ("--eval-batches", INTEGER),
    "order": ("--order", TEXT), "text_field": ("--text-field", TEXT), "token_bytes": ("--token-bytes", INTEGER),
    "tokenizer": ("--tokenizer", TEXT),
    "end_of_document": ("--end-of-document", INTEGER), "log_every": ("--log-every", INTEGER), "log": ("--log", TEXT),
    "trace_steps": ("--trace-steps", INTEGER), "memory_snapshot": ("--memory-snapshot", SWITCH),
    "tensorboard": ("--tensorboard", SWITCH), "dump": ("--dump", TEXT), "dump_step": ("--dump-step", INTEGER),
    "peak_gflops": ("--peak-gflops", NUMBER), "stall_timeout": ("--stall-timeout", NUMBER),
    "start_timeout": ("--start-timeout", NUMBER), "no_graph": ("--no-graph", SWITCH),
    "attention_gradient": ("--attention-gradient", TEXT), "reproducible": ("--reproducible", TEXT),
}


def is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integer(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def word(keyword, value):
    """A text, path or number as one word of a command."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str) or is_number(value):
        return str(value)
    raise TypeError(f"{keyword} is {value!r}, expected a text or a number")


def pairs(keyword, value):
    """["key=value", …] of a dictionary."""
    return [f"{word(keyword, key)}={word(keyword, entry)}" for key, entry in value.items()]


def flag(keyword, name, form, value):
    """The words of one flag; none for None and False. Raises TypeError."""
    if value is None or form == SWITCH and value is False:
        return []
    if form == SWITCH and value is True:
        return [name]
    if form == INTEGER and is_integer(value) or form == NUMBER and is_number(value):
        return [name, str(value)]
    if form == TEXT and isinstance(value, (str, os.PathLike)) or form == SIZE and (isinstance(value, str) or is_integer(value)):
        return [name, word(keyword, value)]
    if form == PAIR and isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_number, value)):
        return [name, *map(str, value)]
    if form == MESH and isinstance(value, (str, dict)) and value:
        return [name, value if isinstance(value, str) else ",".join(pairs(keyword, value))]
    if form == LIST and isinstance(value, (str, dict, list, tuple)):
        entries = [value] if isinstance(value, str) else pairs(keyword, value) if isinstance(value, dict) else value
        return [each for entry in entries for each in (name, word(keyword, entry))]
    expected = {SWITCH: "True or False", INTEGER: "an integer", NUMBER: "a number", TEXT: "a text", PAIR: "two numbers",
                MESH: 'a text or a dictionary such as {"shard": 2}', LIST: "a text, a list or a dictionary",
                SIZE: "an integer or a text"}[form]
    raise TypeError(f"{keyword} is {value!r}, expected {expected}")


def flags_of(table, function, options):
    """The flags for keywords. Raises TypeError for a keyword that is not in the table."""
    flags = []
    for keyword, value in options.items():
        if keyword not in table:
            raise TypeError(f"tessera.{function}() got an unexpected keyword argument '{keyword}'")
        flags += flag(keyword, *table[keyword], value)
    return flags
