"""Originals wait in files until undo, and packed weights are kept packed in a file."""

import fcntl
import gc
import os
import re
import resource

import pytest
import torch
from torch import nn

import architectures
import assay
from assay import host
from assay.errors import AssayError, UsageError
from assay.models.packed.checkpoint import load, save
from assay.models.packed.format import MxInt8
from assay.models.packed.linear import PackedLinear
from assay.models.subject import checkpoint
from assay.models.subject.checkpoint import Checkpoint
from packing import TORCH, Tied, assert_same, everything, layers, spilled

# Originals in files.


def test_no_room_for_the_originals_leaves_the_model_as_it_was():
    """A real limit of the system's on the size of files: the first weight fits, the second does not."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(200, 200))
    before = everything(model)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(AssayError, match=r"(?s)cannot write .*spill.*it needs 0\.2 MB.*ASSAY_DATA"):
            assay.swap(model, TORCH)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same(before, everything(model))
    assert not spilled()


@pytest.mark.parametrize("where", ["pack", "standing_for"])
def test_an_error_after_the_original_was_written_leaves_the_model_as_it_was(where, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    model, inputs = layers()
    before, plain = everything(model), model(*inputs)
    monkeypatch.setattr(*((MxInt8, "pack") if where == "pack" else (PackedLinear, "standing_for")), fail)
    with pytest.raises(MemoryError):
        assay.swap(model, TORCH)
    assert_same(before, everything(model))
    assert torch.equal(model(*inputs), plain) and not spilled()


def test_a_folder_that_cannot_be_made_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "file"))
    with pytest.raises(AssayError, match=r"(?s)cannot keep original weights in .*ASSAY_DATA"):
        assay.swap(nn.Sequential(nn.Linear(8, 8)), TORCH)


def _damage(file):
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    return "SHA-256"


def _cut(file):
    file.write_bytes(file.read_bytes()[:-5])
    return "damaged"


def _lose(file):
    file.unlink()
    return "no file"


def _mistake(file):
    file.write_bytes(next(f for f in spilled() if f != file).read_bytes())
    return "another file than the one that was written"


@pytest.mark.parametrize("harm", [_damage, _cut, _lose, _mistake])
def test_a_harmed_file_is_named_with_its_weight_and_the_rest_comes_back(harm):
    model, x = nn.Sequential(nn.Linear(40, 24), nn.GELU(), nn.Linear(24, 8)), torch.randn(3, 40)
    before, plain = everything(model), model(x)
    report = assay.swap(model, {"0": "mx_linear/torch"})
    (file,) = spilled()
    also = assay.swap(model, {"2": "mx_linear/torch", "1": "gelu/torch"})
    also_file = next(f for f in spilled() if f != file)
    intact, mine = also_file.read_bytes(), model(x)
    said = harm(also_file)
    with pytest.raises(AssayError, match=rf"(?s)2: the original weight \(8×24 float32\).*{also_file.name}.*"):
        also.undo()
    with pytest.raises(AssayError, match=said):
        also.undo()
    assert isinstance(model[2], PackedLinear) and torch.allclose(model(x), mine), "the layer stays packed"
    assert type(model[1]) is nn.GELU
    report.undo()
    assert type(model[0]) is nn.Linear
    also_file.write_bytes(intact)
    also.undo()
    assert_same(before, everything(model))
    assert torch.equal(model(x), plain) and not spilled()


def test_originals_that_nobody_can_ask_for_are_removed():
    model = nn.Sequential(nn.Linear(8, 8))
    assay.swap(model, TORCH)
    assert len(spilled()) == 1
    del model
    gc.collect()
    assert not spilled()


def test_what_a_killed_process_left_is_swept_and_a_living_ones_is_not(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    root = host.data_folder() / "spill"
    for name in ("dead", "alive"):
        (root / name).mkdir(parents=True)
        (root / name / "weight.safetensors").write_text("")
    lock = os.open(root / "alive", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    with assay.swap(nn.Sequential(nn.Linear(8, 8)), TORCH):
        assert not (root / "dead").exists() and (root / "alive" / "weight.safetensors").exists()
    os.close(lock)


# Packed in a file.


def test_a_checkpoint_stays_packed_and_comes_back_exactly(tmp_path):
    for rule in ("mx_linear/torch", "mxfp6_e3m2"):
        model, inputs = architectures.bert()
        with assay.swap(model, {"linear": rule}):
            save(model, tmp_path / "packed.safetensors")
            state, mine = {k: v.clone() for k, v in model.state_dict().items()}, model(*inputs).last_hidden_state
        fresh, _ = architectures.bert()
        found = load(fresh, tmp_path / "packed.safetensors", "mx_linear/torch")
        assert len(found) == 12 and all(isinstance(fresh.get_submodule(name), PackedLinear) for name in found)
        assert state.keys() == fresh.state_dict().keys()
        assert all(torch.equal(v, state[k]) and v.dtype == state[k].dtype for k, v in fresh.state_dict().items())
        assert torch.equal(fresh(*inputs).last_hidden_state, mine)
        save(fresh, tmp_path / "again.safetensors")
        assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "packed.safetensors").read_bytes()


def test_a_checkpoint_says_its_format_and_holds_shared_weights_once(tmp_path):
    import json

    from safetensors import safe_open

    model, x, file = Tied(), torch.randn(3, 40), tmp_path / "packed.safetensors"
    with assay.swap(model, TORCH):
        save(model, file)
        mine = model(x)
    with safe_open(file, "pt") as opened:
        assert "first.elements" in opened.keys() and "second.elements" not in opened.keys()  # noqa: SIM118
        about = json.loads(json.loads(opened.metadata()["assay"])["facts"])
    assert about["packed"]["second"] == {"format": "mxint8", "shape": [40, 40]}
    fresh = Tied()
    fresh.own.register_forward_hook(lambda m, args, out: out + 1)
    load(fresh.eval(), file, "mx_linear/torch")
    assert fresh.first.elements is fresh.second.elements and not fresh.own.training
    assert torch.equal(fresh(x), mine + 1)


def test_each_kind_of_file_names_the_function_that_loads_it(tmp_path):
    model = nn.Sequential(nn.Linear(40, 8))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with assay.swap(model, TORCH):
        save(model, tmp_path / "packed.safetensors")
    checkpoint.write(tmp_path / "plain.safetensors", Checkpoint(before, {}))
    wanted = "packed.checkpoint.load", "subject.checkpoint.load_into"
    for loads, other, name in zip((checkpoint.load_into, load), ("packed", "plain"), wanted, strict=True):
        with pytest.raises(UsageError) as caught:
            loads(model, tmp_path / f"{other}.safetensors")
        assert caught.value.fix == f"load it with assay.models.{name}"
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_a_checkpoint_that_does_not_fit_changes_nothing(tmp_path):
    file = tmp_path / "packed.safetensors"
    model = nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Linear(8, 4))
    with pytest.raises(UsageError, match="nothing in this model is packed"):
        save(model, file)
    with assay.swap(model, TORCH):
        save(model, file)
    wrong = {
        "0 is 8×40, the model's is 8×41": nn.Sequential(nn.Linear(41, 8), nn.GELU(), nn.Linear(8, 4)),
        "has a packed layer 2, the model has none": nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Identity()),
        "has, beyond the model, 0.bias": nn.Sequential(nn.Linear(40, 8, bias=False), nn.GELU(), nn.Linear(8, 4)),
        "lacks 1.weight": nn.Sequential(nn.Linear(40, 8), nn.LayerNorm(8), nn.Linear(8, 4)),
        "on the device meta": nn.Sequential(nn.Linear(40, 8), nn.GELU(), nn.Linear(8, 4)).to("meta"),
    }
    for what, other in wrong.items():
        before = {name: id(t) for name, t in other.state_dict(keep_vars=True).items()}
        with pytest.raises(UsageError, match=re.escape(what)):
            load(other, file, "mx_linear/torch")
        assert {name: id(t) for name, t in other.state_dict(keep_vars=True).items()} == before
    _damage(file)
    with pytest.raises(UsageError, match="damaged"):
        load(model, file)
    from safetensors.torch import save_file

    save_file({"x": torch.ones(1)}, file)
    with pytest.raises(UsageError, match="not written by assay"):
        load(model, file)
