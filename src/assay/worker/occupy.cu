// Blocks that each keep all threads of half a multiprocessor busy for so many nanoseconds. A grid of many of them fills
// the device wave after wave: what has a higher priority gets in between two of them, everything else waits for the last.
__global__ void occupy(long long nanoseconds) {
  long long began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - began < nanoseconds);
}
