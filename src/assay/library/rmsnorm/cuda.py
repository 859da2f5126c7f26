"""RMSNorm in CUDA C++: short rows kept in registers by a warp or a block, longer rows read twice."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, power_of_2, vector_width
from assay.library.rows import whole_cluster, whole_parts, whole_row

source = Source("kernel.cu")


@kernel(
    "rmsnorm",
    scratch={"seen": ("fp32", 8192)},
    tune={
        "keep": [1, 2, 4, 8],
        "block": [64, 128, 192, 256, 384, 512],
        "resident": [512, 1024, 1280],
        "load": ["plain", "cs", "cg", "past_l1"],
        "store": ["plain", "cs", "cg"],
        "threads": [256, 512, 1024],
    },
    fits="(keep <= 4 or cols * itemsize > 2048) and (block == 256 or cols * itemsize <= 512 * keep)"
    " and (resident == 1024 or keep > 2) and (threads == 1024 or cols * itemsize > 65536)",
    expects={"spills": 16, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def rmsnorm(
    x, weight, *, eps, out, seen, keep=4, block=256, resident=1024, load="plain", store="plain",
    longest=32768, threads=1024, cluster=0, vectors=0,
):  # fmt: skip
    """A thread keeps `keep` vectors, up to 4 where 1024 threads would not hold the row otherwise. Rows that a warp
    holds come several to a `block`. Longer rows are held by the `cluster` blocks of a cluster, with `vectors` a thread;
    those that are not kept have `threads` each."""
    (rows, cols), stride, T = x.shape, x.stride(0), ctype(x)
    if cols <= longest and (whole := whole_row(x, weight, out, keep=keep)):
        group, kept = whole
        block = block if group == 32 else group
        source[f"rmsnorm_whole<{T}, {group}, {kept}, {block}, {resident}, {load}, {store}>"](
            cdiv(rows, block // group), block, x, weight, out, rows, stride, eps
        )
        return
    if whole := whole_cluster(x, weight, out, cluster=cluster, vectors=vectors):
        blocks, group, kept = whole
        source[f"rmsnorm_whole<{T}, {group}, {kept}, {group}, 1024, {load}, {store}, {blocks}>"](
            rows * blocks, group, x, weight, out, rows, stride, eps, cluster=blocks
        )
        return
    if cols > longest and (parts := whole_parts(x, weight, out)):
        source[f"rmsnorm_parts_read<{T}>"](rows * parts, 256, x, seen, stride, parts)
        source[f"rmsnorm_parts_write<{T}>"](rows * parts, 256, x, weight, out, seen, stride, parts, eps)
        return
    N = vector_width(x, out) if weight is None else vector_width(x, out, weight)
    N = N if cols % N == 0 and stride % N == 0 else 1
    vectors = cols // N
    if vectors <= 32 * 4:
        K = power_of_2(cdiv(vectors, 32))
        source[f"rmsnorm_kept<{T}, {N}, {K}, true>"](cdiv(rows, 4), (32, 4), x, weight, out, rows, cols, stride, eps)
    elif vectors <= 4 * 1024:
        K = max(keep, power_of_2(cdiv(vectors, 1024)))
        block = 32 * cdiv(vectors, 32 * K)
        source[f"rmsnorm_kept<{T}, {N}, {K}, false>"](rows, block, x, weight, out, rows, cols, stride, eps)
    else:
        source[f"rmsnorm_long<{T}, {N}>"](rows, threads, x, weight, out, cols, stride, eps)
