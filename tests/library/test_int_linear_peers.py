"""int_linear's peers compute the same layer: exactly in fp32, and in 16 bits up to the rounding of the weight that they
keep."""

import pytest
import torch

from assay import inputs
from assay.catalog import library
from assay.check.judge import Finding, Measures, judge
from assay.check.oracle import oracle
from assay.errors import Unsupported
from assay.library.int_linear import torch_packed
from assay.library.int_linear.op import dequantized
from assay.worker import load
from assay.workload import Workload

OP = library.find_op("int_linear")
PEERS = {k.name: k for k in library.kernels() if k.address.op == "int_linear" and k.prepare}
DEQUANTIZED = "int_linear/torch:dequantized"
WORKLOADS = [
    (DEQUANTIZED, "m=3,n=5,k=37,bits=4,group=24"),
    (DEQUANTIZED, "m=1,n=16,k=256,bits=8,group=128"),
    ("int_linear/torch:int4pack", "m=3,n=48,k=256,bits=4,group=64"),
    ("int_linear/torch:int4pack", "m=1,n=16,k=128,bits=4,group=128,without=bias"),
    ("int_linear/torch:int8pack", "m=1,n=16,k=256,bits=8,group=65536"),
    ("int_linear/torch:int8pack", "m=3,n=5,k=48,bits=8,group=256,without=bias"),
]


def called(kernel, workload, drawn):
    function = load.function(kernel, OP, workload.dtype)
    named = {n: v for n, v in dict(workload.attributes).items() if n in kernel.asks}
    return function(*(drawn.get(n) for n in OP.inputs), **named)


def judged(kernel, workload, out=None):
    drawn = inputs.generate(workload)
    plain = {"out": OP.reference(*(drawn.get(n) for n in OP.inputs), **dict(workload.attributes))}
    out = called(kernel, workload, drawn) if out is None else out(drawn)
    return judge({"out": out}, Measures(oracle(workload, drawn), plain, {})).finding


@pytest.mark.parametrize("number", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(("name", "shape"), WORKLOADS)
def test_a_peer_computes_the_layer(name, shape, number, one_thread):
    finding = judged(PEERS[name], Workload.of(OP, f"{shape},dtype={number}"))
    assert finding is None or (number != "fp32" and finding.excused_in(PEERS[name])), finding


def test_all_of_them_are_peers_of_this_pytorch():
    assert PEERS.keys() == {name for name, _ in WORKLOADS} and {k.needs for k in PEERS.values()} == {"torch"}


@pytest.mark.parametrize("bits", [4, 8])
def test_a_weight_rounded_to_the_format_is_less_accurate_and_anything_worse_is_wrong(bits, one_thread):
    """At the depth of a large layer, whose sums cancel."""
    workload = Workload.of(OP, f"m=1,n=256,k=8192,bits={bits},dtype=bf16,without=bias")
    drawn = inputs.generate(workload)
    weight = dequantized(drawn["codes"], drawn["scales"].float(), bits, 128, 8192)
    right = drawn["x"].float() @ weight.t()
    measures = Measures(oracle(workload, drawn), {"out": right.bfloat16()}, {})

    def finding(weight):
        out = (drawn["x"].float() @ weight.t()).bfloat16()
        return judge({"out": out}, measures, orders=False).finding

    assert finding(weight) is None
    rounded = finding(weight.bfloat16().float())
    assert rounded.as_rounded and rounded.share > 1
    for wrong in (
        weight * 0,
        weight.roll(1, 0),
        weight.unflatten(1, (-1, 2)).flip(2).flatten(1),  # nibbles in the other order
        weight * 1.25,
    ):
        assert not finding(wrong).as_rounded


def test_only_peers_are_excused_for_rounding_weights_or_sums():
    off = Finding("values", "", share=100.0, as_rounded=True)
    kernels = {k.name: k for k in library.kernels()}
    peers = (DEQUANTIZED, "int_linear/inductor", "conv2d/torch")  # the last is the reference, as PyTorch computes it
    assert all(off.excused_in(kernels[name]) for name in peers)
    ours = ("int_linear/cuda", "int_linear/triton", "softmax/njit")
    assert not any(off.excused_in(kernels[name]) for name in ours)


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("int4pack", "m=1,n=16,k=128,bits=8,group=128", "codes of 4 bits"),
        ("int4pack", "m=1,n=16,k=128,bits=4,group=16", "groups of 32, 64, 128 or 256"),
        ("int4pack", "m=1,n=16,k=100,bits=4,group=32", "whole groups"),
        ("int4pack", "m=0,n=16,k=128,bits=4,group=32", "no empty tensors"),
        ("int4pack", "m=1,n=17,k=128,bits=4,group=32", "multiples of 16 rows"),
        ("int8pack", "m=1,n=16,k=128,bits=4,group=128", "codes of 8 bits"),
        ("int8pack", "m=1,n=16,k=128,bits=8,group=64", "one scale a row"),
        ("int8pack", "m=1,n=16,k=33,bits=8,group=64", "not aligned"),
    ],
)
def test_what_a_peer_does_not_take_it_refuses_with_the_reason(name, shape, why):
    workload = Workload.of(OP, f"{shape},dtype=bf16")
    with pytest.raises(Unsupported, match=why):
        called(PEERS[f"int_linear/torch:{name}"], workload, inputs.generate(workload))


def test_an_operator_that_this_pytorch_does_not_have_is_named():
    with pytest.raises(Unsupported, match="has no _weight_int4pack_mm for cpu"):
        torch_packed.refuse_where_missing("_weight_int4pack_mm", torch.device("cpu"))


def test_tinygemm_takes_the_codes_of_a_gpu_with_the_first_in_the_upper_half(monkeypatch):
    """As torchao packs them; here the order of the tiles is left out."""
    seen = []
    monkeypatch.setattr(torch_packed, "refuse_where_missing", lambda operator, device: None)
    monkeypatch.setattr(torch.ops.aten, "_convert_weight_to_int4pack", lambda codes, tiles: seen.append(codes) or codes)
    stored = torch.randint(0, 16, (8, 128), dtype=torch.uint8)

    class OnGpu(torch.Tensor):
        device = torch.device("cuda")

    codes = (stored[:, ::2] | stored[:, 1::2] << 4).as_subclass(OnGpu)
    scales = torch.rand(8, 1).bfloat16()
    x = torch.empty(1, 128, dtype=torch.bfloat16, device="meta")
    _, scale_and_zero = torch_packed.in_tiles(x, codes, scales, None, bits=4, group=128)
    assert torch.equal(torch.Tensor(seen[0]), torch.Tensor(stored[:, ::2] << 4 | stored[:, 1::2]))
    assert scale_and_zero.shape == (1, 8, 2) and torch.equal(scale_and_zero[0, :, 0], scales[:, 0])
    assert not scale_and_zero[..., 1].any()
