// Bulk copies into shared memory (sm_90): one thread asks for a whole row, and no thread spends an instruction on its
// vectors. A barrier in shared memory counts the bytes that arrive. And the order of launches that overlap.
#pragma once

__device__ __forceinline__ unsigned shared_address(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }

// For arrivals that one thread announces. Before the first copy: init by one thread, then a barrier of the block.
struct Arrival {
  unsigned long long state;

  __device__ __forceinline__ void init() {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(this)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  // How many bytes the copies of this phase have in all; the same thread starts them.
  __device__ __forceinline__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }

  // Both addresses and the size are multiples of 16.
  __device__ __forceinline__ void copy(void* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(this))
                 : "memory");
  }

  // Until all bytes of a phase are there. Phases alternate, 0 is the first.
  __device__ __forceinline__ void wait(unsigned phase) {
    unsigned done;
    do
      asm volatile(
          "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(shared_address(this)), "r"(phase)
          : "memory");
    while (!done);
  }
};

// A launch with `early=True` may start while the one before it ends: when all blocks of that have said let_next_start.
// It sees what that wrote after wait_for_last.
__device__ __forceinline__ void let_next_start() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
__device__ __forceinline__ void wait_for_last() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
