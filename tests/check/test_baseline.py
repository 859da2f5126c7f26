"""PyTorch's error is the measure of a kernel's only where PyTorch is right."""

import pytest
import torch

import assay
from assay.catalog.library import find_op
from assay.check.oracle import Oracle
from assay.check.plain import FAR, _largest_error, _rounds_between

# A reference that the vendor's library computes wrongly, as oneDNN does some bf16 convolutions on processors with AMX.
SOURCE = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={{"n": Axis(typical=64)}}, inputs={{"x": Tensor("n")}}, outputs={{"out": Tensor("n")}})
def tripled(x):
    y = x * 3
    library = torch.backends.cudnn if x.is_cuda else torch.backends.mkldnn
    if x.dtype == torch.bfloat16 and library.enabled:
        y = y + 1000 * x.sign()
    elif x.dtype == torch.bfloat16:
        {otherwise}
    return y

@kernel("tripled", backend="torch")
def right(x, *, out):
    torch.mul(x, 3, out=out)

@kernel("tripled", backend="torch", variant="a_third_too_large")
def wrong(x, *, out):
    torch.mul(x, 4, out=out)
"""


def checked(folder, otherwise):
    file = folder / "tripled.py"
    file.write_text(SOURCE.format(otherwise=otherwise))
    return {r.variant: r for r in assay.check(file, dtypes="bf16", workloads=4)}


def test_a_wrong_result_of_a_vendor_s_library_excuses_no_kernel(tmp_path):
    records = checked(tmp_path, "pass")
    assert records["right"].status == "pass", records["right"].reason
    assert records["a_third_too_large"].failed and "values" in records["a_third_too_large"].reason


def test_the_record_says_where_pytorch_is_wrong(tmp_path):
    record = checked(tmp_path, "pass")["right"]
    library = "oneDNN" if record.evidence["device"] == "cpu" else "cuDNN"
    count = record.evidence["workloads"]
    assert {k: len(v) for k, v in record.evidence["torch_wrong"].items()} == {library: count}
    assert f"on {count} PyTorch itself is wrong with {library}" in record.reason


@pytest.mark.slow
def test_where_pytorch_has_no_other_way_no_kernel_is_called_right(tmp_path):
    for record in checked(tmp_path, "raise NotImplementedError").values():
        assert record.status == "inconclusive" and "no power here" in record.reason


NEIGHBOURS = """
import torch
from assay import Axis, Tensor, kernel, op

@op(axes={"n": Axis(min=2, typical=64)}, inputs={"x": Tensor("n")}, outputs={"out": Tensor("n")},
    magnitude=lambda x: 2 * x.abs())
def doubled(x):
    y = 2 * x
    if x.dtype == torch.bfloat16 and torch.backends.mkldnn.enabled and not x.is_cuda:
        y[:-1] += 0 * x[1:]  # a NaN spoils what stands before it
    return y

@kernel("doubled", backend="torch", variant="as_written")
def mine(x, *, out):
    out.copy_(doubled.reference(x))

@kernel("doubled", backend="torch", variant="of_a_peer", needs="torch")
def peer(x, *, out):
    out.copy_(doubled.reference(x))
"""
"""As oneDNN's products in bf16 on processors with AMX: what is not finite spoils its neighbour."""


def test_where_pytorch_itself_is_wrong_a_peer_is_not_to_blame(tmp_path):
    file = tmp_path / "doubled.py"
    file.write_text(NEIGHBOURS)
    records = {r.variant: r for r in assay.check(file, dtypes="bf16")}
    if next(iter(records.values())).evidence["device"] != "cpu":
        pytest.skip("plain PyTorch runs on the GPU here")
    own, peer = records["as_written"], records["of_a_peer"]
    assert own.failed and own.detector == "nonfinite" and "PyTorch itself is wrong with oneDNN" in own.reason
    assert peer.status == "inconclusive" and "PyTorch itself is wrong with oneDNN" in peer.reason


@pytest.mark.parametrize(("off", "usual"), [(0.9, True), (1.1, False)])
@pytest.mark.parametrize("number", [torch.bfloat16, torch.float16])
def test_sums_that_were_rounded_before_a_bias_was_added_are_not_called_wrong(number, off, usual):
    step = torch.finfo(number).eps  # of the sums, which are about 1; the results are much smaller
    exact, magnitude = torch.full((64,), step / 8, dtype=torch.float64), torch.ones(64, dtype=torch.float64)
    truth = Oracle({"out": exact}, {"out": magnitude})
    answer = {"out": (exact + off * step).to(number)}
    assert _largest_error(truth, answer) > FAR
    assert _rounds_between(truth, answer) == usual


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_convolution_one_wide_is_right_on_every_processor(stride, dtype):
    x, weight = torch.randn(2, 3, 307, 3).to(dtype), torch.randn(5, 3, 2, 3).to(dtype)
    bias = torch.randn(5).to(dtype)
    got = find_op("conv2d").reference(x, weight, bias, stride=stride, padding=0)
    right = torch.nn.functional.conv2d(x.double(), weight.double(), bias.double(), stride=stride)
    assert got.shape == right.shape == (2, 5, 153 if stride == 2 else 102, 1)
    torch.testing.assert_close(got.double(), right, rtol=0.01, atol=0.02)
