"""Compares tessera.experts with a loop over tokens and their experts, forward and gradients; needs torch and transformers.

usage: experts_cases.py     prints what differs; exit status 1 if something does

experts_cases.py:mixtral is a small model for `python -m tessera verify`.
"""

import itertools
import sys

import tessera.experts
import torch
import transformers
from transformers.integrations.moe import use_experts_implementation

EXPERTS, WIDTH, INNER, TOKENS, CHOSEN = 5, 6, 4, 12, 3
IMPLEMENTATIONS = transformers.integrations.moe.ALL_EXPERTS_FUNCTIONS


class Experts(torch.nn.Module):
    """Experts as transformers' modules have them; its own forward is the loop."""

    def __init__(self, config):
        super().__init__()
        self.num_experts, self.act_fn = EXPERTS, torch.nn.SiLU()

    def fill(self):
        """Weights of the forms that the decorator was given."""
        width = INNER * (2 if self.has_gate else 1)
        shapes = {"gate_up_proj" if self.has_gate else "up_proj": (width, WIDTH), "down_proj": (WIDTH, INNER)}
        for name, shape in shapes.items():
            shape = shape[::-1] if self.is_transposed else shape
            self.register_parameter(name, torch.nn.Parameter(torch.randn(EXPERTS, *shape)))
            if self.has_bias:
                self.register_parameter(name + "_bias", torch.nn.Parameter(torch.randn(EXPERTS, shapes[name][0])))
        if self.has_post_expert_norm:
            self.post_expert_norm = torch.nn.LayerNorm(WIDTH)

    def linear(self, name, expert, x):
        weight = getattr(self, name)[expert]
        x = x @ (weight if self.is_transposed else weight.T)
        return x + getattr(self, name + "_bias")[expert] if self.has_bias else x

    def expert(self, expert, x):
        x = self.linear("gate_up_proj" if self.has_gate else "up_proj", expert, x)
        x = self.linear("down_proj", expert, self._apply_gate(x) if self.has_gate else self.act_fn(x))
        return self.post_expert_norm(x) if self.has_post_expert_norm else x

    def forward(self, hidden_states, top_k_index, top_k_weights):
        return torch.stack([sum(weight * self.expert(expert, x) for expert, weight in zip(experts, weights)
                                if expert < EXPERTS) + 0 * x
                            for x, experts, weights in zip(hidden_states, top_k_index.tolist(), top_k_weights)])


class Interleaved(Experts):
    """With a gate of its own, of every other column."""

    def _apply_gate(self, gate_up):
        gate, up = gate_up[..., ::2], gate_up[..., 1::2]
        return (up + 1) * gate.clamp(max=1.0) * torch.sigmoid(gate)


def experts(kind, **options):
    """A module of experts; each call makes a class, because the decorator changes it."""
    made = use_experts_implementation(type("Made", (kind,), {"__init__": lambda self, config: Experts.__init__(self, config)}),
                                      **options)
    module = made(transformers.PretrainedConfig(experts_implementation="eager"))
    module.fill()
    return module


def routing():
    """Experts of each token, weights: one token has an expert twice, two have one that is elsewhere, one a weight of 0."""
    index = torch.stack([torch.randperm(EXPERTS)[:CHOSEN] for _ in range(TOKENS)])
    index[0, 1], index[1, 0], index[2] = index[0, 0], EXPERTS, EXPERTS + 3
    weights = torch.rand(TOKENS, CHOSEN)
    weights[3, 0] = 0
    return index, weights


def results(module, implementation, x, index, weights):
    """[output, gradients of the input, the weights and the parameters]"""
    module.config._experts_implementation = implementation
    leaves = [x.clone().requires_grad_(), weights.clone().requires_grad_(), *module.parameters()]
    output = module(leaves[0], index, leaves[1])
    return [output, *torch.autograd.grad((output * torch.linspace(-1, 1, WIDTH)).sum(), leaves)]


def compare(name, module, x):
    """Texts on what differs."""
    index, weights = routing()
    names = ["output", "input", "routing", *dict(module.named_parameters())]
    pairs = zip(names, results(module, "eager", x, index, weights), results(module, tessera.experts.NAME, x, index, weights))
    return [f"{name}: {what} differs by {(wanted - found).abs().max()}" for what, wanted, found in pairs
            if not torch.allclose(wanted, found, rtol=1e-5, atol=1e-5 * wanted.abs().max().item())]


def overflowing():
    """Texts on what is not finite where an expert that no token has chosen makes infinities."""
    module = experts(Experts)
    with torch.no_grad():
        module.gate_up_proj[0] *= 1e38
    index, weights = routing()
    names = ["output", "input", "routing", *dict(module.named_parameters())]
    found = results(module, tessera.experts.NAME, torch.randn(TOKENS, WIDTH), torch.where(index == 0, EXPERTS, index), weights)
    return [f"{name} is not finite" for name, value in zip(names, found) if not value.isfinite().all()]


def mixtral():
    """A small mixture of experts with what it is exported with."""
    torch.manual_seed(0)
    config = transformers.MixtralConfig(vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                                        num_attention_heads=2, num_key_value_heads=1, num_local_experts=4, use_cache=False,
                                        experts_implementation=tessera.experts.NAME)
    model = transformers.MixtralForCausalLM(config)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, tokens):
            return self.model(input_ids=tokens).logits
    return Logits(), torch.randint(32, (4, 8)), ["tokens"]


def main():
    torch.manual_seed(0)
    wrong = overflowing()
    for gate, bias, transposed, norm in itertools.product([True, False], repeat=4):
        for kind in [Experts, Interleaved] if gate else [Experts]:
            options = dict(has_gate=gate, has_bias=bias, is_transposed=transposed, has_post_expert_norm=norm)
            wrong += compare(f"{kind.__name__} {options}", experts(kind, **options), torch.randn(TOKENS, WIDTH))
    print("\n".join(wrong) or "the same")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
