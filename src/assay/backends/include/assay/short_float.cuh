// Functions for results of 16 bits, from the special-function unit's own 2^x and 1/x. These are within 2 ulps of a
// float, which a result of 11 bits does not show; what float results need costs three times as many instructions.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Whether results of this type are that short.
template <typename T> constexpr bool is_short = false;
template <> constexpr bool is_short<__half> = true;
template <> constexpr bool is_short<__nv_bfloat16> = true;

__device__ __forceinline__ float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1/(1 + 2^a), the sigmoid in every function below.
__device__ __forceinline__ float sigmoid_of_2(float a) { return reciprocal(1.0f + power_of_2(a)); }

__device__ __forceinline__ float short_exp(float x) { return power_of_2(x * 1.4426950408889634f); }

__device__ __forceinline__ float short_silu(float x) { return x * sigmoid_of_2(x * -1.4426950408889634f); }

// ½(1 + tanh u) = 1/(1 + e^(−2u)) with u = √(2/π)(x + 0.044715x³); the constants hold −2·log2(e).
__device__ __forceinline__ float short_gelu_tanh(float x) {
  return x * sigmoid_of_2(x * fmaf(x * x, -0.10294324f, -2.3022082f));
}

// Φ(x) = 1/(1 + 2^(x·P(x²))). P is fitted to log2(Φ/(1 − Φ))/−x so that x·Φ(x), rounded, is within 0.51 rounding units
// for every bf16 and fp16. P is negative throughout, so far out 2^(x·P) becomes 0 or ∞ by itself, and Φ 1 or 0.
__device__ __forceinline__ float short_gelu(float x) {
  const float t = x * x;
  float p = -4.521153229575248e-09f;
  p = fmaf(p, t, 3.466269618002116e-07f);
  p = fmaf(p, t, -1.0659651707101148e-05f);
  p = fmaf(p, t, 0.00015179523325059563f);
  p = fmaf(p, t, 0.00013010887778364122f);
  p = fmaf(p, t, -0.10490541905164719f);
  p = fmaf(p, t, -2.302168607711792f);
  return x * sigmoid_of_2(x * p);
}

// The same with two coefficients fewer, within 0.74 units: for an x that was rounded on its way, as after a LayerNorm.
__device__ __forceinline__ float shorter_gelu(float x) {
  const float t = x * x;
  float p = -1.8044637499770033e-06f;
  p = fmaf(p, t, 5.123134178575128e-05f);
  p = fmaf(p, t, 0.0006640069768764079f);
  p = fmaf(p, t, -0.10611018538475037f);
  p = fmaf(p, t, -2.301360607147217f);
  return x * sigmoid_of_2(x * p);
}

// φ(x) of t = x²: 2^(−x²·log2(e)/2 − log2(√(2π))).
__device__ __forceinline__ float short_bell(float t) {
  return power_of_2(fmaf(t, -0.7213475204444817f, -1.3257480647361593f));
}

// The slope of GELU, Φ(x) + x·φ(x). Near x = −0.75 the two cancel, and sums of several may cancel anywhere: P is fitted
// for the least absolute error, 3·10⁻⁸; the special functions add up to 5·10⁻⁷. It differs from GELU’s.
__device__ __forceinline__ float short_gelu_slope(float x) {
  const float t = x * x;
  float p = -5.067239072786833e-09f;
  p = fmaf(p, t, 3.816313665083726e-07f);
  p = fmaf(p, t, -1.1439834452176001e-05f);
  p = fmaf(p, t, 0.000159579940373078f);
  p = fmaf(p, t, 9.404921001987532e-05f);
  p = fmaf(p, t, -0.10483512282371521f);
  p = fmaf(p, t, -2.3022093772888184f);
  return fmaf(x, short_bell(t), sigmoid_of_2(x * p));
}
