"""The 6-layer sentence encoder all-MiniLM-L6-v2: one vector of length 1 for each sentence."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.errors import Lacking

TOKENS = 128
"""Tokens in an example's row; the model itself takes up to 512."""
CONFIG: Mapping[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
_BETWEEN = (999, 29000)
"""Range of the token ids of ordinary word pieces; lower ids are unused or special."""
_CLS, _SEP = 101, 102


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the messages of all quantisers that transformers imports about what they could not load."""
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class SentenceEncoder(nn.Module):
    """BertModel without its pooler, then the mean over each sentence's own tokens, scaled to length 1."""

    def __init__(self, config: Mapping[str, Any], attention: str) -> None:
        super().__init__()
        with _quiet():
            from transformers.models.bert.configuration_bert import BertConfig
            from transformers.models.bert.modeling_bert import BertModel

            settings = BertConfig(**{**config, "attn_implementation": attention})
            self.bert = BertModel(settings, add_pooling_layer=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)
        return nn.functional.normalize(mean, dim=-1)


def build(attention: str = "sdpa") -> nn.Module:
    return SentenceEncoder(CONFIG, attention)


def example(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of random word pieces without padding, so that every row costs the same."""
    ids = torch.randint(*_BETWEEN, (batch, TOKENS))
    ids[:, 0], ids[:, -1] = _CLS, _SEP
    return ids, torch.ones_like(ids)


def build_from(folder: Path, attention: str = "sdpa") -> nn.Module:
    """Build a model of any size from its `config.json` and the weights beside it."""
    config = json.loads((folder / "config.json").read_text())
    encoder = SentenceEncoder({k: config[k] for k in CONFIG if k in config}, attention)
    from safetensors.torch import load_file

    encoder.load_state_dict(rename(load_file(folder / "model.safetensors")))
    return encoder.eval()


def rename(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Rename the published file's tensors to this module's names; those beyond the encoder are dropped."""
    extra = ("pooler.", "embeddings.position_ids")
    return {k if k.startswith("bert.") else f"bert.{k}": v for k, v in state.items() if not k.startswith(extra)}


def tokenise(folder: Path, sentences: Sequence[str], longest: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and mask, padded to the longest sentence."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise Lacking("no tokenizers here", fix="pip install 'kernel-assay[models]'") from None
    reader = Tokenizer.from_file(str(folder / "tokenizer.json"))
    reader.enable_truncation(longest)
    reader.enable_padding(pad_id=0, pad_token="[PAD]")
    rows = reader.encode_batch(list(sentences))
    return torch.tensor([r.ids for r in rows]), torch.tensor([r.attention_mask for r in rows])
