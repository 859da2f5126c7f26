"""Kernels go into a model and out again, where the rules say; nothing remains, and the report says what was done."""

import copy
import pickle
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import architectures
import assay
from assay.errors import UsageError
from assay.models.swap import State
from operators import within
from swapping import everything, rules_for, run, seeded, sites  # noqa: F401

ROOT = Path(__file__).parents[2]

# In and out.


@pytest.mark.parametrize("backend", ["torch", "njit"])
@pytest.mark.parametrize("build", architectures.ALL, ids=lambda b: b.__name__)
def test_swap_and_undo_leave_a_model_bit_identical(build, backend):
    model, inputs = build()
    rules = rules_for(model, backend)
    oracle = run(copy.deepcopy(model).double(), [i.double() if i.is_floating_point() else i for i in inputs])
    plain = run(model, inputs)
    before = everything(model)
    with assay.swap(model, rules) as report:
        modules = [(path, id(m)) for path, m in model.named_modules(remove_duplicate=False)]
        assert modules == [(path, identity) for path, identity, _ in before["modules"]]
        mine = run(model, inputs)
    replaced = [s for s in report.sites if s.state is not State.LEFT]
    assert {s.op for s in replaced} == set(rules)
    assert all(s.calls >= 1 and not s.fallbacks for s in replaced)
    within(mine, plain, oracle)
    if build is architectures.odd:
        model.calls -= 1  # a buffer in which the model itself counts
    assert everything(model) == before
    assert torch.equal(run(model, inputs), plain)


def test_an_exception_inside_still_restores():
    model, inputs = architectures.cnn()
    before = everything(model)
    with pytest.raises(ZeroDivisionError), assay.swap(model, {"gelu": "gelu/torch"}):
        run(model, inputs)
        raise ZeroDivisionError
    assert everything(model) == before


def test_swaps_nest_and_repeat_and_are_undone_from_the_inside():
    model, inputs = architectures.cnn()
    before, plain = everything(model), run(model, inputs)
    outer = assay.swap(model, {"gelu": "gelu/njit"})
    between = everything(model)
    with assay.swap(model, {"gelu": "gelu/torch", "4": None}) as inner:
        run(model, inputs)
        with pytest.raises(assay.AssayError, match="undo that first"):
            outer.undo()
        assert outer.active
    assert everything(model) == between
    assert [s.calls for s in inner.sites if s.op == "gelu"] == [0, 1]
    assert [s.calls for s in outer.sites if s.op == "gelu"] == [1, 0]  # what the inner one leaves is the outer one's
    for _ in range(3):
        with assay.swap(model, {"layernorm+gelu": "ln_gelu/njit", "silu": "silu/njit"}):
            run(model, inputs)
    outer.undo()
    outer.undo()
    assert everything(model) == before and torch.equal(run(model, inputs), plain)


def test_swaps_that_do_not_touch_are_undone_in_any_order():
    model, _ = architectures.cnn()
    before = everything(model)
    first, second = assay.swap(model, {"gelu": "gelu/torch"}), assay.swap(model, {"silu": "silu/torch"})
    first.undo()
    second.undo()
    assert everything(model) == before


def test_a_copy_a_pickle_and_a_replica_of_a_swapped_model_are_their_own():
    model = nn.Sequential(nn.LayerNorm(8), nn.GELU())
    x = torch.randn(3, 8)
    with assay.swap(model, {"layernorm": "layernorm/njit", "gelu": "gelu/njit"}) as report:
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert [type(m) for m in other] == [nn.LayerNorm, nn.GELU]
            assert vars(other[1]).keys() == vars(nn.GELU()).keys()
        replica = model[0]._replicate_for_data_parallel()  # what nn.DataParallel makes for each device
        replica._parameters = {"weight": torch.full((8,), 3.0), "bias": None}
        out = replica.forward(x)
    torch.testing.assert_close(out, 3 * F.layer_norm(x, (8,)))
    assert report.sites[0].calls == 1


# Rules.


def test_the_more_specific_rule_wins():
    block = lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU())  # noqa: E731
    model = nn.ModuleDict({"a": nn.Sequential(block(), block(), block()), "b": block()})
    rules = {"a.1.1": "gelu/njit:fastmath", "a.*": "gelu/njit", "gelu": "gelu/torch", "a.2:gelu": None}
    with assay.swap(model, rules) as report:
        chosen = {s.path: (s.kernel, s.rule, s.why) for s in report.sites if s.op == "gelu"}
    assert chosen == {
        "a.0.1": ("gelu/njit", "a.*", ""),
        "a.1.1": ("gelu/njit:fastmath", "a.1.1", ""),
        "a.2.1": ("", "a.2:gelu", "a rule leaves it alone"),
        "b.1": ("gelu/torch", "gelu", ""),
    }


def test_an_ops_name_finds_the_first_kernel_of_the_documented_order():
    from assay.models.operators.choice import BEST

    model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Conv2d(1, 1, 3))
    with assay.swap(model, {"gelu": "gelu", "conv2d": "conv2d"}) as report:
        kernels = {s.op: s.kernel for s in report.sites if s.kernel}
    assert BEST["cpu"] == ("njit", "torch")
    assert kernels == {"gelu": "gelu/njit", "conv2d": "conv2d/torch"}  # nobody wrote conv2d/njit


def test_another_path_to_a_shared_module_names_it_too():
    model, _ = architectures.odd()
    with assay.swap(model, {"again.act": "gelu/njit"}) as report:
        assert sites(report)["act", "gelu", "module"].kernel == "gelu/njit"


def test_a_kernel_in_a_users_file_is_swapped_in(write):
    file = write(
        "mine.py",
        """
        import torch
        from assay import kernel

        @kernel("gelu")
        def mine(x, *, out):
            out.copy_(x + 1)
    """,
    )
    model, x = nn.Sequential(nn.GELU()), torch.randn(4)
    with assay.swap(model, {"gelu": str(file)}) as report:
        assert torch.equal(model(x), x + 1)
    assert report.sites[0].kernel == "gelu/torch:mine"


WRONG = [
    ({}, "nothing to swap"),
    ({"rmsnorm": "rmsnorm/torch"}, r"matches nothing(.|\n)*conv2d ×3"),
    ({"gelo": "gelu/torch"}, r"no module 'gelo'(.|\n)*did you mean gelu"),
    ({"99": "gelu/torch"}, "no module '99'"),
    ({"99.*:gelu": "gelu/torch"}, r"no module '99\.\*'"),
    ({"7": "gelu/torch"}, "matches nothing"),
    ({"gelu": "gelu/tritn"}, r"no kernel called(.|\n)*gelu/triton"),
    ({"gelu": "golu"}, r"no op called(.|\n)*gelu"),
    ({"gelu": "gelu/cuda"}, r"cannot run here: no GPU(.|\n)*a machine with an NVIDIA GPU"),
    ({"gelu": "gelu/triton"}, r"cannot run here: no GPU(.|\n)*a machine with an NVIDIA GPU"),
    ({"gelu": "silu/torch"}, "silu/torch computes silu, not gelu"),
    ({"6": "gelu/torch"}, "6 computes gelu_tanh, gelu/torch computes gelu"),
    ({"transpose": "transpose/torch"}, "no module or function is known to compute transpose"),
    ({"gelu+layernorm": "ln_gelu/torch"}, "no module or function is known to compute gelu\\+layernorm"),
    ({"layernorm+gelu": "gelu/torch"}, "gelu/torch computes gelu"),
    ({"linear": "gelu/torch"}, "computes gelu, not linear"),
]


@pytest.mark.skipif(assay.host.runs_on_gpu(), reason="kernels for the GPU can run here")
@pytest.mark.parametrize(("rules", "message"), WRONG, ids=[str(r) for r, _ in WRONG])
def test_a_wrong_rule_is_an_error_that_helps_and_changes_nothing(rules, message):
    model, _ = architectures.cnn()
    before = everything(model)
    with pytest.raises(UsageError, match=message) as caught:
        assay.swap(model, {"silu": "silu/torch"} | rules if rules else {})
    assert caught.value.fix
    assert everything(model) == before


def test_a_site_of_another_function_is_left_and_said_so():
    model, inputs = architectures.cnn()
    with assay.swap(model, {"gelu": "gelu/torch"}) as report:
        run(model, inputs)
    left = sites(report)["6", "gelu_tanh", "module"]
    assert (left.state, left.why, left.rule) == (State.LEFT, "computes gelu_tanh, not gelu", "gelu")


# The report.


def test_the_report_reads_well_and_is_data():
    model, inputs = architectures.cnn()
    with assay.swap(model, {"gelu": "gelu/torch", "conv2d": "conv2d/torch"}) as report:
        run(model, inputs)
        run(model, inputs)
    text = str(report)
    assert text.splitlines()[0] == "swap in Sequential: 4 replaced, 2 left (undone)"
    assert re.search(r"^4 +gelu +module +gelu/torch +gelu_backward/torch +2 +replaced$", text, re.MULTILINE)
    assert re.search(r"^3 +conv2d +module +left: 2 groups$", text, re.MULTILINE)
    assert "no rule names: layernorm ×1, linear ×2, silu ×1, softmax ×1" in text
    told = report.to_dict()
    assert told["rules"] == {"gelu": "gelu/torch", "conv2d": "conv2d/torch"} and not told["active"]
    assert [s["path"] for s in told["sites"] if s["state"] == "replaced"] == ["0", "4", "5", "10"]


def test_a_rule_about_functional_calls_that_never_came_is_told():
    model = architectures.Functional()
    with assay.swap(model, {"silu": "silu/njit", "own:gelu": "gelu/njit"}) as report:
        assert "rule 'silu': no call of it was seen yet" in str(report)
        model(torch.randn(2, 8))
    assert "rule 'silu'" not in str(report) and "rule 'own:gelu': no call of it was seen yet" in str(report)


def test_every_example_of_the_document_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "swap.md").read_text()
    blocks = re.findall(r"^```python run\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    space = {}
    for block in blocks:
        exec(compile(block, "docs/swap.md", "exec"), space)
    assert len(blocks) >= 5


def test_a_language_is_short_for_the_kernel_of_the_rules_op():
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8))
    x = torch.randn(3, 8)
    with assay.swap(model, {"gelu": "njit", "layernorm": "torch"}) as report:
        model(x)
    assert {site.kernel for site in report.sites} - {""} == {"gelu/njit", "layernorm/torch"}


def test_rules_that_are_no_dict_are_wrong_use():
    with pytest.raises(UsageError, match="the rules are a list") as refused:
        assay.swap(nn.GELU(), ["gelu", "gelu/njit"])
    assert '{"gelu": "gelu/triton"}' in refused.value.fix
