// A linear layer whose weight is packed in MXINT8, on the tensor cores. An element is exact in bf16 and in fp16, so products
// of x with 32 of them are summed there, in float, and scaled once afterwards: weights are never written anywhere.
//
// A weight's row stands for a row of the 16 × 8 product, a row of x for a column. In mma.m16n8k16 a thread has row g (and
// g + 8) and column g, for a quarter t of the depth. Which quarter is free as long as both sides agree: here it has 8
// neighbouring codes and the 8 values of x that belong to them, of every 32, for two mma.
#include <assay/mx.cuh>
#include <assay/vector.cuh>

constexpr int DEPTH = 32;  // what is scaled at once

// How x and codes become operands. PARTS: how many 16-bit floats make one value of x. A byte below a zero one is a subnormal
// float (in bf16 the smallest normal ones continue them): with 128 added, a code is that many of the smallest step, and one
// multiply-add makes it its own value, less a factor GAIN where the format's range is short of it.
template <typename T> struct Operand;

template <> struct Operand<__half> {
  static constexpr int PARTS = 1;
  static constexpr float GAIN = 8.0f;
  static __device__ __forceinline__ unsigned value(unsigned two) {  // 2¹⁵ · two − ¼
    unsigned v;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(two), "r"(0x78007800u), "r"(0xb400b400u));
    return v;
  }
  static __device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

template <> struct Operand<__nv_bfloat16> {
  static constexpr int PARTS = 1;
  static constexpr float GAIN = 1.0f;
  static __device__ __forceinline__ unsigned value(unsigned two) {  // 2¹²⁷ · two − 2
    unsigned v;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(two), "r"(0x7f007f00u), "r"(0xc000c000u));
    return v;
  }
  static __device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

// A float is three bf16: its upper eight bits, the next eight of what is left, and the rest.
template <> struct Operand<float> : Operand<__nv_bfloat16> {
  static constexpr int PARTS = 3;
};

// Eight neighbouring values of a row of x, as 16-bit pairs.
template <typename T> struct Eight {
  static constexpr int PARTS = Operand<T>::PARTS;
  unsigned part[PARTS][4] = {};

  __device__ __forceinline__ void fetch(const T* p) {
    constexpr int WORDS = sizeof(T) * 2;
    unsigned raw[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; i += 4) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(p) + i / 4);
      raw[i] = v.x, raw[i + 1] = v.y, raw[i + 2] = v.z, raw[i + 3] = v.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (PARTS == 1) {
        part[0][i] = raw[i];
      } else {
        float a = __uint_as_float(raw[2 * i]), b = __uint_as_float(raw[2 * i + 1]);
#pragma unroll
        for (int k = 0; k < PARTS; ++k) {
          part[k][i] = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
          a = rest(a), b = rest(b);
        }
      }
    }
  }

  __device__ __forceinline__ uint4 packed(int k) const { return make_uint4(part[k][0], part[k][1], part[k][2], part[k][3]); }
  __device__ __forceinline__ void unpack(int k, uint4 v) {
    part[k][0] = v.x, part[k][1] = v.y, part[k][2] = v.z, part[k][3] = v.w;
  }

  // What the upper half of a float leaves out; nothing of an infinity.
  static __device__ __forceinline__ float rest(float v) {
    const float left = v - __uint_as_float(__float_as_uint(v) & 0xffff0000u);
    return fabsf(v) == __uint_as_float(0x7f800000u) ? 0.0f : left;
  }
};

// Codes of two rows, eight each, as operands of two mma.
template <typename T> struct Codes {
  unsigned a[2][4];
  __device__ __forceinline__ Codes(uint2 upper, uint2 lower) {
    put(a[0], upper.x, lower.x);
    put(a[1], upper.y, lower.y);
  }
  static __device__ __forceinline__ void put(unsigned (&to)[4], unsigned upper, unsigned lower) {
    upper ^= 0x80808080u, lower ^= 0x80808080u;
    to[0] = Operand<T>::value(__byte_perm(upper, 0, 0x4140)), to[1] = Operand<T>::value(__byte_perm(lower, 0, 0x4140));
    to[2] = Operand<T>::value(__byte_perm(upper, 0, 0x4342)), to[3] = Operand<T>::value(__byte_perm(lower, 0, 0x4342));
  }
};

// sum += x · codes · scales, over 32 of the depth. The smallest parts first.
template <typename T>
__device__ __forceinline__ void add(float (&sum)[4], const Codes<T>& codes, const Eight<T>& x, float upper, float lower) {
  float products[4] = {};
#pragma unroll
  for (int k = Operand<T>::PARTS - 1; k >= 0; --k)
#pragma unroll
    for (int j = 0; j < 2; ++j) Operand<T>::mma(products, codes.a[j], x.part[k][2 * j], x.part[k][2 * j + 1]);
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[i] = fmaf(Operand<T>::GAIN * products[i], i < 2 ? upper : lower, sum[i]);
}

__device__ __forceinline__ void copy_later(void* to, const void* from, bool inside) {  // zeros where not inside
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

// Few rows of x (up to 8 · NT): the weight is streamed once through shared memory, STAGES − 1 chunks ahead, each warp by
// itself. A chunk is 16 · RT rows of 256 / RT columns, 4 KiB. The warps of a block divide the depth; so do gridDim.y blocks,
// `share` chunks each. Blocks walk over the rows; the last tile of rows may overlap the one before.
constexpr int STAGES = 3;

template <typename T, int RT, int NT>
__global__ void __launch_bounds__(256)
    mx_linear_few(const T* x, const signed char* elements, const unsigned char* scales, const T* bias, T* out, float* partial,
                  long long n, long long k, int m, int blocks, int shift, int share, bool side_by_side) {
  constexpr int ROWS = 16 * RT, CHUNK = 256 / RT, PIECES = CHUNK / 16;
  constexpr int PITCH = CHUNK + 32, STAGE = ROWS * PITCH;  // rows begin 8 banks apart: 16 threads read 32 different ones
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  extern __shared__ uint4 memory[];
  char* const mine = reinterpret_cast<char*>(memory) + warp * STAGES * STAGE;
  float* const sums = reinterpret_cast<float*>(reinterpret_cast<char*>(memory) + warps * STAGES * STAGE);

  const int depth = k, chunks = (depth + CHUNK - 1) / CHUNK;
  const int begin = blockIdx.y * share + warp, end = min(chunks, (int)(blockIdx.y + 1) * share);
  const long long tiles = (n + ROWS - 1) / ROWS;
  const auto top = [&](long long tile) { return min(tile * ROWS, n - ROWS); };

  // Copying runs ahead. A warp with nothing to do has no tile.
  long long next_tile = begin < end ? blockIdx.x : tiles;
  int next_chunk = begin, to = 0;
  const signed char* from = elements;
  const auto copy = [&] {
    if (next_tile < tiles) {
      const int piece = lane % PIECES * 16, column = next_chunk * CHUNK + piece;
      if (next_chunk == begin) from = elements + (top(next_tile) + lane / PIECES) * k + piece;
      const signed char* source = from + (column < depth ? next_chunk * CHUNK : 0);
      char* target = mine + to * STAGE + lane / PIECES * PITCH + piece;
#pragma unroll
      for (int i = 0; i < ROWS * PIECES / 32; ++i) {
        copy_later(target, source, column < depth);
        source += 32 / PIECES * k, target += 32 / PIECES * PITCH;
      }
      next_chunk += warps;
      if (next_chunk >= end) next_chunk = begin, next_tile += gridDim.x;
    }
    to = to + 1 == STAGES ? 0 : to + 1;
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  // Each thread has four scale codes of a chunk, of one row, and makes them floats for all. Read one chunk ahead.
  const int held_row = lane * RT / 2, held_block = RT == 1 ? lane % 2 * 4 : 0;
  const auto read_codes = [&](long long tile, int chunk) {
    const unsigned char* row = scales + (top(tile) + held_row) * blocks;
    const int first = chunk * (CHUNK / DEPTH) + held_block;
    unsigned four = 0;
    if (side_by_side) {  // one for every 32 columns, aligned
      four = __ldg(reinterpret_cast<const unsigned*>(row + min(first, blocks - 4)));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) four |= (unsigned)__ldg(row + min((first + i) * DEPTH >> shift, blocks - 1)) << 8 * i;
    }
    return four;
  };

  const T* rows_of_x[NT];  // a column of the product that has none is computed from another's, and dropped
#pragma unroll
  for (int c = 0; c < NT; ++c) rows_of_x[c] = x + min(c * 8 + g, m - 1) * k + t * 8;

  for (int i = 1; i < STAGES; ++i) copy();
  unsigned ahead = begin < end ? read_codes(blockIdx.x, begin) : 0;
  int here = 0;
  for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sum[RT][NT][4] = {};
    for (int chunk = begin; chunk < end; chunk += warps) {
      float held[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) held[i] = scale_value(ahead >> 8 * i & 0xff);
      if (chunk + warps < end)
        ahead = read_codes(tile, chunk + warps);
      else if (tile + gridDim.x < tiles)
        ahead = read_codes(tile + gridDim.x, begin);
      asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
      __syncwarp();
      copy();  // over the chunk before this one, which every thread of the warp has read

      const char* const stage = mine + here * STAGE + g * PITCH + t * 8;
      here = here + 1 == STAGES ? 0 : here + 1;
      const int left = depth - chunk * CHUNK - t * 8;
#pragma unroll
      for (int b = 0; b < CHUNK / DEPTH; ++b) {
        Eight<T> values[NT];
#pragma unroll
        for (int c = 0; c < NT; ++c)
          if (b * DEPTH < left) values[c].fetch(rows_of_x[c] + chunk * CHUNK + b * DEPTH);
#pragma unroll
        for (int r = 0; r < RT; ++r) {
          const char* const at = stage + r * 16 * PITCH + b * DEPTH;
          const Codes<T> codes(*reinterpret_cast<const uint2*>(at), *reinterpret_cast<const uint2*>(at + 8 * PITCH));
          const int holder = RT == 1 ? g * 2 + b / 4 : r * 16 + g;  // of row g, block b
          const float upper = __shfl_sync(0xffffffffu, held[b % 4], holder);
          const float lower = __shfl_sync(0xffffffffu, held[b % 4], holder + 16 / RT);
#pragma unroll
          for (int c = 0; c < NT; ++c) add(sum[r][c], codes, values[c], upper, lower);
        }
      }
    }

    __syncthreads();  // the last tile's sums have been read
#pragma unroll
    for (int r = 0; r < RT; ++r)
#pragma unroll
      for (int c = 0; c < NT; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = c * 8 + t * 2 + i % 2;
          if (column < m) sums[(warp * m + column) * ROWS + r * 16 + g + i / 2 * 8] = sum[r][c][i];
        }
    __syncthreads();
    for (int i = threadIdx.x; i < m * ROWS; i += blockDim.x) {
      const long long row = top(tile) + i % ROWS;
      const int column = i / ROWS;
      float total = 0.0f;
      for (int w = 0; w < warps; ++w) total += sums[w * m * ROWS + i];
      if (gridDim.y > 1)
        partial[((int)blockIdx.y * m + column) * n + row] = total;
      else
        out[column * n + row] = rounded<T>(total + (bias ? widen(bias[row]) : 0.0f));
    }
  }
}

// The last stage where blocks share the depth, in a fixed order.
template <typename T>
__global__ void mx_linear_sum(const float* partial, const T* bias, T* out, long long parts, long long m, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= m * n) return;
  float total = 0.0f;
  for (long long part = 0; part < parts; ++part) total += partial[part * m * n + i];
  out[i] = rounded<T>(total + (bias ? widen(bias[i % n]) : 0.0f));
}

// Many rows of x: a block has 64 of them and 128 of the weight. x is staged in shared memory, 32 columns at a time; each of
// the four warps reads the codes of its own 32 rows, a step ahead.
template <typename T>
__global__ void __launch_bounds__(128)
    mx_linear_many(const T* x, const signed char* elements, const unsigned char* scales, const T* bias, T* out, long long m,
                   long long n, long long k, long long blocks, long long shift) {
  constexpr int RT = 2, NT = 8, COLUMNS = 8 * NT, PARTS = Operand<T>::PARTS;
  __shared__ uint4 staged[2][PARTS][COLUMNS][4];  // what 8 threads read, two rows, lies in all banks
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int depth = k, width = blocks, steps = (depth + DEPTH - 1) / DEPTH;
  const long long first = (blockIdx.x * 4LL + warp) * (16 * RT);

  for (long long top = blockIdx.y * (long long)COLUMNS; top < m; top += gridDim.y * (long long)COLUMNS) {
    Eight<T> values[2];  // of x: this thread's share of what is staged next
    uint2 codes[2 * RT];
    unsigned scale[2 * RT];
    const auto fetch = [&](int step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int column = step * DEPTH + t * 8;
        const long long row = top + i * 32 + threadIdx.x / 4;
        values[i] = {};
        if (row < m && column < depth) values[i].fetch(x + row * k + column);
      }
#pragma unroll
      for (int r = 0; r < 2 * RT; ++r) {
        const long long row = min(first + r * 8 + g, n - 1);
        const int column = step * DEPTH + t * 8;
        codes[r] = make_uint2(0, 0);
        if (column < depth) codes[r] = __ldg(reinterpret_cast<const uint2*>(elements + row * k + column));
        scale[r] = __ldg(scales + row * blocks + min(step * DEPTH >> (int)shift, width - 1));
      }
    };

    float sum[RT][NT][4] = {};
    fetch(0);
    for (int step = 0; step < steps; ++step) {
      auto& here = staged[step % 2];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int p = 0; p < PARTS; ++p) here[p][i * 32 + threadIdx.x / 4][t] = values[i].packed(p);
      __syncthreads();  // and nobody reads the other half any more
      const Codes<T> rows[RT] = {{codes[0], codes[1]}, {codes[2], codes[3]}};
      float worth[2 * RT];
#pragma unroll
      for (int r = 0; r < 2 * RT; ++r) worth[r] = scale_value(scale[r]);
      if (step + 1 < steps) fetch(step + 1);
#pragma unroll
      for (int c = 0; c < NT; ++c) {
        Eight<T> column;
#pragma unroll
        for (int p = 0; p < PARTS; ++p) column.unpack(p, here[p][c * 8 + g][t]);
#pragma unroll
        for (int r = 0; r < RT; ++r) add(sum[r][c], rows[r], column, worth[2 * r], worth[2 * r + 1]);
      }
    }
    __syncthreads();  // before the next rows of x are staged

#pragma unroll
    for (int r = 0; r < RT; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const long long row = first + r * 16 + g + i / 2 * 8;
        const float offset = bias && row < n ? widen(bias[row]) : 0.0f;
#pragma unroll
        for (int c = 0; c < NT; ++c) {
          const long long column = top + c * 8 + t * 2 + i % 2;
          if (row < n && column < m) out[column * n + row] = rounded<T>(sum[r][c][i] + offset);
        }
      }
  }
}

// Any block length, any alignment, any depth: a warp for each row of the weight and eight rows of x.
template <typename T>
__global__ void mx_linear_any(const T* x, const signed char* elements, const unsigned char* scales, const T* bias, T* out,
                              long long m, long long n, long long k, long long block, long long blocks) {
  constexpr int COLUMNS = 8, RUN = 32;  // long sums lose bits: sum runs, then the runs
  const int lane = threadIdx.x % 32;
  const long long row = blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32;
  if (row >= n) return;
  const long long ahead = 32 / block, further = 32 % block;  // blocks, and elements in a block, from one column to the next
  for (long long top = blockIdx.y * (long long)COLUMNS; top < m; top += gridDim.y * (long long)COLUMNS) {
    float total[COLUMNS] = {}, run[COLUMNS] = {};
    long long at = lane / block, inside = lane % block;
    int summed = 0;
    for (long long c = lane; c < k; c += 32) {
      const float weight = (float)elements[row * k + c] * step_value(scales[row * blocks + at]);
#pragma unroll
      for (int i = 0; i < COLUMNS; ++i)
        if (top + i < m) run[i] = fmaf(widen(x[(top + i) * k + c]), weight, run[i]);
      at += ahead, inside += further;
      if (inside >= block) inside -= block, ++at;
      if (++summed == RUN) {
        summed = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) total[i] += run[i], run[i] = 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      float v = total[i] + run[i];
      for (int other = 16; other; other /= 2) v += __shfl_xor_sync(0xffffffffu, v, other);
      if (lane == 0 && top + i < m) out[(top + i) * n + row] = rounded<T>(v + (bias ? widen(bias[row]) : 0.0f));
    }
  }
}
