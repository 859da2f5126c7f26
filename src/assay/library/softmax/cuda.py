"""Softmax in CUDA C++: short rows kept in registers, long rows online, few long rows cut among blocks."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype, power_of_2, vector_width
from assay.library.rows import whole_cluster, whole_row

source = Source("kernel.cu")


@kernel(
    "softmax",
    scratch={"seen": ("fp32", 2048)},
    tune={
        "keep": [1, 2, 4],
        "longest": [8192, 16384, 32768],
        "threads": [256, 512, 1024],
    },
    expects={"spills": 0, "widest_global_load": 128, "widest_global_store": 128, "max_registers": 64},
)
def softmax(x, *, out, seen, keep=4, longest=16384, threads=1024, cluster=0, vectors=0):
    """A thread keeps `keep` vectors, more if its block needs it to hold the row. Of longer rows each is held by the
    `cluster` blocks of a cluster, with `vectors` a thread, if it divides evenly; else few rows are cut."""
    (rows, cols), stride, T = x.shape, x.stride(0), ctype(x)
    if (cols <= longest or (rows > 128 and cols <= 32768)) and (whole := whole_row(x, out, keep=keep)):
        group, kept = whole
        block = 256 if group == 32 else group
        source[f"softmax_whole<{T}, {group}, {kept}, {block}>"](cdiv(rows, block // group), block, x, out, rows, stride)
        return
    if whole := whole_cluster(x, out, cluster=cluster, vectors=vectors):
        blocks, group, kept = whole
        source[f"softmax_whole<{T}, {group}, {kept}, {group}, {blocks}>"](
            rows * blocks, group, x, out, rows, stride, cluster=blocks
        )
        return
    N = vector_width(x, out)
    N = N if cols % N == 0 and stride % N == 0 else 1
    vectors = cols // N
    if vectors <= 32 * 4:
        K = power_of_2(cdiv(vectors, 32))
        source[f"softmax_kept<{T}, {N}, {K}, true>"](cdiv(rows, 4), (32, 4), x, out, rows, cols, stride)
    elif cols <= longest:
        K = max(keep, power_of_2(cdiv(vectors, 1024)))
        block = 32 * cdiv(vectors, 32 * K)
        source[f"softmax_kept<{T}, {N}, {K}, false>"](rows, block, x, out, rows, cols, stride)
    elif rows > 128:
        source[f"softmax_online<{T}, {N}>"](rows, threads, x, out, cols, stride)
    elif rows:
        # Fewer rows than a GPU has multiprocessors: up to 1024 blocks, each with at least 4 vectors a thread.
        part = cdiv(cols, min(1024 // rows, cdiv(cols, 4 * threads * N)))
        part = cdiv(part, N) * N
        parts = cdiv(cols, part)
        source[f"softmax_parts_read<{T}, {N}>"](rows * parts, threads, x, seen, cols, stride, parts, part)
        source[f"softmax_parts_write<{T}, {N}>"](rows * parts, threads, x, out, seen, cols, stride, parts, part)
