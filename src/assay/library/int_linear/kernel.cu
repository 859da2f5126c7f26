// A linear layer whose weight is packed in integers of 8 or 4 bits, on the tensor cores. A code is exact in bf16 and in fp16,
// so products of x with the codes of a group are summed there, in float, and scaled once afterwards: weights are never written
// anywhere, and never rounded.
#include <assay/hint.cuh>

// How x and codes become operands. PARTS: how many 16-bit floats make one value of x. A word of codes becomes pairs: of bytes
// (0, 1) and (2, 3), of nibbles (0, 4), (1, 5), (2, 6) and (3, 7). Both are less than their bias above a float that is
// known, so one multiply-add makes them numbers, less a factor GAIN where the format's range is short of it.
template <typename T> struct Operand;

template <> struct Operand<__half> {
  static constexpr int PARTS = 1;
  static constexpr float GAIN = 1.0f;
  static __device__ __forceinline__ unsigned value(unsigned two, unsigned factor, unsigned offset) {
    unsigned v;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(two), "r"(factor), "r"(offset));
    return v;
  }
  static __device__ __forceinline__ unsigned masked(unsigned word, unsigned mask) {  // | 0x6400 twice, in one instruction
    unsigned v;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(v) : "r"(word), "r"(mask), "r"(0x64006400u));
    return v;
  }
  static __device__ __forceinline__ void decode(unsigned word, unsigned (&v)[2]) {  // 0x64cc is 1024 + cc; − 1152
    v[0] = value(__byte_perm(word, 0x64646464u, 0x4140), 0x3c003c00u, 0xe480e480u);
    v[1] = value(__byte_perm(word, 0x64646464u, 0x4342), 0x3c003c00u, 0xe480e480u);
  }
  static __device__ __forceinline__ void decode(unsigned word, unsigned (&v)[4]) {  // 0x640c is 1024 + c, 0x64c0 1024 + 16c
    const unsigned later = word >> 8;
    v[0] = value(masked(word, 0x000f000fu), 0x3c003c00u, 0xe408e408u);  // · 1 − 1032
    v[1] = value(masked(word, 0x00f000f0u), 0x2c002c00u, 0xd480d480u);  // / 16 − 72
    v[2] = value(masked(later, 0x000f000fu), 0x3c003c00u, 0xe408e408u);
    v[3] = value(masked(later, 0x00f000f0u), 0x2c002c00u, 0xd480d480u);
  }
  static __device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

// A byte below a zero one is a small bf16, that many of the smallest step 2⁻¹³³: subnormal below 128, and the smallest normal
// ones continue them. No multiplier reaches 2¹³³, so codes are 64 times too small.
template <> struct Operand<__nv_bfloat16> {
  static constexpr int PARTS = 1;
  static constexpr float GAIN = 64.0f;
  static __device__ __forceinline__ unsigned value(unsigned two, unsigned factor, unsigned offset) {
    unsigned v;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(v) : "r"(two), "r"(factor), "r"(offset));
    return v;
  }
  static __device__ __forceinline__ void decode(unsigned word, unsigned (&v)[2]) {  // · 2¹²⁷ − 2
    v[0] = value(__byte_perm(word, 0, 0x4140), 0x7f007f00u, 0xc000c000u);
    v[1] = value(__byte_perm(word, 0, 0x4342), 0x7f007f00u, 0xc000c000u);
  }
  static __device__ __forceinline__ void decode(unsigned word, unsigned (&v)[4]) {  // · 2¹²⁷ − ⅛, · 2¹²³ − ⅛
    const unsigned later = word >> 8;
    v[0] = value(word & 0x000f000fu, 0x7f007f00u, 0xbe00be00u);
    v[1] = value(word & 0x00f000f0u, 0x7d007d00u, 0xbe00be00u);
    v[2] = value(later & 0x000f000fu, 0x7f007f00u, 0xbe00be00u);
    v[3] = value(later & 0x00f000f0u, 0x7d007d00u, 0xbe00be00u);
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

// What the upper half of a float leaves out; nothing of an infinity.
__device__ __forceinline__ float rest(float v) {
  const float left = v - __uint_as_float(__float_as_uint(v) & 0xffff0000u);
  return fabsf(v) == __uint_as_float(0x7f800000u) ? 0.0f : left;
}

// Eight neighbouring values of x, as pairs in the order in which a word's codes, or two words' codes, become pairs.
template <typename T, int BITS> struct Eight {
  static constexpr int PARTS = Operand<T>::PARTS;
  uint4 part[PARTS] = {};

  __device__ __forceinline__ void fetch(const T* p) {
    constexpr int WORDS = sizeof(T) * 2;
    unsigned raw[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; i += 4) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(p) + i / 4);
      raw[i] = v.x, raw[i + 1] = v.y, raw[i + 2] = v.z, raw[i + 3] = v.w;
    }
    if constexpr (PARTS == 1) {
      part[0] = ordered(raw[0], raw[1], raw[2], raw[3]);
    } else {
      float v[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = __uint_as_float(raw[i]);
#pragma unroll
      for (int k = 0; k < PARTS; ++k) {
        part[k] = ordered(upper(v[0], v[1]), upper(v[2], v[3]), upper(v[4], v[5]), upper(v[6], v[7]));
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = rest(v[i]);
      }
    }
  }

  static __device__ __forceinline__ unsigned upper(float a, float b) {
    return __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
  }
  static __device__ __forceinline__ uint4 ordered(unsigned a, unsigned b, unsigned c, unsigned d) {
    if constexpr (BITS == 8) return make_uint4(a, b, c, d);
    return make_uint4(__byte_perm(a, c, 0x5410), __byte_perm(a, c, 0x7632), __byte_perm(b, d, 0x5410),
                      __byte_perm(b, d, 0x7632));
  }
};

__device__ __forceinline__ unsigned of(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

__device__ __forceinline__ float scale_value(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

// The four words of each of four neighbouring lanes, so that lane t has word t of all of them.
__device__ __forceinline__ uint4 transposed(const uint4& v, int t) {
  const auto swap = [](unsigned& a, unsigned& b, bool upper, int other) {  // b of the lower lane with a of the upper one
    const unsigned got = __shfl_xor_sync(0xffffffffu, upper ? a : b, other);
    (upper ? a : b) = got;
  };
  uint4 w = v;
  swap(w.x, w.y, t & 1, 1), swap(w.z, w.w, t & 1, 1);
  swap(w.x, w.z, t & 2, 2), swap(w.y, w.w, t & 2, 2);
  return w;
}

// Up to MT rows of x: the weight is streamed once, from memory to registers, AHEAD chunks before it is needed. A chunk is 512
// bytes of a row, 16 for each lane. A warp has PAIRS pairs of rows; `warps` of them divide the depth.
//
// In mma.m16n8k16 a thread has rows g and g + 8 of one factor and column g of the other, for a quarter t of the depth. Here row g is
// the eighth g of a chunk, and so is column g: of one row of the weight, and of x. Of the 8 × 8 products only those of an eighth
// with itself are wanted. Rows g + 8 are those of the second row of a pair. So a lane multiplies what it has loaded itself,
// 16 neighbouring bytes, by x in the same place, and the tensor cores add up four lanes: 64 bytes, within one group. Where
// groups are smaller (FINE), four lanes exchange words first, so that each word is 16 bytes' share of all four.
//
// x lies in shared memory as the lanes need it, `slab` chunks at a time, and zeros behind its end. If all of x is one
// slab and nothing is shared (WHOLE), a block keeps x, goes on to the rows `stride` further, and loads their first chunks before it
// has added up the last of these.
template <typename T, int BITS, bool FINE, bool WHOLE, int MT, int PAIRS, int AHEAD>
__global__ void __launch_bounds__(512, MT * Operand<T>::PARTS == 1 && PAIRS * AHEAD <= 2 && !(FINE && BITS == 4) ? 2 : 1)
    int_linear_few(const T* x, const unsigned char* codes, const unsigned short* scales, const T* bias, T* out, long long n,
                   long long k, int m, int groups, int shift, int slab, int warps) {
  using Format = Operand<T>;
  constexpr int PARTS = Format::PARTS, ROWS = 2 * PAIRS;
  const int share = WHOLE ? 1 : warps;
  constexpr int REGS = 16 / BITS;  // pairs of a word; and 16-byte vectors of x for each lane and chunk
  constexpr int WORDS = 4 / REGS;  // of codes, for such a vector
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int piece = WHOLE ? 0 : warp % share, bytes = k * BITS / 8, chunks = (bytes + 511) / 512;
  const int block_rows = blockDim.x / 32 / share * ROWS, tile = warp / share * ROWS;
  const long long stride = gridDim.x * (long long)block_rows;
  long long block_row = blockIdx.x * (long long)block_rows;
  extern __shared__ uint4 staged[];  // [slab][MT][PARTS][REGS][32]

  // Addresses are those of the block, which all threads share, and 32 bits more. Rows behind the last are read from it, and
  // bytes behind a row's end from its end: what they are multiplied by is zero.
  codes += block_row * bytes, scales += block_row * groups;
  unsigned from[ROWS], worth[ROWS];
  const auto turn_to = [&](long long first_row) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const unsigned row = min((long long)(tile + r), n - 1 - first_row);
      from[r] = row * bytes, worth[r] = row * groups;
    }
  };
  turn_to(block_row);
  uint4 held[AHEAD][ROWS];
  unsigned short scale[AHEAD][ROWS];
  const auto load = [&](int s, int chunk) {
    const unsigned byte = min(chunk * 512 + lane * 16, bytes - 16);
    const unsigned at = min((FINE ? chunk * 32 + lane : chunk * 8 + g) >> shift, groups - 1);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      held[s][r] = read_as<past_l1>(reinterpret_cast<const uint4*>(codes + (from[r] + byte)));
      scale[s][r] = __ldg(scales + (worth[r] + at));
    }
  };
#pragma unroll
  for (int s = 0; s < AHEAD; ++s) load(s, piece + s * share);

  for (bool kept = false;; kept = true, block_row += stride) {
    const bool another = WHOLE && block_row + stride < n;
    float total[ROWS][MT] = {};
    for (int first = 0; first < (WHOLE ? 1 : chunks); first += WHOLE ? 1 : slab) {
      if (first) __syncthreads();  // the last slab has been read
      constexpr int EIGHTS = 32 * REGS;  // of a chunk
      for (int i = kept ? slab * EIGHTS * MT : threadIdx.x; i < slab * EIGHTS * MT; i += blockDim.x) {
        const int row = i / EIGHTS % MT, chunk = i / EIGHTS / MT, e = i % EIGHTS;
        const long long column = ((first + chunk) * (long long)EIGHTS + e) * 8;
        Eight<T, BITS> values;
        if (row < m && column < k) values.fetch(x + row * k + column);
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
          uint4* const to = staged + ((chunk * MT + row) * PARTS + p) * EIGHTS;
          const uint4 v = values.part[p];
          if (!FINE) {
            to[e % REGS * 32 + e / REGS] = v;
          } else if (BITS == 4) {  // a word is word e % 16 of four lanes
            to[e / 4 % 4 * 32 + e / 16 * 4 + e % 4] = v;
          } else {  // two words, 2e % 16 and the next
            const int word = e * 2 % 16, where = (word / 8 * 32 + e / 8 * 4 + word % 4) * 2 + word / 4 % 2;
            reinterpret_cast<uint2*>(to)[where] = make_uint2(v.x, v.y);
            reinterpret_cast<uint2*>(to)[where + 2] = make_uint2(v.z, v.w);
          }
        }
      }
      if (!kept) __syncthreads();

      float sum[ROWS][MT] = {};
      for (int chunk = first + piece; chunk < (WHOLE ? chunks : min(chunks, first + slab)); chunk += share * AHEAD) {
        const bool turn = another && chunk + AHEAD >= chunks;
        if (turn) {
          codes += stride * bytes, scales += stride * groups;
          turn_to(block_row + stride);
        }
#pragma unroll
        for (int s = 0; s < AHEAD; ++s) {
          uint4 words[ROWS];
          unsigned worths[ROWS];
#pragma unroll
          for (int r = 0; r < ROWS; ++r)
            words[r] = FINE ? transposed(held[s][r], t) : held[s][r], worths[r] = scale[s][r];
          load(s, turn ? s : chunk + (s + AHEAD) * share);

          float products[PAIRS][MT][4] = {};
          const auto add = [&](int word) {  // only an eighth with itself: column g is one of this thread's two, or none
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
              const unsigned code = FINE ? __shfl_sync(0xffffffffu, worths[r], (lane & 28) + word) : worths[r];
#pragma unroll
              for (int i = 0; i < MT; ++i) {
                float(&p)[4] = products[r / 2][i];
                const float product = g % 2 ? p[r % 2 * 2 + 1] : p[r % 2 * 2];
                sum[r][i] = fmaf(Format::GAIN * product, scale_value(code), sum[r][i]);
                p[r % 2 * 2] = p[r % 2 * 2 + 1] = 0.0f;
              }
            }
          };
          const uint4* const here = staged + (chunk + s * share - first) * EIGHTS * MT * PARTS + lane;
#pragma unroll
          for (int q = 0; q < REGS; ++q) {
            uint4 values[MT][PARTS];
#pragma unroll
            for (int i = 0; i < MT * PARTS; ++i) values[i / PARTS][i % PARTS] = here[i * EIGHTS + q * 32];
#pragma unroll
            for (int h = 0; h < WORDS; ++h) {
#pragma unroll
              for (int pair = 0; pair < PAIRS; ++pair) {
                unsigned upper[REGS], lower[REGS];
                Format::decode(of(words[2 * pair], q * WORDS + h), upper);
                Format::decode(of(words[2 * pair + 1], q * WORDS + h), lower);
#pragma unroll
                for (int j = 0; j < REGS; j += 2) {
                  const unsigned a[4] = {upper[j], lower[j], upper[j + 1], lower[j + 1]};
#pragma unroll
                  for (int i = 0; i < MT; ++i)
#pragma unroll
                    for (int p = PARTS - 1; p >= 0; --p)
                      Format::mma(products[pair][i], a, of(values[i][p], h * REGS + j), of(values[i][p], h * REGS + j + 1));
                }
              }
              if (FINE) add(q * WORDS + h);
            }
          }
          if (!FINE) add(0);
        }
      }
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int i = 0; i < MT; ++i) total[r][i] += sum[r][i];
    }

    float mine = 0.0f;  // lane r · MT + i has row r for row i of x
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        float v = g / 2 == t ? total[r][i] : 0.0f;
#pragma unroll
        for (int other = 16; other; other /= 2) v += __shfl_xor_sync(0xffffffffu, v, other);
        if (lane == r * MT + i) mine = v;
      }
    if (share > 1) {
      float* const sums = reinterpret_cast<float*>(staged);
      __syncthreads();  // the last slab has been read
      if (lane < ROWS * MT) sums[warp * ROWS * MT + lane] = mine;
      __syncthreads();
      if (piece == 0 && lane < ROWS * MT)
        for (int other = 1; other < share; ++other) mine += sums[(warp + other) * ROWS * MT + lane];
    }
    const long long row = block_row + tile + lane / MT;
    if (piece == 0 && lane < ROWS * MT && row < n && lane % MT < m)
      out[lane % MT * n + row] = rounded<T>(mine + (bias ? widen(bias[row]) : 0.0f));
    if (!another) break;
  }
}

// More rows of x: a block has 8 · NT of them and 128 of the weight. x is staged in shared memory, STEP columns at a time; each of the
// four warps reads the codes of its own 32 rows, a step ahead. Here a row of the weight stands for a row of the 16 × 8 product
// and a row of x for a column; sums are scaled every 32 columns.
template <typename T, int BITS, int NT>
__global__ void __launch_bounds__(128)
    int_linear_tiles(const T* x, const unsigned char* codes, const unsigned short* scales, const T* bias, T* out, long long m,
                     long long n, long long k, int groups, int shift) {
  using Format = Operand<T>;
  constexpr int RT = 2, COLUMNS = 8 * NT, PARTS = Format::PARTS, REGS = 16 / BITS;
  constexpr int SUB = 8 / BITS, STEP = 32 * SUB;       // 32 bytes of a row
  constexpr int EACH = (COLUMNS * 4 * SUB + 127) / 128;  // eights of x that a thread stages
  constexpr int WORDS = 2 / SUB;                       // of eight codes
  __shared__ uint4 staged[2][PARTS][SUB][COLUMNS][4];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int depth = k, steps = (depth + STEP - 1) / STEP;
  const long long first = (blockIdx.x * 4LL + warp) * (16 * RT), bytes = k * BITS / 8;

  for (long long top = blockIdx.y * (long long)COLUMNS; top < m; top += gridDim.y * (long long)COLUMNS) {
    Eight<T, BITS> values[EACH];
    unsigned words[2 * RT][SUB][WORDS];
    unsigned short scale[2 * RT][SUB];
    const auto fetch = [&](int step) {
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        const int e = i * 128 + threadIdx.x, column = step * STEP + e / 4 / COLUMNS * 32 + e % 4 * 8;
        const long long row = top + e / 4 % COLUMNS;
        values[i] = {};
        if (e < COLUMNS * 4 * SUB && row < m && column < depth) values[i].fetch(x + row * k + column);
      }
#pragma unroll
      for (int r = 0; r < 2 * RT; ++r)
#pragma unroll
        for (int b = 0; b < SUB; ++b) {
          const long long row = min(first + r * 8 + g, n - 1);
          const int column = step * STEP + b * 32 + t * 8;
          const unsigned* const from = reinterpret_cast<const unsigned*>(codes + row * bytes + column * BITS / 8);
#pragma unroll
          for (int w = 0; w < WORDS; ++w) words[r][b][w] = column < depth ? __ldg(from + w) : 0u;
          scale[r][b] = __ldg(scales + row * groups + min((step * STEP + b * 32) >> shift, groups - 1));
        }
    };

    float sum[RT][NT][4] = {};
    fetch(0);
    for (int step = 0; step < steps; ++step) {
      auto& here = staged[step % 2];
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        const int e = i * 128 + threadIdx.x;
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
          if (e < COLUMNS * 4 * SUB) here[p][e / 4 / COLUMNS][e / 4 % COLUMNS][e % 4] = values[i].part[p];
      }
      __syncthreads();  // and nobody reads the other half any more
      unsigned rows[2 * RT][SUB][4];
      float worth[2 * RT][SUB];
#pragma unroll
      for (int r = 0; r < 2 * RT; ++r)
#pragma unroll
        for (int b = 0; b < SUB; ++b) {
          worth[r][b] = scale_value(scale[r][b]);
#pragma unroll
          for (int w = 0; w < WORDS; ++w) {
            unsigned pairs[REGS];
            Format::decode(words[r][b][w], pairs);
#pragma unroll
            for (int i = 0; i < REGS; ++i) rows[r][b][w * REGS + i] = pairs[i];
          }
        }
      if (step + 1 < steps) fetch(step + 1);
#pragma unroll
      for (int b = 0; b < SUB; ++b)
#pragma unroll
        for (int c = 0; c < NT; ++c) {
          uint4 column[PARTS];
#pragma unroll
          for (int p = 0; p < PARTS; ++p) column[p] = here[p][b][c * 8 + g][t];
#pragma unroll
          for (int r = 0; r < RT; ++r) {
            float products[4] = {};
#pragma unroll
            for (int p = PARTS - 1; p >= 0; --p)
#pragma unroll
              for (int j = 0; j < 4; j += 2) {
                const unsigned(&u)[4] = rows[2 * r][b], (&l)[4] = rows[2 * r + 1][b];
                const unsigned a[4] = {u[j], l[j], u[j + 1], l[j + 1]};
                Format::mma(products, a, of(column[p], j), of(column[p], j + 1));
              }
#pragma unroll
            for (int i = 0; i < 4; ++i)
              sum[r][c][i] = fmaf(Format::GAIN * products[i], worth[2 * r + i / 2][b], sum[r][c][i]);
          }
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

// Any group, any alignment, any depth: a warp for each row of the weight and eight rows of x.
template <typename T, int BITS>
__global__ void int_linear_any(const T* x, const unsigned char* codes, const unsigned short* scales, const T* bias, T* out,
                               long long m, long long n, long long k, long long group, long long groups) {
  constexpr int COLUMNS = 8, RUN = 32;  // long sums lose bits: sum runs, then the runs
  const int lane = threadIdx.x % 32;
  const long long row = blockIdx.x * (long long)(blockDim.x / 32) + threadIdx.x / 32;
  if (row >= n) return;
  const long long ahead = 32 / group, further = 32 % group;  // groups, and codes in a group, from one column to the next
  codes += row * ((k * BITS + 7) / 8);
  for (long long top = blockIdx.y * (long long)COLUMNS; top < m; top += gridDim.y * (long long)COLUMNS) {
    float total[COLUMNS] = {}, run[COLUMNS] = {};
    long long at = lane / group, inside = lane % group;
    int summed = 0;
    for (long long c = lane; c < k; c += 32) {
      const int code = BITS == 8 ? codes[c] - 128 : (codes[c / 2] >> c % 2 * 4 & 15) - 8;
      const float weight = (float)code * scale_value(scales[row * groups + at]);
#pragma unroll
      for (int i = 0; i < COLUMNS; ++i)
        if (top + i < m) run[i] = fmaf(widen(x[(top + i) * k + c]), weight, run[i]);
      at += ahead, inside += further;
      if (inside >= group) inside -= group, ++at;
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
