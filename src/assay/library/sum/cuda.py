"""The sum in CUDA C++, in two launches: as many blocks as stay resident leave a partial sum each, one adds them up."""

from assay import kernel
from assay.backends.cuda import Source, cdiv, ctype

source = Source("kernel.cu")


@kernel(
    "sum",
    scratch={"partial": ("fp32", 1056)},
    tune={"threads": [256, 512, 1024], "vectors": [2, 4, 8], "blocks": [132, 264, 528, 1056]},
    fits="132 * 512 <= threads * blocks <= 132 * 2048",
    expects={"spills": 0, "widest_global_load": 128, "max_registers": 40},
)
def sum(x, *, out, partial, threads=512, vectors=4, blocks=264):
    n, T = x.numel(), ctype(x)
    shares = min(cdiv(n, threads * vectors * (16 // x.element_size())), blocks)
    if shares <= 1:  # small or empty
        source[f"sums<{T}, {T}, {threads}, {vectors}>"](1, threads, x, out, n)
        return
    source[f"sums<{T}, float, {threads}, {vectors}>"](shares, threads, x, partial, n)
    source[f"sums<float, {T}, 256, 1>"](1, 256, partial, out, shares)
