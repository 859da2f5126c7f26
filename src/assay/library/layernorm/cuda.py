"""LayerNorm in CUDA C++: rows kept in registers by groups of threads, in 16-byte vectors where aligned."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, power_of_2, vector_width
from assay.library.rows import norm_backward, rings, whole_cluster, whole_parts, whole_row

source, backward = Source("kernel.cu"), Source("backward.cu")


def split(x, tensors, keep, threads, vectors, scalars):
    """How a row is shared: elements per vector, threads per row, vectors each keeps in registers: `keep`, or
    more once all `threads` are busy, up to `vectors` (or `scalars` where not aligned); beyond that none."""
    cols = x.shape[1]
    width = vector_width(x, *(t for t in tensors if t is not None))
    width = width if cols % width == 0 and x.stride(0) % width == 0 else 1
    group = min(threads, power_of_2(cdiv(cols // width, keep)))
    kept = cdiv(cols // width, group)
    return width, group, kept if kept <= (vectors if width > 1 else scalars) else 0


@kernel(
    "layernorm",
    scratch={"seen": ("fp32", 8192)},
    tune={"keep": [1, 2, 4, 8]},
    expects={"spills": 16, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def layernorm(x, weight, bias, *, eps, out, seen, mean=None, rstd=None, keep=4, longest=32768, cluster=0, vectors=0):
    rows, cols = x.shape
    if cols <= longest and (whole := whole_row(x, weight, bias, out, keep=keep)):
        group, kept = whole
        threads = group if group > 32 else 128 if kept > 3 else 256
        source[f"layernorm_whole<{ctype(x)}, {group}, {kept}, {threads}>"](
            cdiv(rows, threads // group), threads, x, weight, bias, out, mean, rstd, rows, x.stride(0), eps
        )
        return
    if whole := whole_cluster(x, weight, bias, out, cluster=cluster, vectors=vectors):
        blocks, threads, kept = whole
        source[f"layernorm_whole<{ctype(x)}, {threads}, {kept}, {threads}, {blocks}>"](
            rows * blocks, threads, x, weight, bias, out, mean, rstd, rows, x.stride(0), eps, cluster=blocks
        )
        return
    if cols > longest and (parts := whole_parts(x, weight, bias, out)):
        source[f"layernorm_parts_read<{ctype(x)}>"](rows * parts, 256, x, seen, x.stride(0), parts)
        source[f"layernorm_parts_write<{ctype(x)}>"](
            rows * parts, 256, x, weight, bias, out, mean, rstd, seen, x.stride(0), parts, eps
        )
        return
    width, group, kept = split(x, (weight, bias, out), keep, threads=1024, vectors=8, scalars=32)
    threads = max(128, group)
    source[f"layernorm<{ctype(x)}, {width}, {group}, {kept}>"](
        cdiv(rows, threads // group), threads, x, weight, bias, out, mean, rstd, rows, cols, x.stride(0), eps
    )


@kernel(
    "layernorm_backward",
    tune={"vectors": [0, 2, 4], "stages": [3, 4, 6], "blocks": [128, 132]},
    scratch={"dw_parts": ("fp32", 256, "cols"), "db_parts": ("fp32", 256, "cols")},
    expects={
        "of": "layernorm_backward",
        "spills": 0,
        "widest_global_load": 128,
        "widest_global_store": 128,
        "max_registers": 128,
    },
)
def layernorm_backward(
    dy, x, weight, mean, rstd, *, out, dw_parts, db_parts, dweight=None, dbias=None, vectors=0, stages=4, blocks=132
):
    (rows, cols), T = x.shape, ctype(x)
    sums = dweight is not None or dbias is not None
    kept = (vectors,) if vectors else (2, 4)
    if sums and (whole := rings(x, dy, weight, out, dw_parts, db_parts, kept=kept, stages=stages)):
        inputs, parts, gradients = (dy, x, weight, mean, rstd), (dw_parts, db_parts), (dweight, dbias)
        norm_backward(backward, "layernorm_backward_whole", whole, inputs, out, parts, gradients, blocks)
        return
    width, group, kept = split(x, (dy, weight, out), 4, threads=512, vectors=4, scalars=16)
    threads = max(256, group)
    groups = threads // group
    args = dy, x, weight, mean, rstd, out, dw_parts, db_parts, rows, cols
    if sums and kept:
        parts = max(1, min(256, cdiv(rows, groups)))
        shared = 8 * cols if groups > 1 else 0
        backward[f"layernorm_backward<{T}, {width}, {group}, {kept}, true>"](parts, threads, *args, shared=shared)
    else:
        backward[f"layernorm_backward<{T}, {width}, {group}, {kept}, false>"](cdiv(rows, groups), threads, *args)
    if sums and not kept:
        parts = max(1, min(32, rows))
        backward[f"layernorm_backward_columns<{T}, {width}>"](
            (cdiv(cols, 128 * width), parts), 128, dy, x, mean, rstd, dw_parts, db_parts, rows, cols
        )
    for part, total in ((dw_parts, dweight), (db_parts, dbias)):
        if total is not None:
            backward[f"column_sums<{T}>"](cdiv(cols, 32), (32, 8), part, total, parts, cols)
