"""Models of text: BERT's numbers from BERT's weights, every knob alive, trained and resumed as those of images are."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_reviews as made

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers", reason="no tokenizers here: pip install 'kernel-assay[models]'")

from assay import host  # noqa: E402
from assay.errors import AssayError, UsageError  # noqa: E402
from assay.models.studies.train import Options, plan, run, train  # noqa: E402
from assay.models.subject import checkpoint  # noqa: E402
from assay.models.subject.checkpoint import Checkpoint  # noqa: E402
from assay.models.subject.data.datasets import DATASETS  # noqa: E402
from assay.models.subject.data.published import MINILM  # noqa: E402
from assay.models.subject.knobs import Knob, turned  # noqa: E402
from assay.models.subject.registry import ENTRIES, entry  # noqa: E402
from assay.models.subject.score import accuracy, answers  # noqa: E402
from assay.models.subject.zoo import encoder  # noqa: E402

MINE = host.data_folder()
SMALL = {"depth": "1", "width": "64"}


@pytest.fixture
def imdb(tmp_path, monkeypatch):
    """A data folder of this test's own, and made-up reviews in place of the real ones."""
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASSAY_STORE", "none")
    monkeypatch.setattr(encoder, "VOCABULARY", 200)  # as many as those reviews need: checkpoints are small
    found = made.data_set(tmp_path)
    monkeypatch.setitem(DATASETS, "imdb", found)
    return found


@pytest.fixture
def quick(imdb, tmp_path):
    """Options of a run that takes a second."""

    def options(**more):
        told = {"items": 64, "epochs": 2, "batch": 16, "device": "cpu", "threads": 1, "options": SMALL}
        files = {"checkpoint": tmp_path / "c.safetensors", "weights": tmp_path / "w.safetensors"}
        return Options(**told | files | more)

    return options


def one(model, options):
    (record,) = train(model, options)
    return record


# what they are


def test_they_have_the_sizes_of_their_names():
    tiny, mini = entry("bert-tiny").build(), entry("minilm-imdb").build()
    layer = 4 * (128 * 128 + 128) + (128 * 512 + 512) + (512 * 128 + 128) + 4 * 128
    whole = (30522 + 512) * 128 + 2 * 128 + 2 * layer + 2 * 128 + 2
    assert sum(p.numel() for p in tiny.parameters()) == whole
    assert [len(m.layers) for m in (tiny, mini)] == [2, 6] and mini.layers[0].heads == 12
    for name in ("bert-tiny", "minilm-imdb"):
        found = entry(name)
        with torch.no_grad():
            assert found.forward(found.build(), found.example(2)).shape == (2, 2)


@pytest.fixture(scope="module")
def bert():
    """A random BertForSequenceClassification of transformers, small and of two layers."""
    pytest.importorskip("transformers", reason="no transformers here: pip install 'kernel-assay[models]'")
    from transformers.models.bert.configuration_bert import BertConfig
    from transformers.models.bert.modeling_bert import BertForSequenceClassification

    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, initializer_range=0.5
    )
    torch.manual_seed(0)
    return BertForSequenceClassification(config).eval()


def ours(pooling="mean", attention="sdpa"):
    return encoder.Classifier(encoder.Shape(2, 32, 4, 64), pooling=pooling, attention=attention).eval()


IDS = torch.tensor([[101, 5000, 6000, 7000, 102], [101, 8000, 102, 0, 0]])
MASK = (IDS != 0).long()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_with_bert_s_weights_it_gives_bert_s_numbers(bert, attention):
    model = ours("first", attention)
    model.load_state_dict(encoder.rename(bert.state_dict()))
    with torch.no_grad():
        torch.testing.assert_close(model(IDS, MASK), bert(IDS, MASK).logits, rtol=1e-4, atol=1e-5)


def test_padding_changes_nothing(bert):
    model = ours()
    encoder_only = {n: t for n, t in bert.state_dict().items() if "pooler" not in n}
    model.load_state_dict(encoder.rename(encoder_only))
    with torch.no_grad():
        alone = model(IDS[1:, :3], MASK[1:, :3])
        torch.testing.assert_close(model(IDS, MASK)[1:], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("old", [False, True])
def test_published_weights_load_from_a_file_with_the_names_of_any_age(bert, tmp_path, old):
    """Those of a pre-trained BERT: heads for other tasks, a pooler, no classifier; LayerNorm's names of 2018."""
    state = {n: t for n, t in bert.state_dict().items() if not n.startswith("classifier")}
    if old:
        state = {n.replace("LayerNorm.weight", "LayerNorm.gamma"): t for n, t in state.items()}
        state = {n.replace("LayerNorm.bias", "LayerNorm.beta"): t for n, t in state.items()}
    torch.save(state | {"cls.predictions.bias": torch.zeros(30522)}, tmp_path / "bert.bin")
    for pooling in ("mean", "first"):
        model = ours(pooling)
        head = model.classifier.weight.detach().clone()
        checkpoint.load_into(model, tmp_path / "bert.bin", encoder.rename, encoder.HEAD)
        assert torch.equal(model.layers[1].contract.weight, bert.bert.encoder.layer[1].output.dense.weight)
        assert torch.equal(model.norm.weight, bert.bert.embeddings.LayerNorm.weight)
        assert torch.equal(model.classifier.weight, head)
        if model.pooler is not None:
            assert torch.equal(model.pooler.weight, bert.bert.pooler.dense.weight)
    with pytest.raises(UsageError, match=r"lacks classifier\.weight"):
        checkpoint.load_into(ours("first"), tmp_path / "bert.bin", encoder.rename)


def test_weights_of_an_encoder_of_another_shape_are_refused_and_nothing_is_changed(bert, tmp_path):
    torch.save(bert.state_dict(), tmp_path / "bert.bin")
    model = entry("bert-tiny").build()
    before = {n: t.clone() for n, t in model.state_dict().items()}
    with pytest.raises(UsageError, match="other shapes for"):
        entry("bert-tiny").start(model, tmp_path / "bert.bin")
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())


def test_minilm_imdb_starts_as_minilm(monkeypatch):
    if not all((MINE / MINILM.folder / f.name).is_file() for f in MINILM.files):
        pytest.skip("its 91 MB of weights are not here: assay model fetch minilm")
    monkeypatch.setenv("ASSAY_DATA", str(MINE.parent))
    found, whole = entry("minilm-imdb"), entry("minilm")
    model, published = found.build(), whole.build()
    found.start(model)
    whole.load(published, whole.weights_here())
    pooled = []
    model.classifier.register_forward_pre_hook(lambda module, args: pooled.append(args[0]))
    with torch.no_grad():
        model(IDS, MASK)
        vectors = published(IDS, MASK)
    torch.testing.assert_close(torch.nn.functional.normalize(pooled[0], dim=-1), vectors, rtol=1e-4, atol=1e-5)


# knobs


def shapes(model):
    return {n: tuple(t.shape) for n, t in model.state_dict().items()}


@pytest.mark.usefixtures("imdb")
def test_every_value_of_every_knob_changes_the_model_that_is_built():
    found = entry("bert-tiny")
    for name in ("depth", "width", "feed_forward"):
        values = found.knobs[name].values
        assert len({json.dumps(shapes(found.build(**{name: value}))) for value in values}) == len(values), name
    heads = found.knobs["heads"].values
    assert [found.build(heads=value).layers[0].heads for value in heads] == [1, 2, 4, 8, 16]
    linears = [name for name in found.knobs if "." in name]
    assert len(linears) == 4 * 8
    for depth in found.knobs["depth"].values:
        here = [name for name in linears if found.knobs[name].exists({"depth": depth})]
        assert len(here) == 4 * int(depth)
        model = found.build(depth=depth, **dict.fromkeys(here[::2], "identity"))
        kinds = [type(model.get_submodule(name)) for name in here]
        assert kinds == [torch.nn.Identity, torch.nn.Linear] * (len(here) // 2)


def test_heads_change_the_numbers_though_not_the_weights(imdb):
    found = entry("bert-tiny")
    models = [found.build(1, heads=heads) for heads in ("1", "2", "4")]
    for model in models:
        torch.nn.init.normal_(model.layers[0].query.weight)
    with torch.no_grad():
        logits = [m(IDS % 200, MASK) for m in models]
    assert len({tuple(one.flatten().tolist()) for one in logits}) == 3


@settings(max_examples=25)
@given(st.data())
def test_any_shape_within_the_knobs_can_be_built_and_run(data):
    shape = encoder.Shape(
        data.draw(st.integers(1, 3)),
        8 * (heads := data.draw(st.sampled_from([1, 2, 4]))),
        heads,
        data.draw(st.sampled_from([8, 16, 40])),
        frozenset(
            data.draw(st.lists(st.sampled_from([f"layers.0.{n}" for n in ("query", "key", "value", "project")])))
        ),
    )
    model = encoder.Classifier(shape, classes=3).eval()
    with torch.no_grad():
        assert model(IDS, MASK).shape == (2, 3)
    linears = [m for m in model.layers.modules() if isinstance(m, torch.nn.Linear)]
    assert len(linears) == 6 * shape.depth - len(shape.identity)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((2, 128, 3, 512), "3 heads do not divide a width of 128"),
        ((0, 128, 2, 512), "depth 0"),
        ((2, 128, 2, 512, frozenset({"layers.2.query"})), "no linear layers.2.query"),
        ((2, 128, 2, 512, frozenset({"layers.0.norm1"})), "no linear layers.0.norm1"),
        ((2, 128, 2, 512, frozenset({"layers.0.expand"})), "no identity can stand for it"),
    ],
)
def test_a_shape_that_cannot_be_is_an_error_that_says_why(shape, says):
    with pytest.raises(UsageError, match=says) as caught:
        encoder.Shape(*shape)
    assert caught.value.fix


def test_a_wide_feed_forward_may_be_left_out_where_it_is_as_wide_as_the_model():
    shape = encoder.Shape(1, 32, 2, 32, frozenset({"layers.0.expand", "layers.0.contract"}))
    with torch.no_grad():
        assert encoder.Classifier(shape).eval()(IDS, MASK).shape == (2, 2)


def test_knobs_are_named_in_what_is_built_and_in_errors():
    found = entry("bert-tiny")
    assert found.chosen({}) == {"attention": "sdpa", "pooling": "mean"}
    assert found.chosen({"depth": "4", "width": "128"}) == {"attention": "sdpa", "pooling": "mean", "depth": "4"}
    names = {found.weights_file(**o).name for o in ({}, {"depth": "4"}, {"heads": "4"}, {"layers.0.key": "identity"})}
    assert len(names) == 4
    many = {f"layers.{n}.{part}": "identity" for n in range(8) for part in ("query", "key", "value", "project")}
    assert len(found.weights_file(depth="8", **many).name) < 120
    for options, says in (
        ({"depth": "3"}, "one of: 1, 2, 4, 8"),
        ({"deth": "4"}, "did you mean depth"),
        ({"layers.3.key": "identity"}, "it needs depth 4 or 8"),
        ({"layers.0.key": "conv"}, "identity, linear"),
    ):
        with pytest.raises(UsageError, match=says):
            found.build(**options)


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from("012")))
def test_only_what_differs_from_the_defaults_is_told(asked):
    knobs = {name: Knob(("0", "1", "2"), "1") for name in "abc"}
    told = turned("model", knobs, asked)
    assert told == {name: value for name, value in asked.items() if value != "1"}


def test_every_declared_default_is_a_value_and_what_build_does_by_itself():
    for found in ENTRIES.values():
        for name, knob in found.knobs.items():
            assert knob.default in knob.values and len({*knob.values}) == len(knob.values) > 1, name
    found = entry("bert-tiny")
    told = {n: k.default for n, k in found.knobs.items() if not k.where}
    assert shapes(found.build(**told)) == shapes(found.build())


# training


def test_a_text_model_learns_and_its_record_says_all_of_it(quick, imdb):
    record = one("bert-tiny", quick(epochs=6, lr=3e-3))
    told = record.evidence
    losses = [e["train_loss"] for e in told["epochs"]]
    assert losses[-1] < 0.6 * losses[0], losses
    assert told["test"]["value"] > 0.8 and told["test"]["total"] == 32
    assert told["data"]["name"] == "imdb" and told["data"]["sizes"] == {"train": 64, "validation": 32, "test": 32}
    hashes = {f.name: f.sha256 for found in imdb.assets for f in found.files}
    assert told["data"]["sha256"] == hashes
    assert told["config"]["tokens"] == 512 and told["config"]["options"]["depth"] == "1"
    words = "--epochs 6 --batch 16 --lr 0.003 --items 64 --threads 1 --set depth=1 --set width=64 --device cpu"
    assert record.replay == f"assay model train bert-tiny {words}"
    model = entry("bert-tiny").build(9, **SMALL)
    entry("bert-tiny").load(model, quick().weights)
    assert entry("bert-tiny").score(model).correct == told["test"]["correct"]
    json.dumps(record.to_dict())


class Stopped(Exception):
    pass


def test_a_text_run_that_is_stopped_goes_on_bit_for_bit(quick, tmp_path):
    """Within its second epoch. Dropout draws random numbers, and batches have different lengths."""
    files = {"checkpoint": tmp_path / "k.safetensors", "weights": tmp_path / "l.safetensors"}
    options = {"items": 40, "batch": 8, "epochs": 2}
    planned = plan("bert-tiny", quick(**options, **files, every=0.0))

    def stop(text, done):
        if done >= 7:
            raise Stopped

    with pytest.raises(Stopped):
        list(run(planned, stop))
    assert not files["weights"].exists() and checkpoint.read(files["checkpoint"]).facts["step"] == 1
    resumed = one("bert-tiny", quick(**options, **files, resume=True))
    assert resumed.evidence["resumed"] == "at epoch 2, after 1 steps of it"
    whole = one("bert-tiny", quick(**options))
    assert files["weights"].read_bytes() == (tmp_path / "w.safetensors").read_bytes()
    for name in ("test", "best_epoch", "curve"):
        assert resumed.evidence[name] == whole.evidence[name], name
    ends = [checkpoint.read(f).tensors for f in (files["checkpoint"], tmp_path / "c.safetensors")]
    assert all(torch.equal(ends[0][n], ends[1][n]) for n in {*ends[0], *ends[1]})
    other = one("bert-tiny", quick(**options, seed=1))
    assert other.evidence["curve"] != whole.evidence["curve"]


def test_a_run_starts_from_a_file_and_says_which(quick, tmp_path):
    """From an encoder alone, in another run's checkpoint another one would be refused."""
    source = entry("bert-tiny").build(5, **SMALL)
    kept = {n: t for n, t in source.state_dict().items() if not n.startswith("classifier")}
    checkpoint.write(tmp_path / "start.safetensors", Checkpoint(kept, {}))
    options = {"items": 16, "epochs": 1, "lr": 1e-12, "initial": tmp_path / "start.safetensors"}
    told = one("bert-tiny", quick(**options)).evidence
    trained = checkpoint.read(tmp_path / "w.safetensors").tensors
    torch.testing.assert_close(trained["layers.0.query.weight"], kept["layers.0.query.weight"], rtol=0, atol=1e-6)
    assert len(told["config"]["initial"]) == 64
    with pytest.raises(UsageError, match="its initial is"):
        one("bert-tiny", quick(**options | {"initial": None}, resume=True))


def test_a_model_is_trained_by_its_own_recipe_unless_asked_otherwise(imdb):
    for name in ("mnist-cnn", "bert-tiny", "minilm-imdb"):
        planned = plan(name, Options(device="cpu"))
        assert dict(planned.settings) == asdict(entry(name).recipe) | {"seed": 0}
        assert planned.replay == f"assay model train {name} --device cpu"
    assert plan("bert-tiny", Options(device="cpu", lr=0.5)).settings["lr"] == 0.5
    assert plan("minilm-imdb", Options(device="cpu")).initial == MINILM.file("model.safetensors").sha256
    cut = plan("bert-tiny", Options(device="cpu", tokens=64, items=9))
    assert cut.weights.name == "bert-tiny-9reviews-64tokens.safetensors"


def test_answers_stand_in_the_order_of_the_data_whatever_the_batches(imdb):
    (data,) = imdb.load("validation")
    model = entry("bert-tiny").build(3, **SMALL)
    with torch.no_grad():
        alone = [model(*data.inputs(slice(n, n + 1), torch.float32))[0] for n in range(len(data))]
    expected = torch.nn.functional.cross_entropy(torch.stack(alone), data.labels, reduction="none")
    for batch in (0, 5):
        said = answers(model, data, batch)
        assert said.predicted.tolist() == torch.stack(alone).argmax(1).tolist()
        torch.testing.assert_close(said.losses, expected, rtol=1e-4, atol=1e-5)
    assert accuracy(model, data).correct == int((said.predicted == data.labels).sum())


def test_the_command_trains_a_users_own_model_of_text(imdb, assay, write):
    file = write(
        "bag.py",
        """
        import torch

        class Bag(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words = torch.nn.EmbeddingBag(30522, 2)

            def forward(self, ids, mask):
                return self.words(ids, per_sample_weights=None)

        def build():
            return Bag()
        """,
    )
    done = assay(
        "model", "train", f"{file}:build", "--data", "imdb", "--epochs", "3", "--batch", "8", "--device", "cpu"
    )
    assert done.returncode == 0 and "on imdb's test split" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        ("bert-tiny", {"tokens": 513}, "8 to 512"),
        ("bert-tiny", {"tokens": 1}, "8 to 512"),
        ("mnist-cnn", {"tokens": 64, "options": {}}, "mnist has images"),
        ("bert-tiny", {"options": {"heads": "3"}}, "one of: 1, 2, 4, 8, 16"),
        ("bert-tiny", {"data": "imbd"}, "imdb, imdb-official"),
        ("bert-tiny", {"data": "mnist"}, "bert-tiny takes reviews and mnist has images"),
        ("mnist-cnn", {"data": "imdb", "options": {}}, "--data mnist or --data fashion-mnist"),
        ("minilm", {"options": {}}, "bert-tiny, minilm-imdb, or your own"),
        ("bert-tiny", {"initial": Path("absent.bin")}, "no file absent.bin"),
    ],
)
def test_wrong_use_is_an_error_that_says_what_to_do_and_nothing_is_written(quick, tmp_path, model, more, says):
    before = {p.name for p in tmp_path.iterdir()}
    with pytest.raises(AssayError, match=says) as caught:
        one(model, quick(**more))
    assert "→" in str(caught.value)
    assert {p.name for p in tmp_path.iterdir()} == before


def test_a_bad_assignment_is_said_in_a_line(imdb, assay):
    done = assay("model", "train", "bert-tiny", "--set", "depth")
    assert done.returncode == 2 and "not name=value" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.gpu
def test_a_text_run_on_the_gpu_learns_and_resumes(quick):
    options = quick(device="cuda", epochs=6, lr=3e-3)
    record = one("bert-tiny", options)
    assert record.evidence["test"]["value"] > 0.7
    again = one("bert-tiny", quick(device="cuda", epochs=6, lr=3e-3, resume=True))
    assert again.evidence["test"] == record.evidence["test"]
