// Layers that a hypernetwork generates, for Hopper GPUs: the three kernels of `generated_kernel.py` with the matrix
// instructions of this chip (wgmma).
//
//     sum over terms   Σₖ zₖ (a Wₖ + bₖ): the layer itself, or with Wₖᵀ its derivative by inputs, which also gives
//                      ⟨a Wₖᵀ, x⟩, the derivative by zₖ
//     by weight        xᵀ (zₖ dy), for two terms at a time
//
// A block has two groups of four warps, each with 64 rows × 128 columns. Left factors are in registers. Right
// factors come in chunks of 64 inner × 128 columns, 16 KB each, which lie in device memory as wgmma reads them:
// tiles of 8 columns × 8 inner numbers, first along the columns, then along the inner axis. One thread copies them
// into a ring of stages in shared memory, far ahead of their use.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "xla/ffi/api/ffi.h"

namespace {

constexpr int ROWS = 128, COLUMNS = 128, INNER = 64, THREADS = 256;
constexpr int CHUNK = INNER * COLUMNS, CHUNK_BYTES = 2 * CHUNK;
constexpr int STAGES = 11, LAG = 3;  // a stage is filled again this many chunks after its last one was begun
constexpr int X_STRIDE = COLUMNS + 8;  // of a row of x in shared memory: no two in the same banks

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void create_barrier(uint32_t barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void wait_for(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void fetch(uint32_t target, const void* source, uint32_t barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(CHUNK_BYTES) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
               "l"(source), "r"(CHUNK_BYTES), "r"(barrier)
               : "memory");
}

// Where wgmma finds a right factor of 16 inner × 128 columns: tiles of 128 bytes, one after another along the
// columns, 2048 bytes apart along the inner axis.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  constexpr uint64_t along_inner = 16 * COLUMNS, along_columns = 128;
  return (address & 0x3ffff) >> 4 | (along_inner >> 4) << 16 | (along_columns >> 4) << 32;
}

__device__ __forceinline__ void begin_multiplying() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void wait_multiplied() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// d = a b, or d + a b, for 64 rows × 128 columns × 16.
template <typename T>
__device__ __forceinline__ void multiply(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int add) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
  else
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}

// The ring of stages. Chunk number c is in stage c % STAGES.
struct Ring {
  uint32_t data, full, empty;  // addresses in shared memory

  __device__ void create() const {
    if (threadIdx.x == 0)
      for (int s = 0; s < STAGES; ++s) create_barrier(full + 8 * s, 1), create_barrier(empty + 8 * s, THREADS / 32);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
  }
  __device__ uint32_t stage(int chunk) const { return data + chunk % STAGES * CHUNK_BYTES; }
  __device__ void fill(int chunk, const void* source) const {
    fetch(stage(chunk), source, full + 8 * (chunk % STAGES));
  }
  __device__ void wait_full(int chunk) const { wait_for(full + 8 * (chunk % STAGES), chunk / STAGES % 2); }
  __device__ void wait_empty(int chunk) const { wait_for(empty + 8 * (chunk % STAGES), chunk / STAGES % 2); }
  __device__ void release(int chunk) const {
    if (threadIdx.x % 32 == 0) arrive(empty + 8 * (chunk % STAGES));
  }
};

struct Layer {
  int samples, terms, columns, inner;
};

__device__ __forceinline__ float2 floats(uint32_t bfloats) {
  return make_float2(__uint_as_float(bfloats << 16), __uint_as_float(bfloats & 0xffff0000u));
}

// y of 128 samples × 128 columns. T is the type of the factors. BY_INPUTS: y is dx, `extra` is x, and the derivative by z is
// written to `d_terms` [parts of the columns, terms, samples]; else `extra` is the bias [terms, columns].
template <typename T, int CHUNKS, bool BY_INPUTS>
__global__ void __launch_bounds__(THREADS, 1)
    sum_over_terms(const T* __restrict__ left, const float* __restrict__ terms, const T* __restrict__ weight,
                   const void* __restrict__ extra, float* __restrict__ y, float* __restrict__ d_terms, Layer layer) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) uint64_t barriers[2][STAGES];
  const Ring ring = {shared_address(memory), shared_address(barriers[0]), shared_address(barriers[1])};
  auto beside = memory + STAGES * CHUNK_BYTES;
  auto bias = reinterpret_cast<float*>(beside);
  auto xs = reinterpret_cast<__nv_bfloat16*>(beside);

  const int parts = layer.columns / COLUMNS, blocks = (layer.samples + ROWS - 1) / ROWS;
  const int part = blockIdx.x % parts, block = blockIdx.x / parts % blocks, run = blockIdx.x / (parts * blocks);
  const int first = min(block * ROWS, layer.samples - ROWS);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const int row = 16 * warp + group;  // and row + 8

  const T* chunks = weight + (static_cast<size_t>(run) * layer.terms * parts + part) * CHUNKS * CHUNK;
  const int count = layer.terms * CHUNKS;
  auto source = [&](int chunk) {
    return chunks + (static_cast<size_t>(chunk / CHUNKS) * parts * CHUNKS + chunk % CHUNKS) * CHUNK;
  };
  ring.create();
  if (threadIdx.x == 0)
    for (int chunk = 0; chunk < min(STAGES, count); ++chunk) ring.fill(chunk, source(chunk));

  const size_t sample = static_cast<size_t>(run) * layer.samples + first + row;
  uint32_t a[4 * CHUNKS][4];
#pragma unroll
  for (int k = 0; k < 4 * CHUNKS; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[k][i] = *reinterpret_cast<const uint32_t*>(left + (sample + i % 2 * 8) * (CHUNKS * INNER) + 16 * k +
                                                   i / 2 * 8 + 2 * pair);
  if constexpr (BY_INPUTS) {
    auto x = static_cast<const __nv_bfloat16*>(extra) +
             (static_cast<size_t>(run) * layer.samples + first) * layer.columns + part * COLUMNS;
    for (int i = threadIdx.x; i < ROWS * COLUMNS / 8; i += THREADS) {
      const int r = i / (COLUMNS / 8), c = i % (COLUMNS / 8) * 8;
      *reinterpret_cast<uint4*>(xs + r * X_STRIDE + c) =
          *reinterpret_cast<const uint4*>(x + static_cast<size_t>(r) * layer.columns + c);
    }
  } else {
    auto b = static_cast<const float*>(extra) + static_cast<size_t>(run) * layer.terms * layer.columns + part * COLUMNS;
    for (int i = threadIdx.x; i < layer.terms * COLUMNS; i += THREADS)
      bias[i] = b[static_cast<size_t>(i / COLUMNS) * layer.columns + i % COLUMNS];
  }
  __syncthreads();

  const float* zs = terms + static_cast<size_t>(run) * layer.terms * layer.samples + first + row;
  float total[64], d[64];
#pragma unroll
  for (int j = 0; j < 64; ++j) total[j] = 0.0f;

  int chunk = 0;
  for (int term = 0; term < layer.terms; ++term) {
    const float z[2] = {zs[static_cast<size_t>(term) * layer.samples], zs[static_cast<size_t>(term) * layer.samples + 8]};
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c, ++chunk) {
      ring.wait_full(chunk);
      begin_multiplying();
      const uint64_t b = descriptor(ring.stage(chunk));
#pragma unroll
      for (int k = 0; k < 4; ++k) multiply<T>(d, a[4 * c + k], b + 256 * k, c + k > 0);
      commit();
      if (c > 0) {
        wait_multiplied<1>();
        ring.release(chunk - 1);
      }
      if (threadIdx.x == 0 && chunk >= LAG && chunk - LAG + STAGES < count) {
        ring.wait_empty(chunk - LAG);
        ring.fill(chunk - LAG + STAGES, source(chunk - LAG + STAGES));
      }
      __syncwarp();
    }
    wait_multiplied<0>();
    ring.release(chunk - 1);
    if constexpr (BY_INPUTS) {
      float by_z[2] = {};
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 x = floats(*reinterpret_cast<const uint32_t*>(xs + (row + 8 * i) * X_STRIDE + 8 * j + 2 * pair));
          const int at = 4 * j + 2 * i;
          by_z[i] += d[at] * x.x + d[at + 1] * x.y;
          total[at] += z[i] * d[at], total[at + 1] += z[i] * d[at + 1];
        }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        by_z[i] += __shfl_xor_sync(~0u, by_z[i], 1);
        by_z[i] += __shfl_xor_sync(~0u, by_z[i], 2);
      }
      if (pair < 2)
        d_terms[((static_cast<size_t>(run) * parts + part) * layer.terms + term) * layer.samples + first + row +
                8 * pair] = pair ? by_z[1] : by_z[0];
    } else {
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const float2 b = *reinterpret_cast<const float2*>(bias + term * COLUMNS + 8 * j + 2 * pair);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = 4 * j + 2 * i;
          total[at] += z[i] * (d[at] + b.x), total[at + 1] += z[i] * (d[at + 1] + b.y);
        }
      }
    }
  }
#pragma unroll
  for (int j = 0; j < 16; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float2*>(y + (sample + 8 * i) * layer.columns + part * COLUMNS + 8 * j + 2 * pair) =
          make_float2(total[4 * j + 2 * i], total[4 * j + 2 * i + 1]);
}

__device__ __forceinline__ uint32_t scaled(uint32_t x, float2 z) {
  const float2 both = floats(x);
  const __nv_bfloat162 pair = __floats2bfloat162_rn(both.x * z.x, both.y * z.y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// dW of 128 inputs × 128 outputs × 2 terms. Samples are the inner axis, filled up to whole chunks. Of each chunk of
// x [inputs, samples] a thread reads 16 samples in a row, which are those of its fragments if sample
// 16 t + 4 s + 2 h + e is number 8 h + 2 t + e of the s-th 16: so the right factor must be ordered.
__global__ void __launch_bounds__(THREADS, 1)
    by_weight(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ d_y,
              const float* __restrict__ terms, float* __restrict__ d_weight, Layer layer, int inputs) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ __align__(8) uint64_t barriers[2][STAGES];
  const Ring ring = {shared_address(memory), shared_address(barriers[0]), shared_address(barriers[1])};

  const int parts = layer.columns / COLUMNS, blocks = inputs / ROWS, pairs = layer.terms / 2;
  int index = blockIdx.x;
  const int part = index % parts;
  index /= parts;
  const int block = index % blocks;
  index /= blocks;
  const int term = index % pairs * 2, run = index / pairs;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const int row = block * ROWS + 16 * warp + group;
  const int count = layer.samples / INNER;

  const __nv_bfloat16* chunks = d_y + (static_cast<size_t>(run) * count * parts + part) * CHUNK;
  auto source = [&](int chunk) { return chunks + static_cast<size_t>(chunk) * parts * CHUNK; };
  ring.create();
  if (threadIdx.x == 0)
    for (int chunk = 0; chunk < min(STAGES, count); ++chunk) ring.fill(chunk, source(chunk));

  const __nv_bfloat16* xs = x + (static_cast<size_t>(run) * inputs + row) * layer.samples + 16 * pair;
  auto zs = reinterpret_cast<float*>(memory + STAGES * CHUNK_BYTES);  // of both terms
  for (int i = threadIdx.x; i < 2 * layer.samples; i += THREADS)
    zs[i] = terms[(static_cast<size_t>(run) * layer.terms + term) * layer.samples + i];
  __syncthreads();
  uint4 next[2][2];  // rows `row` and `row + 8`, 8 samples each
  auto load = [&](int chunk) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        next[i][j] = *reinterpret_cast<const uint4*>(xs + static_cast<size_t>(8 * i) * layer.samples + chunk * INNER + 8 * j);
  };

  float d[2][64];
#pragma unroll
  for (int j = 0; j < 64; ++j) d[0][j] = d[1][j] = 0.0f;
  uint32_t a[2][4][4];
  load(0);
  for (int chunk = 0; chunk < count; ++chunk) {
    uint32_t raw[2][8];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        raw[i][4 * j] = next[i][j].x, raw[i][4 * j + 1] = next[i][j].y;
        raw[i][4 * j + 2] = next[i][j].z, raw[i][4 * j + 3] = next[i][j].w;
      }
    if (chunk + 1 < count) load(chunk + 1);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float4 z[4];
#pragma unroll
      for (int s = 0; s < 4; ++s)
        z[s] = *reinterpret_cast<const float4*>(zs + t * layer.samples + chunk * INNER + 16 * pair + 4 * s);
      if (t == 0) {
        if (chunk > 0) wait_multiplied<1>();  // the first term of the chunk before: its left factors are free
      } else if (chunk > 0) {
        wait_multiplied<1>();  // and the second's
        ring.release(chunk - 1);
      }
#pragma unroll
      for (int s = 0; s < 4; ++s) {
        const float2 low = make_float2(z[s].x, z[s].y), high = make_float2(z[s].z, z[s].w);
        a[t][s][0] = scaled(raw[0][2 * s], low), a[t][s][1] = scaled(raw[1][2 * s], low);
        a[t][s][2] = scaled(raw[0][2 * s + 1], high), a[t][s][3] = scaled(raw[1][2 * s + 1], high);
      }
      if (t == 0) ring.wait_full(chunk);
      begin_multiplying();
      const uint64_t b = descriptor(ring.stage(chunk));
#pragma unroll
      for (int s = 0; s < 4; ++s) multiply<__nv_bfloat16>(d[t], a[t][s], b + 256 * s, 1);
      commit();
    }
    if (threadIdx.x == 0 && chunk >= LAG && chunk - LAG + STAGES < count) {
      ring.wait_empty(chunk - LAG);
      ring.fill(chunk - LAG + STAGES, source(chunk - LAG + STAGES));
    }
    __syncwarp();
  }
  wait_multiplied<0>();
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int j = 0; j < 16; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        *reinterpret_cast<float2*>(d_weight +
                                   ((static_cast<size_t>(run) * inputs + row + 8 * i) * layer.terms + term + t) *
                                       layer.columns +
                                   part * COLUMNS + 8 * j + 2 * pair) =
            make_float2(d[t][4 * j + 2 * i], d[t][4 * j + 2 * i + 1]);
}

// ---------------------------------------------------------------------------------------------------------------
// Acting: three generated layers, 256 → 256 → 128 → up to 8, of 16 samples in one kernel. All it does is to read the
// weights, once, as fast as memory gives them. A cluster of 8 blocks does the 16 samples of a run: each block has an
// eighth of the outputs of the first two layers, and of the third what its own outputs of the second contribute.
// Weights lie in the order in which threads read them, 16 bytes at a time (see `generated_hopper.Actor`).

constexpr int ACT_BLOCKS = 8, ACT_ROWS = 16, ACT_INPUTS = 256, ACT_HIDDEN = 128, ACT_OUTPUTS = 8, ACT_TERMS = 26;
constexpr int ACT_FIRST = ACT_INPUTS / ACT_BLOCKS, ACT_SECOND = ACT_HIDDEN / ACT_BLOCKS;  // outputs of a block
constexpr int ACT_STRIDE = ACT_INPUTS + 8, ACT_SUMS = ACT_FIRST + 4;

struct Acting {
  __half first[ACT_ROWS][ACT_STRIDE], second[ACT_ROWS][ACT_STRIDE];  // left factors
  __half third[ACT_ROWS][ACT_SECOND + 8];
  float z[ACT_TERMS][ACT_ROWS];
  float sums[8][ACT_ROWS][ACT_SUMS];
  float numbers[ACT_BLOCKS][ACT_ROWS][ACT_OUTPUTS];  // the blocks' contributions to the third layer
};

__device__ __forceinline__ void multiply_small(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t address_in_block(const void* p, int block) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(p)), "r"(block));
  return there;
}

__device__ __forceinline__ void meet() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The weights of one warp for one layer, read some terms ahead of their use.
template <int TILES, int AHEAD>
struct Stream {
  const uint4* source;
  uint4 ring[AHEAD][TILES];

  __device__ __forceinline__ void load(int term) {
#pragma unroll
    for (int j = 0; j < TILES; ++j) ring[term % AHEAD][j] = __ldcs(source + (term * TILES + j) * 32);
  }
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int term = 0; term < AHEAD; ++term) load(term);
  }
  // Adds Σₖ zₖ (a Wₖ) of this warp's 32 inputs to its sums in shared memory.
  __device__ __forceinline__ void run(Acting& memory, const __half (*left)[ACT_STRIDE]) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
    uint32_t a[2][4];
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[k][i] = *reinterpret_cast<const uint32_t*>(
            &left[group + i % 2 * 8][32 * warp + 16 * k + i / 2 * 8 + 2 * pair]);
    float total[TILES][4] = {};
#pragma unroll
    for (int term = 0; term < ACT_TERMS; ++term) {
      const float z[2] = {memory.z[term][group], memory.z[term][group + 8]};
#pragma unroll
      for (int j = 0; j < TILES; ++j) {
        const uint4 b = ring[term % AHEAD][j];
        float d[4] = {};
        multiply_small(d, a[0], b.x, b.y);
        multiply_small(d, a[1], b.z, b.w);
#pragma unroll
        for (int i = 0; i < 4; ++i) total[j][i] += z[i / 2] * d[i];
      }
      if (term + AHEAD < ACT_TERMS) load(term + AHEAD);
    }
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        *reinterpret_cast<float2*>(&memory.sums[warp][group + 8 * i][8 * j + 2 * pair]) =
            make_float2(total[j][2 * i], total[j][2 * i + 1]);
  }
};

// tanh of the sum of all warps' parts and the bias, for outputs `column` and the next of a row.
__device__ __forceinline__ __half2 finished(const Acting& memory, const float* bias, int width, int row, int column) {
  float y[2] = {};
#pragma unroll
  for (int w = 0; w < 8; ++w) y[0] += memory.sums[w][row][column], y[1] += memory.sums[w][row][column + 1];
#pragma unroll
  for (int k = 0; k < ACT_TERMS; ++k) {
    const float2 b = __ldg(reinterpret_cast<const float2*>(bias + k * width + column));
    y[0] += memory.z[k][row] * b.x, y[1] += memory.z[k][row] * b.y;
  }
  return __floats2half2_rn(tanhf(y[0]), tanhf(y[1]));
}

// RESIDENT blocks share a multiprocessor; each reads so many terms ahead of their use.
template <int RESIDENT, int FIRST_AHEAD, int SECOND_AHEAD>
__global__ void __cluster_dims__(ACT_BLOCKS, 1, 1) __launch_bounds__(THREADS, RESIDENT)
    act(const __half* __restrict__ x, const float* __restrict__ terms, const uint4* __restrict__ first_weight,
        const float* __restrict__ first_bias, const uint4* __restrict__ second_weight,
        const float* __restrict__ second_bias, const uint2* __restrict__ third_weight,
        const float* __restrict__ third_bias, float* __restrict__ numbers, int rows) {
  extern __shared__ __align__(128) unsigned char raw[];
  Acting& memory = *reinterpret_cast<Acting*>(raw);
  const int block = blockIdx.x % ACT_BLOCKS, cluster = blockIdx.x / ACT_BLOCKS;
  const int run = cluster / (rows / ACT_ROWS), sample = cluster * ACT_ROWS;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const int part = (run * ACT_BLOCKS + block) * 8 + warp;  // of the weights

  Stream<4, FIRST_AHEAD> first = {first_weight + static_cast<size_t>(part) * ACT_TERMS * 4 * 32 + lane};
  first.begin();
  for (int i = threadIdx.x; i < ACT_ROWS * ACT_INPUTS / 8; i += THREADS)
    *reinterpret_cast<uint4*>(&memory.first[i / 32][i % 32 * 8]) =
        *reinterpret_cast<const uint4*>(x + static_cast<size_t>(sample) * ACT_INPUTS + 8 * i);
  for (int i = threadIdx.x; i < ACT_ROWS * ACT_TERMS; i += THREADS)
    memory.z[i % ACT_TERMS][i / ACT_TERMS] = terms[static_cast<size_t>(sample) * ACT_TERMS + i];
  meet();  // every block has begun
  first.run(memory, memory.first);

  Stream<2, SECOND_AHEAD> second = {second_weight + static_cast<size_t>(part) * ACT_TERMS * 2 * 32 + lane};
  second.begin();
  __syncthreads();
  const int row = threadIdx.x / 16, column = threadIdx.x % 16 * 2;
  const float* bias = first_bias + static_cast<size_t>(run) * ACT_TERMS * ACT_INPUTS + block * ACT_FIRST;
  const __half2 hidden = finished(memory, bias, ACT_INPUTS, row, column);
#pragma unroll
  for (int b = 0; b < ACT_BLOCKS; ++b)
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(
                     address_in_block(&memory.second[row][block * ACT_FIRST + column], b)),
                 "r"(*reinterpret_cast<const uint32_t*>(&hidden))
                 : "memory");
  meet();
  second.run(memory, memory.second);

  uint2 last[4];  // the third layer's terms are shared among the warps
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (warp + 8 * i < ACT_TERMS)
      last[i] = __ldcs(third_weight + (static_cast<size_t>(run * ACT_BLOCKS + block) * ACT_TERMS + warp + 8 * i) * 32 + lane);
  __syncthreads();
  if (column < ACT_SECOND) {
    const float* b = second_bias + static_cast<size_t>(run) * ACT_TERMS * ACT_HIDDEN + block * ACT_SECOND;
    *reinterpret_cast<__half2*>(&memory.third[row][column]) = finished(memory, b, ACT_HIDDEN, row, column);
  }
  __syncthreads();
  uint32_t a[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    a[i] = *reinterpret_cast<const uint32_t*>(&memory.third[group + i % 2 * 8][i / 2 * 8 + 2 * pair]);
  float total[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int term = warp + 8 * i;
    if (term < ACT_TERMS) {
      float d[4] = {};
      multiply_small(d, a, last[i].x, last[i].y);
#pragma unroll
      for (int j = 0; j < 4; ++j) total[j] += memory.z[term][group + j / 2 * 8] * d[j];
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
    *reinterpret_cast<float2*>(&memory.sums[warp][group + 8 * i][2 * pair]) = make_float2(total[2 * i], total[2 * i + 1]);
  __syncthreads();
  if (threadIdx.x < ACT_ROWS * ACT_OUTPUTS) {
    const int r = threadIdx.x / ACT_OUTPUTS, c = threadIdx.x % ACT_OUTPUTS;
    float y = 0.0f;
#pragma unroll
    for (int w = 0; w < 8; ++w) y += memory.sums[w][r][c];
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in_block(&memory.numbers[block][r][c], 0)), "f"(y)
                 : "memory");
  }
  meet();
  if (block == 0 && threadIdx.x < ACT_ROWS * ACT_OUTPUTS) {
    const int r = threadIdx.x / ACT_OUTPUTS, c = threadIdx.x % ACT_OUTPUTS;
    float y = 0.0f;
#pragma unroll
    for (int b = 0; b < ACT_BLOCKS; ++b) y += memory.numbers[b][r][c];
#pragma unroll
    for (int k = 0; k < ACT_TERMS; ++k)
      y += memory.z[k][r] * third_bias[(static_cast<size_t>(run) * ACT_TERMS + k) * ACT_OUTPUTS + c];
    numbers[static_cast<size_t>(sample + r) * ACT_OUTPUTS + c] = y;
  }
}

namespace ffi = xla::ffi;
using Halves = ffi::Buffer<ffi::F16>;
using Bfloats = ffi::Buffer<ffi::BF16>;
using Floats = ffi::Buffer<ffi::F32>;

ffi::Error error_of(cudaError_t status) {
  return status == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(status));
}

// The last axis but `back` of an array, and the product of all axes before its last `axes`.
template <typename Buffer>
int axis(const Buffer& x, int back) {
  return static_cast<int>(x.dimensions()[x.dimensions().size() - 1 - back]);
}

template <typename Buffer>
int runs_of(const Buffer& x, int axes) {
  int64_t runs = 1;
  for (size_t i = 0; i + axes < x.dimensions().size(); ++i) runs *= x.dimensions()[i];
  return static_cast<int>(runs);
}

template <typename T, int CHUNKS, bool BY_INPUTS>
ffi::Error launch_sum(cudaStream_t stream, const void* left, const float* terms, const void* weight, const void* extra,
                      float* y, float* d_terms, Layer layer, int runs) {
  const auto kernel = sum_over_terms<T, CHUNKS, BY_INPUTS>;
  const int beside = BY_INPUTS ? ROWS * X_STRIDE * 2 : layer.terms * COLUMNS * 4;
  const int bytes = STAGES * CHUNK_BYTES + beside;
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return error_of(status);
  const int blocks = runs * ((layer.samples + ROWS - 1) / ROWS) * (layer.columns / COLUMNS);
  kernel<<<blocks, THREADS, bytes, stream>>>(static_cast<const T*>(left), terms, static_cast<const T*>(weight), extra, y,
                                             d_terms, layer);
  return error_of(cudaGetLastError());
}

ffi::Error forward(cudaStream_t stream, Halves x, Floats terms, Halves weight, Floats bias, ffi::Result<Floats> y) {
  const Layer layer = {axis(x, 1), axis(terms, 1), axis(bias, 0), axis(x, 0)};
  const auto launch = layer.inner == 256 ? launch_sum<__half, 4, false> : launch_sum<__half, 2, false>;
  return launch(stream, x.untyped_data(), terms.typed_data(), weight.untyped_data(), bias.untyped_data(),
                y->typed_data(), nullptr, layer, runs_of(x, 2));
}

ffi::Error by_inputs(cudaStream_t stream, Bfloats d_y, Bfloats x, Floats terms, Bfloats weight, ffi::Result<Floats> d_x,
                     ffi::Result<Floats> d_terms) {
  const Layer layer = {axis(x, 1), axis(terms, 1), axis(x, 0), axis(d_y, 0)};
  const auto launch = layer.inner == 256 ? launch_sum<__nv_bfloat16, 4, true> : launch_sum<__nv_bfloat16, 2, true>;
  return launch(stream, d_y.untyped_data(), terms.typed_data(), weight.untyped_data(), x.untyped_data(),
                d_x->typed_data(), d_terms->typed_data(), layer, runs_of(x, 2));
}

ffi::Error weight_gradient(cudaStream_t stream, Bfloats x, Bfloats d_y, Floats terms, ffi::Result<Floats> d_weight) {
  const Layer layer = {axis(x, 0), axis(terms, 1), axis(*d_weight, 0), 0};
  const int inputs = axis(x, 1), bytes = STAGES * CHUNK_BYTES + 2 * layer.samples * sizeof(float);
  const cudaError_t status = cudaFuncSetAttribute(by_weight, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return error_of(status);
  const int blocks = runs_of(x, 2) * (layer.columns / COLUMNS) * (inputs / ROWS) * (layer.terms / 2);
  by_weight<<<blocks, THREADS, bytes, stream>>>(static_cast<const __nv_bfloat16*>(x.untyped_data()),
                                                static_cast<const __nv_bfloat16*>(d_y.untyped_data()),
                                                terms.typed_data(), d_weight->typed_data(), layer, inputs);
  return error_of(cudaGetLastError());
}

ffi::Error acting(cudaStream_t stream, Halves x, Floats terms, Halves first_weight, Floats first_bias,
                  Halves second_weight, Floats second_bias, Halves third_weight, Floats third_bias,
                  ffi::Result<Floats> numbers) {
  const int rows = axis(x, 1), blocks = runs_of(x, 2) * (rows / ACT_ROWS) * ACT_BLOCKS;
  const int bytes = sizeof(Acting);
  // Few blocks read far ahead; many, so that all of them are there at once.
  const auto kernel = blocks <= 132 ? act<1, 5, 8> : act<3, 2, 4>;
  const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return error_of(status);
  kernel<<<blocks, THREADS, bytes, stream>>>(
      static_cast<const __half*>(x.untyped_data()), terms.typed_data(),
      static_cast<const uint4*>(first_weight.untyped_data()), first_bias.typed_data(),
      static_cast<const uint4*>(second_weight.untyped_data()), second_bias.typed_data(),
      static_cast<const uint2*>(third_weight.untyped_data()), third_bias.typed_data(), numbers->typed_data(), rows);
  return error_of(cudaGetLastError());
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(splagger_generated_forward, forward,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Ret<Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(splagger_generated_by_inputs, by_inputs,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Bfloats>()
                                  .Arg<Bfloats>()
                                  .Arg<Floats>()
                                  .Arg<Bfloats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(splagger_generated_by_weight, weight_gradient,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Bfloats>()
                                  .Arg<Bfloats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(splagger_generated_act, acting,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Arg<Halves>()
                                  .Arg<Floats>()
                                  .Ret<Floats>(),
                              {xla::ffi::Traits::kCmdBufferCompatible});
