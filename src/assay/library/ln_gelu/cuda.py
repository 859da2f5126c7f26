"""GELU of LayerNorm in CUDA C++: rows kept in registers by groups of threads, 16-byte vectors if aligned."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype
from assay.library.layernorm.cuda import split
from assay.library.rows import norm_backward, rings, whole_cluster, whole_parts, whole_row

source, backward = Source("kernel.cu"), Source("backward.cu")


@kernel(
    "ln_gelu",
    scratch={"seen": ("fp32", 8192)},
    tune={"keep": [1, 2, 4, 8]},
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def ln_gelu(x, weight, bias, *, eps, out, seen, keep=4, longest=32768, cluster=0, vectors=0):
    rows, cols = x.shape
    if cols <= longest and (whole := whole_row(x, weight, bias, out, keep=keep)):
        group, kept = whole
        threads = group if group > 32 else 128 if kept > 3 else 256
        source[f"ln_gelu_whole<{ctype(x)}, {group}, {kept}, {threads}>"](
            cdiv(rows, threads // group), threads, x, weight, bias, out, rows, x.stride(0), eps
        )
        return
    if whole := whole_cluster(x, weight, bias, out, cluster=cluster, vectors=vectors):
        blocks, threads, kept = whole
        source[f"ln_gelu_whole<{ctype(x)}, {threads}, {kept}, {threads}, {blocks}>"](
            rows * blocks, threads, x, weight, bias, out, rows, x.stride(0), eps, cluster=blocks
        )
        return
    if cols > longest and (parts := whole_parts(x, weight, bias, out)):
        source[f"ln_gelu_parts_read<{ctype(x)}>"](rows * parts, 256, x, seen, x.stride(0), parts)
        source[f"ln_gelu_parts_write<{ctype(x)}>"](
            rows * parts, 256, x, weight, bias, out, seen, x.stride(0), parts, eps
        )
        return
    width, group, kept = split(x, (weight, bias, out), keep, threads=1024, vectors=8, scalars=32)
    threads = max(128, group)
    source[f"ln_gelu<{ctype(x)}, {width}, {group}, {kept}>"](
        cdiv(rows, threads // group), threads, x, weight, bias, out, rows, cols, x.stride(0), eps
    )


@kernel(
    "ln_gelu_backward",
    tune={"vectors": [0, 2, 4], "stages": [3, 4, 6], "blocks": [128, 132]},
    scratch={"dw_parts": ("fp32", 256, "cols"), "db_parts": ("fp32", 256, "cols")},
    expects={
        "of": "ln_gelu_backward",
        "spills": 0,
        "widest_global_load": 128,
        "widest_global_store": 128,
        "max_registers": 255,
    },
)
def ln_gelu_backward(
    dy, x, weight, bias, mean, rstd, *, out, dw_parts, db_parts, dweight=None, dbias=None,
    vectors=0, stages=4, blocks=132,
):  # fmt: skip
    (rows, cols), T = x.shape, ctype(x)
    sums = dweight is not None or dbias is not None
    kept = (vectors,) if vectors else (4, 2)
    if sums and (whole := rings(x, dy, weight, bias, out, dw_parts, db_parts, kept=kept, stages=stages)):
        inputs, parts, gradients = (dy, x, weight, bias, mean, rstd), (dw_parts, db_parts), (dweight, dbias)
        norm_backward(backward, "ln_gelu_backward_whole", whole, inputs, out, parts, gradients, blocks)
        return
    width, group, kept = split(x, (dy, weight, bias, out), 2, threads=512, vectors=4, scalars=16)
    threads = max(256, group)
    groups = threads // group
    args = dy, x, weight, bias, mean, rstd, out, dw_parts, db_parts, rows, cols
    if sums and kept:
        parts = max(1, min(256, cdiv(rows, groups)))
        shared = 8 * cols if groups > 1 else 0
        backward[f"ln_gelu_backward<{T}, {width}, {group}, {kept}, true>"](parts, threads, *args, shared=shared)
    else:
        backward[f"ln_gelu_backward<{T}, {width}, {group}, {kept}, false>"](cdiv(rows, groups), threads, *args)
    if sums and not kept:
        parts = max(1, min(32, rows))
        backward[f"ln_gelu_backward_columns<{T}, {width}>"](
            (cdiv(cols, 128 * width), parts),
            128,
            dy,
            x,
            weight,
            bias,
            mean,
            rstd,
            dw_parts,
            db_parts,
            rows,
            cols,
        )
    for part, total in ((dw_parts, dweight), (db_parts, dbias)):
        if total is not None:
            backward[f"column_sums<{T}>"](cdiv(cols, 32), (32, 8), part, total, parts, cols)
