"""A swap that puts no kernel to work is said to have done so, with the reason and with what can be swapped, and nothing
is called a gain."""

from dataclasses import replace

import pytest

from assay.errors import UsageError
from assay.report.model_infer import parts
from assay.report.table import Note, Table, to_html, to_rich
from inference import QUICK, by, here, quick  # noqa: F401

MODELS = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Approximate(nn.GELU):
        def forward(self, x):
            return x * torch.sigmoid(1.702 * x)

    class Dead(nn.Module):
        def forward(self, x):
            return F.gelu(x) if self.training else x

    class Sometimes(nn.Module):
        def forward(self, x):
            return F.gelu(x) if len(x) > 2 else x

    def model(*after): return nn.Sequential(nn.Linear(16, 16), *after)
    def own_forward(): return model(Approximate(), nn.ReLU())
    def dead(): return model(Dead())
    class Columns(nn.Module):
        def forward(self, x):
            return F.softmax(x, 0)

    def functional(): return model(Columns(), nn.GELU())
    def columns(): return model(nn.Softmax(0), nn.GELU())
    def mixed(): return model(nn.Softmax(0), nn.GELU(), Approximate())
    def sometimes(): return model(Sometimes())
    def example(batch): return torch.randn(batch, 16)
"""


@pytest.fixture
def mine(write):
    return write("mine.py", MODELS)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("model", "says", "instead"),
    [
        ("own_forward", "gelu at 1: Approximate writes its own forward over GELU's", "the model calls relu"),
        ("dead", "rule 'gelu': the model made no such call", "no op that Assay has a kernel for"),
    ],
)
def test_rules_whose_sites_are_left_or_never_called_are_refused_before_anything_is_timed(mine, model, says, instead):
    with pytest.raises(UsageError, match="nothing was swapped") as refused:
        quick(f"{mine}:{model}", batches=(1, 4), swap={"gelu": "gelu/njit"})
    assert says in refused.value.what and instead in refused.value.fix


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("model", ["columns", "functional"])
def test_calls_that_the_kernel_cannot_take_are_one_statement_and_no_gain(mine, model):
    records = quick(f"{mine}:{model}", batches=(2, 4), swap={"softmax": "softmax/njit"})
    (swap,) = (r for r in records if r.evidence["variant"] == "swap")
    assert swap.status == "skipped" and swap.median is None and "speedup" not in swap.evidence
    assert swap.reason.startswith("nothing was swapped: softmax at 1: over dimension 0 of 2, not the last; ")
    assert "the model calls gelu" in swap.reason
    shown = list(parts(records))
    names = [list(to_rich(table).columns[0].cells) for table in shown if isinstance(table, Table)]
    assert names and not any("swap" in cells for cells in names)
    assert [part.text for part in shown if isinstance(part, Note) and "swap" in part.text] == [f"– swap: {swap.reason}"]


@pytest.mark.usefixtures("here")
def test_sites_that_pytorch_computes_are_a_table_with_the_reasons(mine):
    """Beside kernels that ran: otherwise a gain seems to be that of all kernels that were named."""
    swap = {"softmax": "softmax/njit", "gelu": "gelu/njit"}
    records = quick(f"{mine}:mixed", batches=(4,), swap=swap)
    record = by(records, variant="swap", batch=4)
    (table,) = (p for p in parts([record]) if isinstance(p, Table) and "computed by PyTorch" in p.title)
    told = [[str(cell) for cell in column.cells] for column in to_rich(table).columns]
    assert told[0] == ["1", "3"] and told[1] == ["softmax", "gelu"], "the sites that the kernels compute are not in it"
    assert told[2][0] == "softmax/njit" and told[3] == ["every call", "every call"]
    assert "over dimension 0 of 2, not the last" in told[4][0] and "Approximate writes its own forward" in told[4][1]
    assert "over dimension 0 of 2, not the last" in to_html(table)
    notes = [p.text for p in parts([record]) if isinstance(p, Note)]
    assert any("left as they are: linear" in text and "gelu" not in text for text in notes), notes


@pytest.mark.usefixtures("here")
def test_a_model_that_was_never_run_is_not_said_to_make_no_call(mine):
    effort = replace(QUICK, budget=1e-9)
    records = quick(f"{mine}:sometimes", batches=(4,), swap={"gelu": "gelu/njit"}, effort=effort)
    assert {r.status for r in records} == {"skipped"} and all("more than --budget" in r.reason for r in records)


@pytest.mark.usefixtures("here")
def test_a_batch_at_which_no_kernel_ran_is_left_out_and_the_others_are_timed(mine):
    records = quick(f"{mine}:sometimes", batches=(1, 4), swap={"gelu": "gelu/njit"})
    one, four = (by(records, variant="swap", batch=batch) for batch in (1, 4))
    assert one.status == "skipped" and one.median is None and "gelu at 1: it was not called" in one.reason
    assert four.status == "pass" and four.evidence["speedup"]
