"""Scaled dot-product attention: every query takes a weighted mean of the values, by its similarity to the keys."""

import math

from assay import Attribute, Axis, Tensor, op


def seen(w):
    """Pairs of a query and a key that it sees, in one head: all, or if causal those with key ≤ query."""
    square = min(w.queries, w.keys)
    return square * (square + 1) // 2 + (w.queries - square) * w.keys if w.causal else w.queries * w.keys


def in_view(q, k, v, causal):
    """Keys and values without those that no query sees: there may be many more than queries."""
    return (k[..., : q.shape[-2], :], v[..., : q.shape[-2], :]) if causal else (k, v)


def scores(q, k, causal):
    s = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
    return s.masked_fill(s.new_ones(s.shape[-2:]).triu(1).bool(), -math.inf) if causal else s


def deviation(p, lost, v):
    # What a score loses is relative error of its weight. It moves the weighted sum of the values, and the sum of
    # weights that divides it. Each weight is off by itself, so that errors add up like deviations.
    off = (p * lost).square()
    return (off @ (v * v)).sqrt() + off.sum(-1, keepdim=True).sqrt() * (p @ v).abs()


def magnitude(q, k, v, *, causal):
    # A score rounds at the scale of its products, and so does its distance from the row's largest. At its own it rounds
    # three times: where q and k are scaled first, equal elements of them have equal errors, which do not cancel out.
    k, v = in_view(q, k, v, causal)
    s = scores(q, k, causal).clamp(min=-1e4)  # of what is masked, something finite
    products = ((q * q) @ (k * k).mT / q.shape[-1]).sqrt()
    return deviation(s.softmax(-1), 1 + products + 3 * s.abs() + s.amax(-1, keepdim=True) - s, v)


def half_magnitude(q, k, v, *, causal):
    # In 16 bits weights may be rounded to the format, and scores, before and after they are scaled. In the worst of
    # many elements these few errors are half as large again as in most.
    k, v = in_view(q, k, v, causal)
    s = scores(q, k, causal).clamp(min=-1e4)
    return 1.5 * deviation(s.softmax(-1), 1 + 2 * s.abs(), v)


@op(
    axes={
        "batch": Axis(min=1, typical=1, problems=True),
        "heads": Axis(min=1, typical=8, problems=True),
        "queries": Axis(min=1, typical=512),
        "keys": Axis(min=1, typical=512),
        "dim": Axis(min=1, max=256, typical=64),
    },
    attributes={"causal": Attribute(1, (0, 1))},
    inputs={
        # Narrow enough that fp16 holds a sum of 256 products before it is scaled. No NaN or Inf: whether a masked one
        # reaches the result depends on whether products that count nothing are computed.
        "q": Tensor("batch", "heads", "queries", "dim", range=(-8, 8), specials=()),
        "k": Tensor("batch", "heads", "keys", "dim", range=(-8, 8), specials=()),
        "v": Tensor("batch", "heads", "keys", "dim", specials=()),
    },
    outputs={"out": Tensor("batch", "heads", "queries", "dim")},
    independent="heads",
    aligned=True,  # PyTorch's fused kernels read 16 bytes at a time
    operations=lambda w: 4 * w.batch * w.heads * seen(w) * w.dim,
    magnitude=magnitude,
    half_magnitude=half_magnitude,
    roundings=4,  # an exponential within 2 ulps; the scale, the difference, the quotient, the product with v
    terms=lambda w: max(w.dim, w.keys),
)
def attention(q, k, v, *, causal):
    """softmax(q·kᵀ / √dim)·v in each head. Causal: query i sees the keys 0 to i alone."""
    k, v = in_view(q, k, v, causal)
    if q.element_size() > 2:
        return scores(q, k, causal).softmax(-1) @ v
    # In 16 bits, as fused kernels do it: scores in float32, weights rounded for the product with v.
    return scores(q.float(), k.float(), causal).softmax(-1).to(v.dtype) @ v
