"""The registry of models: a seed gives the same bits, weights load whole or not at all, errors say what to do."""

import json

import pytest

torch = pytest.importorskip("torch")

from assay import host  # noqa: E402
from assay.errors import AssayError, SourceError, UsageError  # noqa: E402
from assay.models.subject import checkpoint  # noqa: E402
from assay.models.subject.checkpoint import Checkpoint  # noqa: E402
from assay.models.subject.data.fetch import MINILM  # noqa: E402
from assay.models.subject.registry import ENTRIES, entry  # noqa: E402

MINE = host.data_folder()
"""Where this machine keeps its data; the tests' own folder is set after this file is read."""
SMALL = ("mnist-cnn", "mnist-cnn-ln", "resnet18")


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


@pytest.mark.parametrize("name", SMALL)
def test_a_seed_gives_the_same_weights_and_inputs_whatever_was_drawn_before(name):
    found = entry(name)
    before = torch.get_rng_state()
    first, inputs = found.build(3), found.example(2, 3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    assert same(first.state_dict(), found.build(3).state_dict())
    assert not same(first.state_dict(), found.build(4).state_dict())
    assert torch.equal(inputs[0][0], found.example(2, 3)[0][0])
    assert not first.training


@pytest.mark.parametrize(("name", "classes"), [("mnist-cnn", 10), ("mnist-cnn-ln", 10), ("resnet18", 1000)])
@pytest.mark.parametrize("dtype", ["fp32", pytest.param("bf16", marks=pytest.mark.whole), "fp64"])
def test_a_forward_pass_gives_one_row_for_each_element_in_its_dtype(name, classes, dtype):
    found = entry(name)
    inputs = found.example(3, dtype=dtype)
    with torch.no_grad():
        logits = found.forward(found.build().to(inputs[0][0].dtype), inputs)
    assert logits.shape == (3, classes) and logits.dtype == inputs[0][0].dtype and logits.isfinite().all()


def test_the_activation_is_the_one_chosen():
    found = entry("mnist-cnn")
    assert list(found.options["activation"]) == ["gelu", "relu", "silu"]
    for name, kind in (("gelu", torch.nn.GELU), ("relu", torch.nn.ReLU), ("silu", torch.nn.SiLU)):
        modules = [type(m) for m in found.build(activation=name).modules()]
        assert modules.count(kind) == 3
        assert sum(modules.count(k) for k in (torch.nn.GELU, torch.nn.ReLU, torch.nn.SiLU)) == 3
    assert same(found.build(activation="relu").state_dict(), found.build().state_dict())
    with pytest.raises(UsageError, match="gelu, relu, silu"):
        found.build(activation="mish")
    with pytest.raises(UsageError, match="no option 'activation'"):
        entry("resnet18").build(activation="relu")


def test_every_layernorm_of_mnist_cnn_ln_runs_over_contiguous_rows_and_is_followed_by_gelu():
    model, rows = entry("mnist-cnn-ln").build(), []
    pairs = [m for m in model.modules() if isinstance(m, torch.nn.Sequential)]
    assert [[type(m) for m in pair] for pair in pairs] == [[torch.nn.LayerNorm, torch.nn.GELU]] * 3
    for pair in pairs:
        pair[0].register_forward_pre_hook(lambda m, args: rows.append((args[0].is_contiguous(), args[0].shape[-1])))
    model(entry("mnist-cnn-ln").example(2)[0][0])
    assert rows == [(True, 16), (True, 32), (True, 128)]


def test_resnet18_has_the_names_and_sizes_that_its_published_weights_have():
    state = entry("resnet18").build().state_dict()
    assert len(state) == 122
    assert sum(p.numel() for p in entry("resnet18").build().parameters()) == 11_689_512
    shapes = {
        "conv1.weight": (64, 3, 7, 7),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.running_var": (128,),
        "layer4.1.bn2.num_batches_tracked": (),
        "fc.weight": (1000, 512),
    }
    assert {n: tuple(state[n].shape) for n in shapes} == shapes
    assert "layer1.0.downsample.0.weight" not in state


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(UsageError) as caught:
        entry("mnist")
    assert all(name in str(caught.value) for name in ENTRIES) and "module:function" in str(caught.value)


# weights


def test_weights_go_to_a_file_and_come_back_bit_for_bit(tmp_path):
    found, file = entry("mnist-cnn"), tmp_path / "deep" / "weights.safetensors"
    model, other = found.build(1), found.build(2)
    checkpoint.write(file, Checkpoint(model.state_dict(), {"test": 0.1}))
    found.load(other, file)
    assert same(model.state_dict(), other.state_dict())
    assert checkpoint.read(file).facts == {"test": 0.1}


def test_a_state_dict_of_pytorch_loads_too_even_an_old_one_without_counters(tmp_path):
    found = entry("resnet18")
    model, other = found.build(1), found.build(2)
    kept = {n: t for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    torch.save(kept, tmp_path / "resnet18.pth")
    found.load(other, tmp_path / "resnet18.pth")
    assert same(model.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.pop("fc2.bias"), "lacks fc2.bias"),
        (lambda s: s.update(extra=torch.zeros(1)), "beyond the model, extra"),
        (lambda s: s.update({"fc2.bias": torch.zeros(11)}), "other shapes for fc2.bias"),
    ],
)
def test_weights_of_another_model_are_refused_and_nothing_is_changed(tmp_path, change, says):
    found, file = entry("mnist-cnn"), tmp_path / "w.safetensors"
    model = found.build(1)
    state = dict(found.build(2).state_dict())
    change(state)
    checkpoint.write(file, Checkpoint(state, {}))
    before = {n: t.clone() for n, t in model.state_dict().items()}
    with pytest.raises(UsageError, match=says):
        found.load(model, file)
    assert same(before, model.state_dict())


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_file_of_something_else_is_no_weights(tmp_path, suffix):
    (tmp_path / f"w{suffix}").write_bytes(b"<html>not found</html>" * 9)
    with pytest.raises(UsageError, match=r"damaged|no state dict"):
        entry("mnist-cnn").load(entry("mnist-cnn").build(), tmp_path / f"w{suffix}")
    with pytest.raises(UsageError, match="no file"):
        entry("mnist-cnn").load(entry("mnist-cnn").build(), tmp_path / f"absent{suffix}")


def test_weights_that_share_their_memory_are_kept_under_each_name(tmp_path):
    tied = torch.nn.Linear(3, 3, bias=False)
    model = torch.nn.ModuleDict({"a": tied, "b": tied})
    checkpoint.write(tmp_path / "w.safetensors", Checkpoint(model.state_dict(), {}))
    assert same(checkpoint.read(tmp_path / "w.safetensors").tensors, model.state_dict())


# the user's own


def test_a_users_own_function_is_a_model_by_path_or_by_module(write, monkeypatch):
    file = write(
        "mine.py",
        """
        import torch

        def build():
            return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10))

        def example(batch):
            return {"input": torch.rand(batch, 1, 28, 28)}

        def with_inputs():
            return torch.nn.Linear(3, 2), lambda batch: torch.rand(batch, 3)
        """,
    )
    monkeypatch.chdir(file.parent)
    for name in ("mine.py:build", f"{file}:build", "mine:build"):
        found = entry(name)
        args, named = found.example(2, dtype="fp64")
        assert args == () and named["input"].dtype == torch.float64
        assert found.forward(found.build(), found.example(4)).shape == (4, 10)
        assert same(found.build(5).state_dict(), found.build(5).state_dict())
        assert found.file == file
    assert entry("mnist-cnn").file.name == "mnist_cnn.py" and entry("no_module.inside:f").file is None
    file.write_text(file.read_text().replace("def example", "def unused"))
    paired = write("paired.py", file.read_text())
    found = entry(f"{paired}:with_inputs")
    assert found.forward(found.build(), found.example(4)).shape == (4, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def build():\n    return 1 / 0\n", r"mine\.py:2: ZeroDivisionError: division by zero"),
        ("def build():\n    return 'a model'\n", "returned a str, not a torch.nn.Module"),
        ("def build():\n    pass\n", "returned None, not a torch.nn.Module"),
        ("def build(:\n", r"mine\.py:1: SyntaxError"),
        ("import no_such_thing\n", r"mine\.py:1: ModuleNotFoundError"),
        ("built = 1\n", "has no function build"),
        (
            "import torch\ndef build():\n    return torch.nn.Linear('a', 1)\n",
            r"mine\.py:3: TypeError",
        ),
    ],
)
def test_what_is_wrong_with_a_users_own_model_is_said_with_its_line(write, text, says):
    with pytest.raises((SourceError, UsageError), match=says):
        entry(f"{write('mine.py', text)}:build").build()


def test_an_error_in_another_package_is_not_given_a_line_of_the_users_file(write):
    file = write(
        "mine.py",
        """
        import torch
        def build():
            return torch.nn.Embedding(4, 2)
        def example(batch):
            return torch.full((batch,), 9)
        """,
    )
    found = entry(f"{file}:build")
    with (
        pytest.raises(SourceError, match=r"mine\.py: IndexError.*\(at torch/nn/functional\.py:\d+\)") as told,
        found.guarded(),
    ):
        found.forward(found.build(), found.example(2))
    assert "running the model on the inputs" in told.value.fix


def test_a_users_own_that_is_not_there_is_said_so(write):
    for name, says in (("no/file.py:f", "no file"), ("no_module:f", "no module"), ("torch:", "names no function")):
        with pytest.raises(UsageError, match=says):
            entry(name).build()
    with pytest.raises(UsageError, match=r"def example\(batch\)"):
        entry(f"{write('bare.py', 'import torch' + chr(10) + 'build = torch.nn.Identity')}:build").example(2)


# the sentence encoder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random encoder of two small layers, in the layout of the published files."""
    minilm = pytest.importorskip("assay.models.subject.zoo.minilm")
    pytest.importorskip("transformers", reason="no transformers here: pip install 'kernel-assay[models]'")
    config = {**minilm.CONFIG, "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config |= {"intermediate_size": 64, "model_type": "bert", "architectures": ["BertModel"]}
    torch.manual_seed(0)
    encoder = minilm.SentenceEncoder(config, "sdpa").eval()
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "config.json").write_text(json.dumps(config))
    published = {n.removeprefix("bert."): t for n, t in encoder.state_dict().items()}
    published |= {"pooler.dense.weight": torch.zeros(32, 32), "embeddings.position_ids": torch.arange(512)[None]}
    checkpoint.write(folder / "model.safetensors", Checkpoint(published, {}))
    return minilm, encoder, folder


def test_an_encoder_is_read_from_the_published_layout(tiny):
    minilm, encoder, folder = tiny
    assert same(minilm.build_from(folder).state_dict(), encoder.state_dict())


def test_an_embedding_is_the_mean_of_its_own_tokens_and_has_length_1(tiny):
    minilm, encoder, folder = tiny
    ids = torch.tensor([[1, 2, 3, 4, 0, 0], [5, 6, 7, 8, 9, 10]])
    mask = (torch.arange(6) < torch.tensor([[4], [6]])).long()
    with torch.no_grad():
        vectors = encoder(ids, mask)
        hidden = encoder.bert(input_ids=ids[:1, :4], attention_mask=mask[:1, :4]).last_hidden_state
        other = minilm.build_from(folder, "eager")(ids, mask)
    alone = hidden[0].mean(0)
    torch.testing.assert_close(vectors[0], alone / alone.norm())
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    torch.testing.assert_close(vectors, other)


def test_the_published_encoder_finds_the_partner_of_nearly_every_sentence(monkeypatch):
    if not all((MINE / MINILM.folder / f.name).is_file() for f in MINILM.files):
        pytest.skip("its 91 MB of weights are not here: assay model fetch minilm")
    monkeypatch.setenv("ASSAY_DATA", str(MINE.parent))
    found = entry("minilm")
    model = found.build()
    chance = found.score(model)
    found.load(model, found.weights_here())
    score = found.score(model)
    assert score.total == 64 and score.correct >= 62 > chance.correct


def test_without_transformers_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "transformers.models.bert.configuration_bert", None)
    with pytest.raises(AssayError, match=r"kernel-assay\[models\]"):
        entry("minilm").build()


def test_a_file_alone_is_asked_for_its_function():
    with pytest.raises(UsageError, match="which function builds the model") as refused:
        entry("my_model.py")
    assert "my_model.py:build" in refused.value.fix
