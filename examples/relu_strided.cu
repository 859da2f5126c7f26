// ReLU as a bare CUDA file for an op that a Python file declares: assay check relu_strided.cu --op relu.py:relu
// assay: relu<T><<<cdiv(rows * cols, 256), 256>>>(x, out, rows, cols, stride(x, 0), stride(x, 1), stride(out, 0), stride(out, 1))
#include <assay/vector.cuh>

template <typename T>
__global__ void relu(const T* x, T* out, long long rows, long long cols, long long x_row, long long x_col,
                     long long out_row, long long out_col) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  const long long row = i / cols, col = i % cols;
  const T v = x[row * x_row + col * x_col];
  // A comparison, not fmaxf, which would turn NaN into 0.
  out[row * out_row + col * out_col] = widen(v) < 0.0f ? rounded<T>(0.0f) : v;
}
