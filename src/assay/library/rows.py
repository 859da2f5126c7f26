"""How the row operations in CUDA C++ share a row among threads."""

from typing import NamedTuple

from assay.backends.cuda import built_for, cdiv, ctype, vector_width


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


def whole_cluster(x, *tensors, cluster=0, vectors=0):
    """Blocks per row, threads per block and vectors per thread where a cluster holds a row that is too long for one
    block. None where a tensor is absent or not aligned, or a rest would be left, or the row is too long for that too,
    or the target has no clusters. `cluster` and `vectors` are chosen if they are 0 or leave a rest."""
    target = built_for().capability
    if target < (9, 0) or any(t is None for t in tensors):
        return None
    (rows, cols), width = x.shape, vector_width(x, *tensors)
    if width == 1 or x.stride(0) % width or cols % width:
        return None
    if cluster and vectors and (threads := _threads(cols // width, cluster, vectors)) and threads <= 1024:
        return cluster, threads, vectors
    # As few blocks as hold a row, but enough in all to keep every multiprocessor busy with several.
    most, found = 8 if target[0] == 12 else 16, None
    for blocks in (cluster,) if cluster else (1, 2, 4, 8, 16):
        for kept in (vectors,) if vectors else (8, 4, 6, 7, 5, 3):
            threads = _threads(cols // width, blocks, kept)
            if 128 <= threads <= 512 and blocks <= most:
                found = blocks, threads, kept
                if rows * blocks >= 1024:
                    return found
                break
    return found


def _threads(vectors, blocks, kept):
    """Threads of each block; 0 if they are no whole warps."""
    return vectors // (blocks * kept) if vectors % (blocks * kept * 32) == 0 else 0


def whole_parts(x, *tensors):
    """Into how many parts each of few long rows is cut, 256 threads with 4 vectors for each part, so that all
    multiprocessors have work. 0 for many rows, or where a tensor is absent or not aligned, or a rest would be left."""
    (rows, cols), width = x.shape, 1 if any(t is None for t in tensors) else vector_width(x, *tensors)
    if width == 1 or x.stride(0) % width or cols % (1024 * width):
        return 0
    parts = cols // (1024 * width)
    return parts if parts <= 256 and rows * parts <= 4096 else 0


class Rings(NamedTuple):
    """How norm_backward.cuh shares rows: a block is `groups` groups of `threads`, each with rows and a ring of `stages`
    rows of its own."""

    threads: int
    kept: int
    groups: int
    stages: int
    row: int
    """Bytes of a row."""

    @property
    def shared(self):
        return self.groups * self.stages * 2 * self.row


def rings(x, *tensors, kept, stages):
    """For rows that divide evenly among a group, with the first of `kept` vectors a thread that fits. None where a
    tensor is absent or not aligned, or a rest would be left, or the target has no bulk copies."""
    target = built_for().capability
    if target < (9, 0) or any(t is None for t in tensors):
        return None
    wide, width, cols = x.element_size() == 4, vector_width(x, *tensors), x.shape[1]
    if width == 1 or cols % width:
        return None
    for count in kept:
        threads, rest = divmod(cols // width, count)
        # The column sums take 2·width·count registers a thread: 512 threads with 128 registers, or 256 with 255.
        block = 512 if wide or count == 2 else 256
        most = block if wide or len(kept) == 1 else 256
        if rest == 0 and threads % 32 == 0 and 32 <= threads <= most:
            one = Rings(threads, count, block // threads, 1, 16 * threads * count)
            depth = min(stages, (96 if target[0] == 12 else 192) * 1024 // one.shared)
            return one._replace(stages=depth) if depth > 1 else None
    return None


def norm_backward(source, name, how, inputs, out, parts, gradients, blocks):
    """Both launches: dx with each block's column sums, then dweight and dbias, either of which may be absent."""
    rows, cols = out.shape
    T, count = ctype(out), max(1, min(blocks, 256, cdiv(rows, how.groups)))
    source[f"{name}<{T}, {how.threads}, {how.kept}, {how.groups}, {how.stages}>"](
        count, how.threads * how.groups, *inputs, out, *parts, rows, shared=how.shared
    )
    source[f"join_parts<{T}>"]((cols // 32, 2), 256, *parts, *gradients, count, cols, early=True)
