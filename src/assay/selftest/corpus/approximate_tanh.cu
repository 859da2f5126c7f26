template <bool FAST> __global__ void gelu_tanh(const float* x, float* out, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = x[i], u = 0.7978845608028654f * (v + 0.044715f * v * v * v);
  float t;
  if (FAST)
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(u));
  else
    t = tanhf(u);
  out[i] = 0.5f * v * (1.0f + t);
}
