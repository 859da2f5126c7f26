// A matrix transposed with 16-byte accesses on both sides. A vector has N elements, and a square of N × N of them is
// what one thread turns in its registers: N vectors in, N vectors out.
#include <assay/vector.cuh>

// The rows of a square become its columns. Words of 16-bit elements are taken apart by byte_perm: 0x5410 joins the
// lower halves of two words, 0x7632 the upper ones. Only bits move, so NaN, −0.0 and subnormals arrive as they are.
template <int N> __device__ __forceinline__ void turn(const uint4 (&in)[N], uint4 (&out)[N]) {
  const auto word = [&](int r, int i) { return i == 0 ? in[r].x : i == 1 ? in[r].y : i == 2 ? in[r].z : in[r].w; };
#pragma unroll
  for (int c = 0; c < N; ++c) {
    if constexpr (N == 4) {
      out[c] = make_uint4(word(0, c), word(1, c), word(2, c), word(3, c));
    } else {
      const unsigned half = c % 2 ? 0x7632 : 0x5410;
      const auto pair = [&](int r) { return __byte_perm(word(r, c / 2), word(r + 1, c / 2), half); };
      out[c] = make_uint4(pair(0), pair(2), pair(4), pair(6));
    }
  }
}

// A block has a tile of DOWN × ACROSS squares and a thread for each. ALONG: neighbouring blocks have neighbouring tiles
// of a row of x, else of a column, which is a row of out. rows, cols and stride are multiples of N: no vector is cut.
// 1280 resident threads leave each 48 registers, 2048 (fp32) leave 32: enough. Without the bound the compiler takes 62
// on sm_80, and on sm_90 stores the first vector before the last is asked for.
template <typename T, int DOWN, int ACROSS, bool ALONG>
__global__ void __launch_bounds__(DOWN* ACROSS, (sizeof(T) == 4 ? 2048 : 1280) / (DOWN * ACROSS))
    turned(const T* __restrict__ x, T* __restrict__ out, long long rows, long long cols, long long stride) {
  constexpr int N = 16 / sizeof(T);
  __shared__ uint4 tile[DOWN * N * ACROSS];
  // Vector c of row r. Squares below one another would have their vectors in the same banks; XOR with the square's row
  // spreads eight of them over all 32.
  const auto at = [](unsigned r, unsigned c) { return r * ACROSS + (c ^ (r / N % 8)); };
  const unsigned tiles_down = (rows + DOWN * N - 1) / (DOWN * N), tiles_across = (cols + ACROSS * N - 1) / (ACROSS * N);
  const long long top = DOWN * N * (long long)(ALONG ? blockIdx.x / tiles_across : blockIdx.x % tiles_down);
  const long long left = ACROSS * N * (long long)(ALONG ? blockIdx.x % tiles_across : blockIdx.x / tiles_down);

  // Rows of the tile, ACROSS neighbouring threads for each. All loads are under way before the first is waited for.
  // Beyond the matrix its last vectors are read again and not used: a branch would make some loads wait for others.
  uint4 v[N];
  const unsigned line = threadIdx.x / ACROSS, c = threadIdx.x % ACROSS;
  const long long col = min(left + c * N, cols - N);
#pragma unroll
  for (int k = 0; k < N; ++k)
    v[k] = __ldg(reinterpret_cast<const uint4*>(x + min(top + k * DOWN + line, rows - 1) * stride + col));
#pragma unroll
  for (int k = 0; k < N; ++k) tile[at(k * DOWN + line, c)] = v[k];
  __syncthreads();

  // Rows of the turned tile: DOWN neighbouring threads have neighbouring squares of a column.
  const unsigned down = threadIdx.x % DOWN, across = threadIdx.x / DOWN;
  const long long row = top + down * N, first = left + across * N;
  if (row >= rows || first >= cols) return;
  uint4 square[N], result[N];
#pragma unroll
  for (int k = 0; k < N; ++k) square[k] = tile[at(down * N + k, across)];
  turn<N>(square, result);
#pragma unroll
  for (int k = 0; k < N; ++k)  // __stwb: the compiler may split plain stores of 16 bytes
    __stwb(reinterpret_cast<uint4*>(out + (first + k) * rows + row), result[k]);
}
