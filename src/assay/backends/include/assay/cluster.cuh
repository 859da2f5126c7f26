// Clusters (sm_90): the `cluster=` neighbouring blocks of a launch run at once and reach each other's shared memory. A
// block hands values to the others: these arrive with a count of bytes, so that nobody needs a barrier of the cluster,
// which would first wait until all memory that was written is visible to the whole GPU.
#pragma once
#include <assay/bulk.cuh>
#include <assay/reduce.cuh>

// Which block of its cluster this is.
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// What the blocks hand to this one: two values of each for a row, which is what a kernel may join, and the same for the
// next row, which the other blocks may reach while this one still reads.
template <int CLUSTER> struct Handed {
  Arrival arrived[2][2];
  float of_block[2][2][CLUSTER];
};

template <int CLUSTER> __device__ __forceinline__ Handed<CLUSTER>& handed() {
  __shared__ Handed<CLUSTER> here;
  return here;
}

// The start of every kernel with cluster_reduce: all threads call it, once, and go on at once.
template <int CLUSTER> __device__ __forceinline__ void cluster_start() {
  if (threadIdx.x == 0)
#pragma unroll
    for (int i = 0; i < 4; ++i) handed<CLUSTER>().arrived[i / 2][i % 2].init();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// Until all blocks have started and their arrivals are initialised; only then may they be handed something. All threads
// call it, once.
__device__ __forceinline__ void cluster_started() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Into the variable, and to the arrival, that block `rank` has at the address of ours.
__device__ __forceinline__ void hand(int rank, float* ours, float v, Arrival& arrival) {
  asm volatile(
      "{\n.reg .b32 to, arrival;\nmapa.shared::cluster.u32 to, %0, %2;\nmapa.shared::cluster.u32 arrival, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [to], %3, [arrival];\n}" ::"r"(shared_address(ours)),
      "r"(shared_address(&arrival)), "r"(rank), "f"(v)
      : "memory");
}

// What the blocks of a cluster have, joined; `v` is a block's, known to its first CLUSTER threads, a power of two. Every
// thread gets the result, the same bits in every block. All threads call. A kernel may have each USE, 0 and 1, once, or
// once in a loop, with a barrier of the block between two rounds and `turn` as their number. A block that has all values
// is not written to any more, so it may end before the others.
template <int CLUSTER, typename R, int USE> __device__ __forceinline__ float cluster_reduce(float v, int turn = 0) {
  Arrival& arrived = handed<CLUSTER>().arrived[USE][turn & 1];
  float(&of_block)[CLUSTER] = handed<CLUSTER>().of_block[USE][turn & 1];
  if (threadIdx.x < CLUSTER) hand(threadIdx.x, of_block + cluster_rank(), v, arrived);
  if (threadIdx.x == 0) arrived.expect(CLUSTER * sizeof(float));  // some may be there already
  arrived.wait(turn >> 1 & 1);
  return warp_reduce<R, CLUSTER>(of_block[threadIdx.x % CLUSTER]);
}
