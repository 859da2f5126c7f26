// A matrix transposed in three ways. A block of TILE × blockDim.y threads moves one TILE × TILE tile; blocks are numbered
// along the rows of x in one dimension, since gridDim.y ends at 65535.
#include <assay/vector.cuh>

// Reads run along rows, so a warp's loads join into whole lines; its stores each touch a line of their own.
template <typename T, int TILE>
__global__ void naive(const T* x, T* out, long long rows, long long cols, long long stride) {
  const long long across = (cols + TILE - 1) / TILE;
  const long long top = blockIdx.x / across * TILE, col = blockIdx.x % across * TILE + threadIdx.x;
  for (long long row = top + threadIdx.y; row < min(top + TILE, rows); row += blockDim.y)
    if (col < cols) out[col * rows + row] = x[row * stride + col];
}

// The tile turns in shared memory, so loads and stores both run along rows. PAD = 0: a column of the tile lies in one bank
// and is read one element at a time. PAD = 1: it lies across the banks and is read at once.
template <typename T, int TILE, int PAD>
__global__ void tiled(const T* x, T* out, long long rows, long long cols, long long stride) {
  __shared__ T tile[TILE][TILE + PAD];
  const long long across = (cols + TILE - 1) / TILE;
  const long long top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
  for (int i = threadIdx.y; i < TILE; i += blockDim.y)
    if (top + i < rows && left + threadIdx.x < cols) tile[i][threadIdx.x] = x[(top + i) * stride + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < TILE; i += blockDim.y)
    if (left + i < cols && top + threadIdx.x < rows) out[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
}
