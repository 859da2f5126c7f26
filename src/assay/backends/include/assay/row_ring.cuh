// Rows that are read ahead (sm_90): a cluster of CLUSTER blocks goes through many rows, and the next STAGES are on their
// way into a ring in dynamic shared memory while one is worked on in registers.
#pragma once
#include <assay/bulk.cuh>
#include <assay/whole_row.cuh>

// f(row, r, turn) for each row r of this cluster, its turn-th. STAGES times a block's part of a row is dynamic shared
// memory. All threads of all blocks call it, once.
template <typename Row, int STAGES, typename T, typename F>
__device__ __forceinline__ void each_row(const T* x, long long rows, long long stride, F f) {
  extern __shared__ __align__(128) uint4 ring[];
  __shared__ Arrival arrived[STAGES];
  constexpr int VECTORS = Row::KEPT * Row::THREADS, BYTES = 16 * VECTORS;
  const int count = int(rows), first = blockIdx.x / Row::BLOCKS, step = gridDim.x / Row::BLOCKS;
  if (threadIdx.x == 0)
#pragma unroll
    for (int s = 0; s < STAGES; ++s) arrived[s].init();
  __syncthreads();
  const auto fetch = [&](int r, int stage) {
    if (threadIdx.x == 0 && r < count) {
      arrived[stage].expect(BYTES);
      arrived[stage].copy(ring + stage * VECTORS, Row::vector(x + r * stride, 0), BYTES);
    }
  };
#pragma unroll
  for (int s = 0; s < STAGES; ++s) fetch(first + s * step, s);
  if constexpr (Row::BLOCKS > 1) cluster_start<Row::BLOCKS>(), cluster_started();

  int stage = 0, turn = 0;
  unsigned phase = 0;
  for (int r = first; r < count; r += step, ++turn) {
    Row row;
    arrived[stage].wait(phase);
    row.take(ring + stage * VECTORS);
    __syncthreads();  // all threads have their part, and the sums of the last row
    fetch(r + STAGES * step, stage);
    f(row, r, turn);
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
}
