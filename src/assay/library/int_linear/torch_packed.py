"""PyTorch's own products with packed weights, peers: the int4 kernel that torchao calls (tinygemm), and the int8 one.
Each wants the weight in an order of its own, into which it is brought once."""

import torch

from assay import kernel
from assay.errors import Unsupported

TILES = 8
"""Of 16 columns, side by side in tinygemm's order: torchao's choice."""

UNALIGNED = "PyTorch's int8 product crashes on rows that are not aligned"


def refuse_unless(possible, what):
    if not possible:
        raise Unsupported(what)


def refuse_where_missing(operator, device):
    known = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{operator}", device.type.upper())
    refuse_unless(known, f"PyTorch {torch.__version__} has no {operator} for {device.type}")


# tinygemm's weight is (code − 8) · scale + zero. With zeros of 0 that is ours, for codes as they are stored.
def in_tiles(x, codes, scales, bias, *, bits, group):
    (m, k), n, device = x.shape, scales.shape[0], codes.device
    gpu = device.type == "cuda"
    refuse_unless(bits == 4, "PyTorch's int4 product takes codes of 4 bits")
    refuse_unless(group in (32, 64, 128, 256), "PyTorch's int4 product takes groups of 32, 64, 128 or 256")
    refuse_unless(m and n and k and k % group == 0, "PyTorch's int4 product takes whole groups, and no empty tensors")
    if gpu:
        refuse_where_missing("_weight_int4pack_mm", device)
        refuse_unless(x.dtype == torch.bfloat16, "PyTorch's int4 product takes bf16 alone on a GPU")
        refuse_unless(n % 8 == 0 and k % (16 * TILES) == 0, "PyTorch's int4 product takes tiles of 8 × 128 on a GPU")
        packed = torch.ops.aten._convert_weight_to_int4pack(codes << 4 | codes >> 4, TILES)
    else:
        refuse_where_missing("_weight_int4pack_mm_for_cpu", device)
        refuse_unless(n % 16 == 0, "PyTorch's int4 product takes multiples of 16 rows on a CPU")
        stored = torch.stack((codes & 15, codes >> 4), -1).flatten(1)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(stored.int(), TILES)
    scale = scales.to(x.dtype).t()
    return packed, torch.stack((scale, torch.zeros_like(scale)), -1)


@kernel("int_linear", variant="int4pack", needs="torch", returns=True, prepare="in_tiles")
def int4pack(x, codes, scales, bias, *, group, prepared):
    multiply = torch.ops.aten._weight_int4pack_mm if x.is_cuda else torch.ops.aten._weight_int4pack_mm_for_cpu
    out = multiply(x, prepared[0], group, prepared[1])
    return out if bias is None else out.add_(bias)


def signed(x, codes, scales, bias, *, bits, group):
    (m, k), n = x.shape, scales.shape[0]
    refuse_unless(bits == 8, "PyTorch's int8 product takes codes of 8 bits")
    refuse_unless(m and n and k and group >= k, "PyTorch's int8 product takes one scale a row, and no empty tensors")
    refuse_unless(k % 16 == 0, UNALIGNED)
    refuse_where_missing("_weight_int8pack_mm", codes.device)
    return (codes ^ 128).view(torch.int8), scales[:, 0].to(x.dtype)


@kernel("int_linear", variant="int8pack", needs="torch", returns=True, prepare="signed")
def int8pack(x, codes, scales, bias, *, prepared):
    refuse_unless(x.data_ptr() % 32 == 0, UNALIGNED)
    out = torch.ops.aten._weight_int8pack_mm(x, *prepared)
    return out if bias is None else out.add_(bias)
