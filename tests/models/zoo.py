"""Well-known models by name, at full width and small, as transformers or plain PyTorch has them: full_width.py compiles
the one kind without weights, record.py records the training of the other."""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn

PADDING = 0  # token of BERT's and T5's masks here


@dataclasses.dataclass
class Made:
    """A module with example inputs, their names, the kind of its loss, and what the symbolic second dimension of integer
    inputs is bound to at full width (None: there is none)."""
    model: nn.Module
    inputs: tuple
    names: list
    loss: str = "cross-entropy"
    sequence: int = None


class Logits(nn.Module):
    """A transformers model as a module from tensors to logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, **inputs):
        return self.model(**inputs).logits


class Causal(Logits):
    def forward(self, input_ids):
        return self.call(input_ids=input_ids, use_cache=False)


class Masked(Logits):
    """An encoder that does not look at padding."""

    def forward(self, input_ids):
        return self.call(input_ids=input_ids, attention_mask=(input_ids != PADDING).long())


class Translator(Logits):
    """An encoder and a decoder, the first with padding."""

    def forward(self, input_ids, decoder_input_ids):
        return self.call(input_ids=input_ids, attention_mask=(input_ids != PADDING).long(),
                         decoder_input_ids=decoder_input_ids, use_cache=False)


class Images(Logits):
    def forward(self, pixel_values):
        return self.call(pixel_values=pixel_values)


class Stage(nn.Sequential):
    """Two convolutions of a U-Net."""

    def __init__(self, before, after):
        def part(channels):
            return nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
        super().__init__(*part(before), *part(after))


class UNet(nn.Module):
    """The U-Net of Ronneberger et al. with batch normalisation and padded convolutions: pooling down, transposed
    convolutions up, and what was before each pooling beside them."""

    def __init__(self, channels=64, depth=4, colours=3, classes=2):
        super().__init__()
        widths = [channels << level for level in range(depth + 1)]
        self.down = nn.ModuleList(Stage(before, after) for before, after in zip([colours, *widths], widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, stride=2) for width in reversed(widths[:-1]))
        self.up = nn.ModuleList(Stage(2 * width, width) for width in reversed(widths[:-1]))
        self.head = nn.Conv2d(channels, classes, 1)

    def forward(self, image):
        kept = []
        for stage in self.down:
            image = stage(F.max_pool2d(image, 2) if kept else image)
            kept.append(image)
        for grow, stage, beside in zip(self.grow, self.up, reversed(kept[:-1])):
            image = stage(torch.cat((beside, grow(image)), 1))
        return self.head(image)


class Lstm(nn.Module):
    """A language model of an LSTM of two layers, as in Zaremba et al."""

    def __init__(self, vocabulary=10000, width=1500):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


class Stack(nn.Sequential):
    """The stack of linear layers of FSDP's tutorials."""

    def __init__(self, width=8192, layers=10):
        super().__init__(*(layer for _ in range(layers) for layer in (nn.Linear(width, width), nn.ReLU())))


def tokens(vocabulary, sequence, batch=4):
    """Token ids that are no padding."""
    return torch.randint(4, vocabulary, (batch, sequence), generator=torch.Generator().manual_seed(0))


def transformers_model(kind, config, attention="sdpa", **settings):
    """A model of transformers with new weights."""
    import transformers
    if "experts_implementation" in settings:
        import tessera.experts  # noqa: F401 (registers tessera_dense)
    make = getattr(transformers, kind)
    return make._from_config(getattr(transformers, config)(**settings), attn_implementation=attention)


def causal(name, sequence, **settings):
    """A function that makes a causal language model at full width."""
    def make():
        kind = name.removesuffix("Config") + ("LMHeadModel" if name == "GPT2Config" else "ForCausalLM")
        settings.setdefault("pad_token_id", None)
        attention = "eager" if name == "Gemma2Config" else "sdpa"
        model = transformers_model(kind, name, attention, **settings)
        return Made(Causal(model), (tokens(model.config.vocab_size, 16),), ["input_ids"], sequence=sequence)
    return make


def bert(sequence, example=16, **settings):
    def make():
        model = transformers_model("BertForMaskedLM", "BertConfig", **settings)
        return Made(Masked(model), (tokens(model.config.vocab_size, example),), ["input_ids"], sequence=sequence)
    return make


def t5(sequence, example=16, **settings):
    def make():
        model = transformers_model("T5ForConditionalGeneration", "T5Config", "eager", use_cache=False, **settings)
        size = model.config.vocab_size
        return Made(Translator(model), (tokens(size, example), tokens(size, example)),
                    ["input_ids", "decoder_input_ids"], sequence=sequence)
    return make


def images(kind, config, size, attention="sdpa", **settings):
    def make():
        model = transformers_model(kind, config, attention, num_labels=settings.pop("num_labels", 1000), **settings)
        return Made(Images(model), (torch.zeros(4, 3, size, size),), ["pixel_values"])
    return make


LLAMA = dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
             num_key_value_heads=8, vocab_size=128256, max_position_embeddings=131072,
             rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                              "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})
LLAMA_70B = LLAMA | dict(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64)
LLAMA_405B = LLAMA | dict(hidden_size=16384, intermediate_size=53248, num_hidden_layers=126, num_attention_heads=128)
FULL = {  # name -> what makes it
    "gpt2-124m": causal("GPT2Config", 1024),
    "gpt2-1.5b": causal("GPT2Config", 1024, n_embd=1600, n_layer=48, n_head=25),
    "llama-3.1-8b": causal("LlamaConfig", 4096, **LLAMA),
    "llama-3.1-70b": causal("LlamaConfig", 4096, **LLAMA_70B),
    "codellama-7b": causal("LlamaConfig", 4096, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32,
                           num_attention_heads=32, vocab_size=32016, max_position_embeddings=16384, rms_norm_eps=1e-5,
                           rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
    "qwen2-1.5b": causal("Qwen2Config", 4096, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28,
                         num_attention_heads=12, num_key_value_heads=2, vocab_size=151936, tie_word_embeddings=True),
    "qwen3-8b": causal("Qwen3Config", 4096, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36,
                       num_attention_heads=32, num_key_value_heads=8, head_dim=128, vocab_size=151936,
                       max_position_embeddings=40960),
    "mistral-7b": causal("MistralConfig", 8192, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
                         num_attention_heads=32, num_key_value_heads=8, vocab_size=32000, sliding_window=4096),
    "gemma-2-2b": causal("Gemma2Config", 8192, hidden_size=2304, intermediate_size=9216, num_hidden_layers=26,
                         num_attention_heads=8, num_key_value_heads=4, head_dim=256, vocab_size=256000,
                         sliding_window=4096),
    "phi-3-mini": causal("Phi3Config", 4096, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32,
                         num_attention_heads=32, vocab_size=32064, max_position_embeddings=4096,
                         original_max_position_embeddings=4096, sliding_window=2047),
    "gpt-neox-20b": causal("GPTNeoXConfig", 2048),
    "opt-6.7b": causal("OPTConfig", 2048, hidden_size=4096, ffn_dim=16384, num_hidden_layers=32,
                       num_attention_heads=32, word_embed_proj_dim=4096),
    "mixtral-8x7b": causal("MixtralConfig", 4096, experts_implementation="tessera_dense"),
    "qwen3-30b-a3b": causal("Qwen3MoeConfig", 4096, hidden_size=2048, num_hidden_layers=48, num_attention_heads=32,
                            num_key_value_heads=4, head_dim=128, vocab_size=151936, num_experts=128,
                            num_experts_per_tok=8, moe_intermediate_size=768, norm_topk_prob=True,
                            experts_implementation="tessera_dense"),
    "bert-base": bert(512),
    "t5-base": t5(512, d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12),
    "vit-base": images("ViTForImageClassification", "ViTConfig", 224),
    "resnet-50": images("ResNetForImageClassification", "ResNetConfig", 224, None),
    "unet": lambda: Made(UNet(), (torch.zeros(4, 3, 256, 256),), ["image"], "mse"),
    "lstm": lambda: Made(Lstm(), (tokens(10000, 35),), ["tokens"]),
    "linear-stack": lambda: Made(Stack(), (torch.zeros(4, 8192),), ["input"], "mse"),
}
TINY = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
SMALL = {  # name in tests/models/recorded -> what makes it
    "bert-mask": bert(8, 8, vocab_size=32, max_position_embeddings=16, **TINY),
    "t5": t5(8, 8, vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0),
    "vit": images("ViTForImageClassification", "ViTConfig", 8, patch_size=4, image_size=8, num_labels=5, **TINY),
    "resnet": images("ResNetForImageClassification", "ResNetConfig", 16, None, num_labels=5, embedding_size=4,
                     hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
    "lstm": lambda: Made(Lstm(32, 8), (tokens(32, 8),), ["tokens"]),
    "unet": lambda: Made(UNet(4, 2), (torch.randn(4, 3, 8, 8),), ["image"], "mse"),
    "linear-stack": lambda: Made(Stack(8, 3), (torch.randn(4, 8),), ["input"], "mse"),
}
