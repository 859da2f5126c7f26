// MXINT8 on the device: E8M0 scales and int8 elements as floats, exact down to the subnormals.
#pragma once

// 2^(code − 127). Code 0 is 2⁻¹²⁷, which is subnormal, code 255 is NaN: both have the upper bit of the fraction set.
__device__ __forceinline__ float scale_value(unsigned code) {
  const bool end = ((code + 1) & 0xfe) == 0;
  return __uint_as_float(code << 23 | (end ? 0x00400000u : 0u));
}

// What one step of an element is worth: 2⁻⁶ of the scale.
__device__ __forceinline__ float step_value(unsigned code) { return 0.015625f * scale_value(code); }

// Byte i of four elements as float: with 128 added they are the last bits of 2²³, so no conversion is needed.
__device__ __forceinline__ float element(unsigned four, int i) {
  return __uint_as_float(__byte_perm(four ^ 0x80808080u, 0x4b000000u, 0x7540 + i)) - 8388736.0f;
}
