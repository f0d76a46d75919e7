"""Mixtures of experts as static programs: an implementation for transformers, registered as "tessera_dense" on import."""

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

NAME = "tessera_dense"


def dense_experts(self, hidden_states, top_k_index, top_k_weights):
    """Every expert computes every token and counts as much as the router says, 0 where it was not chosen.

    self: a module with transformers' `use_experts_implementation`, of E experts; hidden_states [T, H]; top_k_index and
        top_k_weights [T, k]: the experts of each token; an index of E or more is none (an expert on another device).
    Returns [T, H]. The work is E/k times that of the chosen experts; no weights are gathered.

    What an expert computes of a token that did not choose it is made 0 before its activation: infinite or NaN, it would
    be NaN times 0, in the gradient, too. Weights that are not finite are not kept from other tokens.
    """
    chosen = top_k_index.unsqueeze(-1) == torch.arange(self.num_experts, device=top_k_index.device)  # [T, k, E]
    routing = torch.where(chosen, top_k_weights.unsqueeze(-1), 0.0).sum(1)                           # [T, E]
    first = self.gate_up_proj if self.has_gate else self.up_proj
    if self.is_transposed:  # a product for each expert; one of all experts would need the weights in another order
        inner = torch.einsum("teh,ehn->ten", hidden_states.unsqueeze(1).expand(-1, self.num_experts, -1), first)
    else:
        inner = torch.einsum("th,enh->ten", hidden_states, first)
    if self.has_bias:
        inner = inner + (self.gate_up_proj_bias if self.has_gate else self.up_proj_bias)
    inner = torch.where(chosen.any(1).unsqueeze(-1), inner, 0.0)
    inner = self._apply_gate(inner) if self.has_gate else self.act_fn(inner)                         # [T, E, N]
    outer = torch.einsum("ten,enh->teh" if self.is_transposed else "ten,ehn->teh", inner, self.down_proj)
    if self.has_bias:
        outer = outer + self.down_proj_bias
    if self.has_post_expert_norm:
        outer = self.post_expert_norm(outer)
    return (outer * routing.unsqueeze(-1)).sum(1).to(hidden_states.dtype)


ALL_EXPERTS_FUNCTIONS.register(NAME, dense_experts)
