"""Models to swap kernels in: small, with random weights, nothing downloaded. Each is `(model, inputs)`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize


def cnn():
    """Convolutions inside and outside the op's contract, activations as modules, a fused pair, a softmax."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, padding="same", groups=2),
        nn.GELU(),
        nn.Conv2d(8, 8, 3, stride=2, padding=1, bias=False),
        nn.GELU("tanh"),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 32),
        nn.LayerNorm(32),
        nn.GELU(),
        nn.Linear(32, 10),
        nn.Softmax(-1),
    )
    return model.eval(), (torch.randn(2, 3, 8, 8),)


def _tiny(**more):
    return dict(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        attn_implementation="eager",
        **more,
    )


def bert():
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(vocab_size=50, max_position_embeddings=16, **_tiny()), add_pooling_layer=False)
    return model.eval(), (torch.arange(12).view(2, 6),)


def gpt2():
    """The head shares the embedding's weight."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, attn_implementation="eager")
    return GPT2LMHeadModel(config).eval(), (torch.arange(12).view(2, 6),)


def vit():
    from transformers import ViTConfig, ViTModel

    model = ViTModel(ViTConfig(image_size=8, patch_size=4, **_tiny()), add_pooling_layer=False)
    return model.eval(), (torch.randn(2, 3, 8, 8),)


def llama():
    from transformers import LlamaConfig, LlamaModel

    return LlamaModel(LlamaConfig(vocab_size=50, **_tiny())).eval(), (torch.arange(12).view(2, 6),)


class OwnNorm(nn.LayerNorm):
    """Looks like a LayerNorm, and is none."""

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps) * 0.5


class Doubled(nn.Module):
    def forward(self, weight):
        return 2 * weight


class Odd(nn.Module):
    """Shared and frozen weights, a module used twice and standing in two places, a parametrised norm, buffers of both
    kinds, hooks of all kinds, functional calls in the forward and in a method, keyword arguments, a branch."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.first.bias.requires_grad_(False)
        self.act = nn.GELU()
        self.again = nn.ModuleDict({"act": self.act, "own": OwnNorm(8)})
        self.norm = nn.LayerNorm(8, bias=False)
        parametrize.register_parametrization(self.norm, "weight", Doubled())
        self.last = nn.LayerNorm((2, 4), elementwise_affine=False)
        self.register_buffer("scale", torch.full((8,), 1.5))
        self.register_buffer("calls", torch.zeros(()), persistent=False)
        self.seen = []
        self.act.register_forward_pre_hook(lambda m, args: self.seen.append("pre"))
        self.act.register_forward_hook(lambda m, args, out: out * 1.25)
        self.norm.register_full_backward_hook(lambda m, gin, gout: self.seen.append("backward"))
        self.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)

    def helper(self, x):
        return F.silu(x).softmax(dim=-1)

    def forward(self, x, *, twice=True):
        self.calls += 1
        x = self.norm(self.act(self.first(x)))
        if twice:
            x = self.act(input=self.second(x)) * self.scale
        x = self.again["own"](x) + self.helper(x)
        return F.gelu(self.last(x.view(-1, 2, 4)), approximate="tanh").view_as(x)


class Functional(nn.Module):
    """Computes with functions, in its forward, in a method, and in a module below it."""

    def __init__(self):
        super().__init__()
        self.lift, self.own, self.act = nn.Linear(8, 8), OwnNorm(8), nn.GELU()

    def helper(self, x):
        return F.silu(x).softmax(dim=-1)

    def forward(self, x):
        x = self.own(self.act(self.lift(x)))
        return F.gelu(self.helper(x), approximate="tanh") + torch.softmax(x, 0)


def odd():
    model = Odd()
    model.again.train()
    model.first.eval()
    return model, (torch.randn(5, 8),)


ALL = (cnn, bert, gpt2, vit, llama, odd)
