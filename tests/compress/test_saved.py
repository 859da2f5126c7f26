"""A compressed model comes back from its file as it was, and the file is as large as its bits say."""

import subprocess
import sys

import pytest
import torch

from assay.compress import saved
from assay.compress.formats import parse
from assay.compress.layers import layers
from assay.compress.pruning import masks
from assay.compress.treatment import Drop, Treatment, treat
from assay.errors import UsageError
from assay.models.subject.registry import entry

FORMATS = ["fixed:4:5", "int:8:channel", "int:4:group=32", "minifloat:e4m3", "bfp:5:block=16", "binary:residual"]


def treated(form="", sparsity=None, **more):
    model = entry("mnist-cnn").build(0)
    found = layers(model)
    kept = masks({p: m.weight for p, m in found.items()}, sparsity, "l1", "local", 0) if sparsity else {}
    chosen = parse(form) if form else None
    done = {p: Treatment(weight=chosen, bias=chosen, mask=kept.get(p), **more) for p in found}
    treat(found, done)
    return model.eval(), done


def outputs(model):
    with torch.no_grad():
        return model(torch.randn(5, 1, 28, 28, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("form", ["", *FORMATS])
@pytest.mark.parametrize("sparsity", [None, 70])
def test_what_is_loaded_computes_the_same_bits(form, sparsity, tmp_path):
    model, done = treated(form, sparsity)
    saved.save(model, tmp_path / "m.safetensors", "mnist-cnn", done)
    assert torch.equal(outputs(saved.load(tmp_path / "m.safetensors")), outputs(model))


def test_inputs_are_treated_as_they_were(tmp_path):
    model, done = treated(input=parse("fixed:3:1"), drop=Drop(40, "l1"))
    saved.save(model, tmp_path / "m.safetensors", "mnist-cnn", done)
    again = outputs(saved.load(tmp_path / "m.safetensors"))
    assert torch.equal(again, outputs(model))
    assert not torch.equal(again, outputs(treated()[0]))


@pytest.mark.parametrize("form", FORMATS)
def test_the_file_is_as_large_as_its_bits_say(form, tmp_path):
    """But for the header, which names each tensor."""
    model, done = treated(form, 50)
    written = saved.save(model, tmp_path / "m.safetensors", "mnist-cnn", done)
    assert written.bytes == (tmp_path / "m.safetensors").stat().st_size
    assert 0 < written.bytes - sum(written.bits.values()) / 8 < 4096


def test_weights_that_were_dropped_take_one_bit(tmp_path):
    count = sum(m.weight.numel() for m in layers(entry("mnist-cnn").build(0)).values())
    model, done = treated("", 75)
    bits = saved.save(model, tmp_path / "m.safetensors", "mnist-cnn", done).bits
    assert count <= bits["mask"] < count + 4 * 8  # whole bytes for each of four layers
    biases = sum(m.bias.numel() for m in layers(model).values())
    assert abs(bits["values"] - 32 * (0.25 * count + biases)) <= 4 * 32


def test_a_fresh_process_loads_it(tmp_path):
    model, done = treated("int:4:group=32")
    saved.save(model, tmp_path / "m.safetensors", "mnist-cnn", done)
    code = (
        "import sys, torch, assay; m = assay.load(sys.argv[1]); "
        "print(float(m(torch.ones(1, 1, 28, 28)).detach().double().sum()))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.safetensors")], capture_output=True, text=True, check=True
    )
    assert float(told.stdout) == float(model(torch.ones(1, 1, 28, 28)).detach().double().sum())


def test_another_file_is_refused(tmp_path):
    from assay.models.subject import checkpoint

    checkpoint.write(tmp_path / "w.safetensors", checkpoint.Checkpoint({"a": torch.ones(1)}, {}))
    with pytest.raises(UsageError, match="holds no compressed model"):
        saved.load(tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match="no file"):
        saved.load(tmp_path / "none.safetensors")
