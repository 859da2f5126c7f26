__device__ __forceinline__ void stay(long long nanoseconds) {
  long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < nanoseconds);
}

// Blocks that each keep all threads of half a multiprocessor busy for so many nanoseconds. A grid of many of them fills
// the device wave after wave: what has a higher priority gets in between two of them, everything else waits for the last.
__global__ void occupy(long long nanoseconds) { stay(nanoseconds); }

// Fills the shared memory of every multiprocessor with a word: five such blocks fill one, and stay until all are there.
__global__ void leave_words(long long word, long long nanoseconds) {
  __shared__ volatile unsigned memory[11 * 1024];
  for (int i = threadIdx.x; i < 11 * 1024; i += blockDim.x) memory[i] = static_cast<unsigned>(word);
  stay(nanoseconds);
}

// The same with barriers whose first phase is complete: a thread that waits for one before it is initialised goes on.
__global__ void leave_barriers(long long nanoseconds) {
#if __CUDA_ARCH__ >= 800
  __shared__ unsigned long long memory[11 * 512];
  for (int i = threadIdx.x; i < 11 * 512; i += blockDim.x) {
    const unsigned at = unsigned(__cvta_generic_to_shared(memory + i));
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
  }
#endif
  stay(nanoseconds);
}
