// Each multiprocessor writes its cycle counter and the device's nanoseconds, in the row of its own number.
__global__ void read_clock(long long* out) {
  unsigned sm;
  long long cycles, nanoseconds;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  out[2 * sm] = cycles;
  out[2 * sm + 1] = nanoseconds;
}
