"""How the row operations in CUDA C++ share a row among threads."""

from assay.backends.cuda import vector_width


def whole_row(x, *tensors, keep):
    """Threads per row and vectors per thread where both come out even: a warp for up to `keep` vectors a lane, else a
    block of at most 512 threads. None where a tensor is absent or not aligned, or a rest would be left."""
    if any(t is None for t in tensors):
        return None
    width, cols = vector_width(x, *tensors), x.shape[1]
    if width == 1 or x.stride(0) % width or cols % (32 * width):
        return None
    vectors = cols // width
    if vectors <= 32 * keep:
        return 32, vectors // 32
    for kept in (keep, 4, 3, 2, 8):
        if vectors % (32 * kept) == 0 and vectors // kept <= 512:
            return vectors // kept, kept
    return None


def whole_parts(x, *tensors):
    """Into how many parts each of few long rows is cut, 256 threads with 4 vectors for each part, so that all
    multiprocessors have work. 0 for many rows, or where a tensor is absent or not aligned, or a rest would be left."""
    (rows, cols), width = x.shape, 1 if any(t is None for t in tensors) else vector_width(x, *tensors)
    if width == 1 or x.stride(0) % width or cols % (1024 * width):
        return 0
    parts = cols // (1024 * width)
    return parts if parts <= 256 and rows * parts <= 4096 else 0
