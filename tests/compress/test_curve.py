"""`assay compress` on a task that is learnt in seconds: what its records say is so."""

import json
from dataclasses import replace

import pytest
import torch

import dots
from assay.compress import items, latency, planning
from assay.compress.curve import run
from assay.compress.evidence import CompressEvidence
from assay.compress.planning import Prune, Quantize
from assay.compress.task import Task
from assay.errors import UsageError
from assay.models.studies.train.fit import Diverged, Fit
from assay.models.subject.data.datasets import DATASETS


@pytest.fixture
def learnt(monkeypatch):
    dots.install(monkeypatch)
    torch.manual_seed(0)


def evidence(planned):
    records = list(run(planned))
    assert all(r.status == "pass" for r in records)
    return records, [CompressEvidence.of(r) for r in records]


@pytest.mark.slow
def test_a_curve_has_a_control_and_every_width_by_every_method(learnt):
    records, found = evidence(planning.quantize("mnist-cnn", Quantize(widths=(2, 8), device="cpu")))
    assert [(e.method, e.width) for e in found] == [
        ("control", None),
        ("ptq", 2),
        ("qat", 2),
        ("ptq", 8),
        ("qat", 8),
    ]
    control, two, trained, eight, _ = found
    assert control.accuracy > 0.9 and eight.accuracy >= control.base_accuracy - 0.03
    assert two.accuracy < trained.accuracy  # two bits are too few, and training on helps
    assert control.bits == control.base_bits and 3.9 < control.bits / eight.bits < 4.1
    assert eight.simulated and not control.simulated
    assert {e.base for e in found} == {control.base}
    assert len({r.workload for r in records}) == len(records)
    json.dumps([r.to_dict() for r in records])


def test_each_format_has_a_curve_over_the_widths_it_can_have():
    options = Quantize(formats=("fixed", "log", "mxint8"), widths=(4, 16), methods=("ptq",))
    points = planning.quantize("mnist-cnn", options).points
    assert [p.format for p in points] == ["", "fixed:4:F", "fixed:16:F", "log:4:e=T", "mxint8"]
    with pytest.raises(UsageError, match="width 16 is out of range"):
        planning.quantize("mnist-cnn", Quantize(formats=("log",), widths=(16,)))


def test_which_items_were_right_is_in_the_record(learnt):
    _, found = evidence(planning.quantize("mnist-cnn", Quantize(widths=(8,), methods=("ptq",), device="cpu")))
    for one in found:
        assert float(items.unpacked(one.right, one.sizes.test).double().mean()) == one.accuracy


def test_the_smallest_weights_matter_least(learnt):
    _, found = evidence(planning.prune("mnist-cnn", Prune(sparsities=(80,), recover=0, device="cpu")))
    control, l1, random = found
    assert control.accuracy >= l1.accuracy > random.accuracy
    assert all(abs(layer.kept - 0.2) < 0.01 for layer in l1.layers)


def test_what_was_dropped_stays_dropped_while_training_goes_on(learnt, tmp_path):
    planned = planning.prune(
        "mnist-cnn", Prune(sparsities=(80,), methods=("l1",), device="cpu", save=tmp_path / "m.safetensors")
    )
    _, (_, l1) = evidence(planned)
    import assay

    weight = assay.load(tmp_path / "m.safetensors").fc1.weight
    assert int((weight == 0).sum()) >= round(0.8 * weight.numel())
    assert l1.file_bytes == (tmp_path / "m.safetensors").stat().st_size


def test_a_base_model_is_trained_once(learnt):
    planned = planning.quantize("mnist-cnn", Quantize(widths=(8,), methods=("ptq",), device="cpu"))
    told = []
    list(run(planned, told.append))
    first = [t for t in told if t.startswith("training")]
    told.clear()
    list(run(planned, told.append))
    assert len(first) <= 1 and not [t for t in told if t.startswith("training")]
    list(run(replace(planned, options=replace(planned.options, seeds=(7,))), told.append))
    assert [t for t in told if t.startswith("training")] == ["training mnist-cnn, seed 7"]


@pytest.mark.parametrize(
    ("what", "options"),
    [
        ("a width of 1", Quantize(widths=(1,))),
        ("a width of 40", Quantize(widths=(40,))),
        ("no number format called 'fixd'", Quantize(formats=("fixd:W",))),
        ("no method called 'qa'", Quantize(methods=("qa",))),
        ("'embeddings' cannot be compressed", Quantize(of=("embeddings",))),
        ("nothing to do", Quantize(seeds=())),
        ("a sparsity of 120", Prune(sparsities=(120,))),
        (r"a sparsity of 0\.5 %.*\n.*--sparsity 50", Prune(sparsities=(0.5,))),
        ("no scope called", Prune(scope="planet")),
        ("no method called", Prune(methods=("l2",))),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_trained(what, options):
    with pytest.raises(UsageError, match=what):
        (planning.quantize if isinstance(options, Quantize) else planning.prune)("mnist-cnn", options)


def test_a_model_without_layers_to_compress_is_refused(learnt, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "import torch\n"
        "class Mean(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scale = torch.nn.Parameter(torch.ones(10))\n"
        "    def forward(self, x):\n"
        "        return x.flatten(1)[:, :10] * self.scale\n"
        "def model():\n"
        "    return Mean()\n"
    )
    monkeypatch.setitem(DATASETS, "mnist", DATASETS["dots"])
    planned = planning.quantize(f"{tmp_path}/own.py:model", Quantize(device="cpu"))
    with pytest.raises(UsageError, match="no layer that can be compressed"):
        list(run(planned))


def test_it_is_a_python_function_too(learnt):
    from assay import compress

    made = compress.prune("mnist-cnn", sparsities=(50,), methods=("l1",), recover=0, device="cpu")
    assert [r.verb for r in made] == ["compress", "compress"]
    with pytest.raises(UsageError, match="no setting called 'width'"):
        list(compress.quantize("mnist-cnn", width=4))


def test_a_point_that_diverges_is_a_failure_and_the_curve_goes_on(learnt, monkeypatch):
    def breaks(self, model, epochs, seed):
        if epochs:
            raise Diverged("the loss is not finite in epoch 1, step 3")

    monkeypatch.setattr(Task, "train_on", breaks)
    options = Quantize(widths=(8,), methods=("qat", "ptq"), device="cpu")
    records = list(run(planning.quantize("mnist-cnn", options)))
    assert [str(r.status) for r in records] == ["fail", "fail", "pass"]
    assert "not finite" in records[1].reason


def test_a_model_of_convolutions_alone_has_no_latency(learnt, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(
        "from torch import nn\n"
        "def model():\n"
        "    return nn.Sequential(nn.Conv2d(1, 10, 28), nn.Flatten())\n"
        "def example(batch):\n"
        "    import torch\n"
        "    return torch.zeros(batch, 1, 28, 28)\n"
    )
    monkeypatch.setitem(DATASETS, "mnist", DATASETS["dots"])
    options = Quantize(formats=("int:8:channel",), methods=("ptq",), device="cpu", epochs=0)
    _, (_, packed) = evidence(planning.quantize(f"{tmp_path}/own.py:model", options))
    assert packed.latency is None and packed.simulated == "no packed kernel computes with int:8:channel here"


def test_a_model_without_data_is_refused():
    with pytest.raises(UsageError, match="no data"):
        planning.quantize("resnet18", Quantize())


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("int:8:channel", "int8:channel"),
        ("int:4:group=128", "int4:group=128"),
        ("mxint8", "mx_linear"),
        ("mxfp8_e4m3", "mxfp8_e4m3"),
        ("int:8", ""),  # one scale for a tensor: no kernel takes that
        ("int:6:channel", ""),
        ("fixed:8:F", ""),
        ("", ""),
    ],
)
def test_a_latency_is_measured_where_a_packed_kernel_computes_with_the_format(form, rule):
    assert latency.rule(form) == rule


def test_it_is_of_the_packed_model_and_of_the_one_before(learnt):
    options = Quantize(formats=("int:8:channel", "mxint8"), methods=("ptq",), device="cpu")
    _, (control, *packed) = evidence(planning.quantize("mnist-cnn", options))
    assert all(e.latency > 0 and e.base_latency > 0 and not e.simulated for e in packed)
    assert control.latency is None


def test_with_no_time_nothing_is_timed_and_nothing_is_called_simulated(learnt, monkeypatch):
    monkeypatch.setattr(latency, "measured", lambda *_: pytest.fail("it was timed"))
    options = Quantize(
        formats=("int:8:channel",), methods=("ptq",), epochs=0, of=("weights",), timed=False, device="cpu"
    )
    _, (_, packed) = evidence(planning.quantize("mnist-cnn", options))
    assert packed.latency is None and not packed.simulated


def test_tf32_is_for_the_steps_of_training_alone_and_only_on_a_gpu(learnt):
    seen = {True: set(), False: set()}

    class Watched(torch.nn.Sequential):
        def forward(self, x):
            seen[self.training].add(torch.backends.cuda.matmul.allow_tf32)
            return super().forward(x)

    task = Task.of(planning.quantize("mnist-cnn", Quantize(device="cpu")).entry, "cpu")
    assert not task.tf32 and replace(task, device="cuda:1").tf32
    model = Watched(torch.nn.Flatten(), torch.nn.LazyLinear(task.train.classes))
    model(task.train.inputs(slice(0, 2), torch.float32)[0])
    seen[True].clear()
    for tf32 in (True, False):
        Fit(model, task.train, task.validation, replace(task._config(0, 1, 1e-3), tf32=tf32)).run(
            lambda: None, float("inf"), lambda: None
        )
        assert seen == {True: {tf32}, False: {False}}
        seen[True].clear()
    assert not torch.backends.cuda.matmul.allow_tf32
