"""Every knob is proven alive: a space in which a value changes nothing is refused, and the knob is named."""

import pytest

torch = pytest.importorskip("torch")

from assay.errors import UsageError  # noqa: E402
from assay.models.subject.registry import entry  # noqa: E402
from assay.search.alive import dead  # noqa: E402
from assay.search.setup import Setup  # noqa: E402
from assay.search.subjects.architecture import Architecture, searched  # noqa: E402

MINE = """
from torch import nn, rand

KNOBS = {"width": ["8", "16"], "depth": ["1", "2"], "drop": ["0.1", "0.5"], "color": ["red", "green", "blue"]}


def build(width="8", depth="1", drop="0.1", color="red"):
    if (width, depth) == ("8", "2"):
        raise ValueError("too thin to be so deep")
    w = int(width)
    inner = [layer for _ in range(int(depth)) for layer in (nn.Linear(w, w), nn.GELU())]
    return nn.Sequential(nn.Flatten(), nn.Linear(784, w), *inner, nn.Dropout(float(drop)), nn.Linear(w, 10))


def example(batch):
    return rand(batch, 1, 28, 28)
"""
BERT = """
import torch
from torch import nn
from transformers import BertConfig, BertModel

KNOBS = {KNOBS}
SMALL = dict(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
             max_position_embeddings=16)


def build(**knobs):
    return BertModel(BertConfig(**(SMALL | {name: int(value) for name, value in knobs.items()})))


def example(batch):
    return {"input_ids": torch.randint(0, 50, (batch, 8))}
"""


def proof(model, **setup):
    subject = Architecture(Setup(kind="architecture", model=str(model), **setup), lambda text: None)
    return {one.knob: one.why for one in dead(subject.space(), subject.built)}


def test_a_knob_that_does_nothing_is_named_and_those_that_do_something_are_not(write):
    """`drop` shows in training alone; `depth` only beside a width that it goes with."""
    assert proof(f"{write('mine.py', MINE)}:build") == {"color": "all values of color give the same model"}


def test_two_values_that_are_one_are_named(write):
    text = MINE.replace('["8", "16"]', '["8", "16", "016"]')
    found = proof(f"{write('mine.py', text)}:build", knobs={"width": ()})
    assert found == {"width": "width=016 and 16 give the same model"}


def test_a_value_that_never_goes_with_the_others_is_told_with_its_reason(write):
    found = proof(f"{write('mine.py', MINE)}:build", knobs={"depth": ()})
    assert found == {"depth": "depth=2 cannot be built: ValueError: too thin to be so deep"}


def test_num_layers_and_num_heads_of_a_bert_config_are_dead(write):
    """They are no fields of it: the config keeps them and the model never looks."""
    pytest.importorskip("transformers")
    knobs = '{"num_layers": ["1", "2"], "num_heads": ["1", "2"], "num_hidden_layers": ["1", "2"]}'
    found = proof(f"{write('bert.py', BERT.replace('{KNOBS}', knobs))}:build")
    assert set(found) == {"num_layers", "num_heads"}
    knobs = '{"num_hidden_layers": ["1", "2"], "num_attention_heads": ["1", "2"]}'
    assert proof(f"{write('right.py', BERT.replace('{KNOBS}', knobs))}:build") == {}


def test_knobs_of_bert_tiny_are_alive():
    knobs = {"depth": ("1", "2"), "heads": ("1", "2"), "feed_forward": ("256", "512"), "layers.1.query": ()}
    assert proof("bert-tiny", knobs=knobs) == {}


def test_knobs_are_limited_to_what_was_asked_for():
    space = searched(entry("bert-tiny"), Setup(kind="architecture", model="bert-tiny", fixed={"depth": "2"}))
    assert {"width", "heads", "layers.0.query", "layers.1.key"} <= set(space)
    assert not {"depth", "layers.2.query"} & set(space)
    with pytest.raises(UsageError, match="no knob 'colour'"):
        searched(entry("bert-tiny"), Setup(kind="architecture", model="bert-tiny", knobs={"colour": ()}))
    with pytest.raises(UsageError, match="no depth '3'"):
        searched(entry("bert-tiny"), Setup(kind="architecture", model="bert-tiny", knobs={"depth": ("3",)}))
    with pytest.raises(UsageError, match="declares no knobs"):
        searched(entry("resnet18"), Setup(kind="architecture", model="resnet18"))
