"""A peer may prepare constant inputs outside the timed region: what it keeps is never of other inputs than the call's,
and the record shows it."""

import pytest
import torch

import assay
from assay.backends import Level, here
from assay.catalog.select import select
from assay.errors import SourceError
from assay.kernel import Kernel, address
from assay.worker import load
from assay.worker.buffers import Buffers
from assay.worker.preparation import Kept, Preparation
from assay.worker.questions import Round, Time
from assay.worker.request import Call, TensorSpec

OP = """
import torch
from assay import Axis, Tensor, kernel, op

@op(
    axes={"m": Axis(min=1, typical=4), "k": Axis(min=1, typical=64)},
    inputs={"x": Tensor("m", "k", range=(-4, 4)), "weight": Tensor("k", range=(-4, 4), constant=True)},
    outputs={"out": Tensor("m", "k")},
)
def scaled(x, weight):
    return x * weight * 2

"""
HONEST = """
def doubled(x, weight):
    return weight.double() * 2

@kernel("scaled", backend="torch", variant="theirs", needs="torch", returns=True, prepare="doubled")
def theirs(x, weight, *, prepared):
    return (x * prepared).to(x.dtype)
"""
STALE = HONEST.replace(
    "    return weight.double() * 2",
    "    return known.setdefault(weight.data_ptr(), weight.double() * 2)\n\nknown = {}",
)
SMALL = {"workload": "m=4,k=16384,dtype=fp32", "against": (), "rounds": 5, "budget": 0.2, "threads": 1}


def written(tmp_path, kernels):
    file = tmp_path / "peer.py"
    file.write_text(OP + kernels)
    return file


def test_a_peer_is_timed_on_what_it_prepared_and_the_record_says_how_much_that_is(tmp_path):
    (record,) = assay.bench(f"{written(tmp_path, HONEST)}:scaled/torch:theirs", **SMALL)
    assert record.median and record.status in ("pass", "inconclusive"), record.reason
    assert record.evidence["prepared_bytes"] == 16384 * 8 and record.evidence["bytes"] == 16384 * 4 * (4 + 1 + 4)
    assert "weights prepared once by doubled" in record.evidence["peer"]


def test_a_stale_preparation_fails_in_bench_and_in_check(tmp_path):
    address = f"{written(tmp_path, STALE)}:scaled/torch:theirs"
    (timed,) = assay.bench(address, **SMALL)
    assert timed.status == "fail" and "a timed call computed something else" in timed.reason
    (checked,) = assay.check(address, dtypes=("fp32",), workloads=10)
    assert checked.status == "fail", checked.reason


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ('needs="torch", ', "", "only a peer may"),
        ('prepare="doubled"', 'prepare="tripled"', "no function of this file"),
        ("def doubled(x, weight)", "def doubled(weight)", "no function of this file"),
        ("*, prepared", "*, out", "does not take what `doubled` makes"),
        (", constant=True", "", "no constant input"),
    ],
)
def test_a_preparation_that_cannot_be_is_refused_with_what_to_do(tmp_path, before, after, what):
    file = tmp_path / "peer.py"
    file.write_text((OP + HONEST).replace(before, after))
    with pytest.raises(SourceError, match=what) as refused:
        select([str(file)])
    assert refused.value.fix


def test_a_peer_whose_package_is_missing_says_which(tmp_path):
    file = written(tmp_path, HONEST.replace('needs="torch"', 'needs="no-such-package"'))
    ((kernel, _),) = select([f"{file}:scaled/torch:theirs"])
    found = here(kernel)
    assert (found.level, found.reason) == (Level.MISSING, "no-such-package is not installed") and found.fix


def test_a_preparation_sees_the_shape_of_other_inputs_and_not_their_values(tmp_path):
    file = written(
        tmp_path, HONEST.replace("    return weight", "    seen.append(x)\n    return weight") + "\nseen = []\n"
    )
    ((kernel, op),) = select([f"{file}:scaled/torch:theirs"])
    function = load.function(kernel, op, None)
    x, weight = torch.ones(3, 5), torch.arange(5.0)
    assert torch.equal(function(x, weight), x * weight * 2)
    (seen,) = load.module(file).seen
    assert seen.is_meta and seen.shape == x.shape and seen.dtype == x.dtype


# Buffers


def made(count=16, kept=None):
    """Sets of an input `x`, a constant `w` and an output, of 40 elements in three variations."""
    x, w, out = (TensorSpec(name, "float32", (40,), (1,), 0, (1, 2, 3)) for name in ("x", "w", "out"))
    kernel = Kernel(address("op/torch"), None, prepare="p", prepares=("x", "w"))
    call = Call(kernel, "op", "", "fp32", "native", {}, (x, w), (out,), (), 0, {}, {})
    request = Time(call, Round("cpu", 5, 5, 1.0, 1, count * 480), "", 0, variations=3, changeable=("x", "w"))
    return Buffers(request, memoryview(b""), **({"kept": kept} if kept else {}))


@pytest.fixture
def drawn(monkeypatch):
    values = [torch.arange(40, dtype=torch.float32) + 100 * v for v in range(3)]
    monkeypatch.setattr("assay.worker.buffers._uploaded", lambda request, spec, v, memory: values[v])


class Doubling:
    """A kernel that keeps its weight twice as large, and notes what x was meanwhile."""

    constant = (False, True)

    def __init__(self, kernel):
        self.kernel, self.seen = kernel, []

    def prepared(self, inputs, named):
        self.seen.append(inputs[0].clone())
        return inputs[1] * 2

    def own(self, named):
        return named


def test_it_is_made_of_the_batchs_own_constants_before_other_inputs_are_new(drawn):
    buffers = made()
    sets = [((buffers.slabs["x"].tensor(i), buffers.slabs["w"].tensor(i)), {}) for i in range(16)]
    function = Doubling(Kernel(address("op/torch"), None, prepare="p", prepares=("x", "w")))
    buffers.preparation = Preparation(function, sets)
    given = [named["prepared"] for _, named in buffers.preparation.arguments()]
    where = [t.data_ptr() for t in given]
    for _ in range(3):
        old = [x.clone() for (x, _), _ in sets]
        function.seen.clear()
        buffers.plan(14, 4, (14, 16), (0, 14), lead=3)
        buffers.refresh()
        used = [14, 15, 0, 1, 11, 12, 13]
        assert buffers.turn.used == tuple(used), "those of the batch, then those that lead it"
        for index, seen in zip(used, function.seen, strict=True):
            (x, w), _ = sets[index]
            assert torch.equal(given[index], w * 2)
            assert torch.equal(seen, old[index]) and not torch.equal(x, old[index])
    assert [t.data_ptr() for t in given] == where, "a graph reads them where they were"


def test_what_is_kept_counts_as_memory_and_less_than_was_read_is_less_cold(drawn):
    assert made().count == 16
    assert made(kept=Kept(160, 160)).count == 12, "160 bytes more beside each 480"
    assert Kept(1000, 160).least_read(480) == 480
    assert Kept(40, 160).least_read(480) == 360
    assert Kept().least_read(480) == 480


def test_only_tensors_can_be_prepared(drawn):
    buffers = made()
    function = Doubling(Kernel(address("op/torch"), None, prepare="p", prepares=("x", "w")))
    function.prepared = lambda inputs, named: 3
    with pytest.raises(TypeError, match="p returned int, expected a tensor"):
        Preparation(function, [((buffers.slabs["x"].tensor(0), buffers.slabs["w"].tensor(0)), {})])
