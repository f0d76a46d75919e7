"""The optimizer of comparisons with PyTorch: AdamW at one rate, which decays every parameter."""

HYPER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 1.0}


def hyper_flags():
    """tessera-compile's flags for it."""
    return ["--optimizer", "adamw", "--schedule", "constant", "--warmup", 0, "--lr", HYPER["lr"],
            "--betas", HYPER["beta1"], HYPER["beta2"], "--epsilon", HYPER["epsilon"],
            "--weight-decay", HYPER["weight_decay"], "--no-decay", "none", "--clip-norm", HYPER["clip_norm"]]
