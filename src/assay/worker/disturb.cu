// Blocks that each keep all threads of half a multiprocessor busy for so many nanoseconds. A grid of many of them fills
// the device wave after wave: what has a higher priority gets in between two of them, everything else waits for the last.
__global__ void occupy(long long nanoseconds) {
  long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < nanoseconds);
}

// Fills the shared memory of every multiprocessor with a word: five such blocks fill one, and stay until all are there.
__global__ void spoil(long long word, long long nanoseconds) {
  __shared__ volatile unsigned memory[11 * 1024];
  for (int i = threadIdx.x; i < 11 * 1024; i += blockDim.x) memory[i] = static_cast<unsigned>(word);
  long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < nanoseconds);
}
