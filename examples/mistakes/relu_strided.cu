// The output's rows are taken to be dense: assay check mistakes/relu_strided.cu --op relu.py:relu
// assay: relu<T><<<cdiv(rows * cols, 256), 256>>>(x, out, rows, cols, stride(x, 0), stride(x, 1))
#include <assay/vector.cuh>

template <typename T>
__global__ void relu(const T* x, T* out, long long rows, long long cols, long long x_row, long long x_col) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  const T v = x[i / cols * x_row + i % cols * x_col];
  out[i] = widen(v) < 0.0f ? rounded<T>(0.0f) : v;  // Wrong: out has strides of its own.
}
