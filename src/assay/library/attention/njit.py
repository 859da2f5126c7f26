"""Attention in Numba on the CPU, one thread: a query's scores in a row of their own, then the mean of the values."""

import math

import numpy as np
from numba import njit, prange

from assay import kernel
from assay.backends.njit import arrays, load, store


def loop(q, k, v, out, causal):
    batch, heads, queries, dim = q.shape
    keys, scale = k.shape[2], np.float32(1 / math.sqrt(dim))
    for head in prange(batch * heads):
        at = head // heads, head % heads
        wide_k, wide_v = np.empty((keys, dim), np.float32), np.empty((keys, dim), np.float32)
        for j in range(keys):
            for d in range(dim):
                wide_k[j, d], wide_v[j, d] = load(k, (*at, j, d)), load(v, (*at, j, d))
        query, weights, mean = np.empty(dim, np.float32), np.empty(keys, np.float32), np.empty(dim, np.float64)
        for i in range(queries):
            for d in range(dim):
                query[d] = load(q, (*at, i, d))
            seen = min(i + 1, keys) if causal else keys
            top = np.float32(-np.inf)
            for j in range(seen):
                score = np.float32(0)
                for d in range(dim):
                    score += query[d] * wide_k[j, d]
                weights[j] = score * scale
                top = max(top, weights[j])
            total = 0.0  # float64, like the mean: sums over many keys would lose bits in float32
            mean[:] = 0.0
            for j in range(seen):
                weight = np.float32(math.exp(weights[j] - top))
                total += weight
                for d in range(dim):
                    mean[d] += weight * wide_v[j, d]
            for d in range(dim):
                store(out, (*at, i, d), np.float32(mean[d] / total))


# Products may be added in any order, several at a time.
_attention = njit(fastmath={"reassoc", "contract", "nsz"})(loop)


@kernel("attention")
def attention(q, k, v, *, causal, out):
    _attention(*arrays(q, k, v, out), causal)
