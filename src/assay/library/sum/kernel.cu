// The sum of a vector: each block leaves the sum of its share in its own element of out. Launched twice, the second
// time with one block on what the first one left, it is the sum of all. Every addition has its place, so the same input
// gives the same bits; nothing is kept between calls, so two streams may run it at once.
#include <assay/reduce.cuh>
#include <assay/whole_row.cuh>

// A thread has U vectors of 16 bytes under way, and a chain of additions for each.
template <typename T, typename Out, int THREADS, int U>
__global__ void __launch_bounds__(THREADS) sums(const T* __restrict__ x, Out* __restrict__ out, long long n) {
  using Row = WholeRow<T, 32, 1>;
  constexpr int N = Row::N;
  // x may begin between two 16-byte boundaries: `head` elements come before the first vector, others after the last.
  const long long before = -reinterpret_cast<unsigned long long>(x) % 16 / sizeof(T), head = min(before, n);
  const long long vectors = (n - head) / N, step = (long long)gridDim.x * THREADS * U;
  const uint4* p = reinterpret_cast<const uint4*>(x + head);
  float chain[U] = {};
  const auto add = [&](int u, const uint4& v) {
    float f[N];
    Row::unpack(v, f);
    chain[u] += pairwise(f);
  };
  long long i = blockIdx.x * (long long)(THREADS * U) + threadIdx.x;
  for (; i + (U - 1) * THREADS < vectors; i += step) {
    uint4 v[U];
#pragma unroll
    for (int u = 0; u < U; ++u) v[u] = read_as<past_l1>(p + i + u * THREADS);
#pragma unroll
    for (int u = 0; u < U; ++u) add(u, v[u]);
  }
#pragma unroll 1
  for (; i < vectors; i += THREADS) add(0, p[i]);  // fewer than U are left
  if (blockIdx.x == 0) {
    const long long tail = head + vectors * N + threadIdx.x;
    if (threadIdx.x < head) chain[0] += widen(x[threadIdx.x]);
    if (tail < n) chain[0] += widen(x[tail]);
  }
  const float sum = block_reduce_once<Sum>(pairwise(chain));
  if (threadIdx.x == 0) out[blockIdx.x] = rounded<Out>(sum);
}
