// A GRU's two loops over time for Hopper GPUs: one kernel per loop, whose weights stay in registers.
//
// A cluster of four blocks computes 16 sequences of one run. Each block owns 64 of the 256 neurons. Its 8 warps
// hold the weights of these neurons as fragments of mma.m16n8k16. After every step, each block writes its results
// into the shared memory of all four blocks: they are the next step's left factor, in two alternating buffers. A
// barrier in each block counts the bytes that arrive; blocks do not synchronize in any other way during the loop.
// This is sufficient: a block that sends its part of step t + 1 has received all parts of step t. All blocks have
// therefore read step t - 1, whose buffer it overwrites.
// A sequence is cut at steps where all 16 sequences reset. Separate clusters compute the segments in parallel.
//
// Forward:   r, z = σ(Wx + Uh + b);  n = tanh(Wx + b + r·(Uh + c));  h' = n + z·(h - n)
// Backward:  dhₜ = d_outₜ + dhₜ₊₁·zₜ₊₁ + [dr, dz, dq]ₜ₊₁ U, with the gates' arguments stored by the forward loop.
//
// Arrays are row-major with the runs first. Arguments and their derivatives are [T, N, H, 4], in the order q, r, z, n.

#include "foreign.h"

namespace {

constexpr int H = 256, BLOCKS = 4, MINE = H / BLOCKS, ROWS = 16, WARPS = 8, THREADS = 32 * WARPS;
constexpr int GATE_STRIDE = 3 * MINE + 8;  // a row of a block's derivatives; the padding avoids bank conflicts
constexpr int SUM_STRIDE = MINE + 8;       // a row of partial sums, padded likewise
constexpr int STAGES = 5;                  // steps whose inputs are being copied, waiting or in use
static_assert(MINE == 8 * WARPS);

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ uint32_t address_in_block(uint32_t address, int block) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
  return there;
}

// Writes into another block's shared memory, and counts the bytes at its barrier. The barrier processes calls one
// by one, so calls should be few and large.
__device__ __forceinline__ void send(uint32_t address, uint32_t barrier, const uint32_t (&x)[4]) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   address),
               "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(barrier)
               : "memory");
}

// Does the same for many bytes from this block's shared memory.
__device__ __forceinline__ void send_copy(uint32_t address, uint32_t barrier, uint32_t from, int bytes) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   address),
               "r"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

__device__ __forceinline__ void create_barrier(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait_for(uint32_t barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Waits until all blocks of the cluster have arrived.
__device__ __forceinline__ void meet() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void load_factor(uint32_t (&a)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void multiply_half(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply_bfloat(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Both have an absolute error of about 2e-7, far less than the rounding of states to float16.
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// Computes 1 - 2 / (1 + exp 2x). If exp overflows to infinity, the quotient is 0.
__device__ __forceinline__ float tanh_of(float x) { return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x)); }

__device__ __forceinline__ uint32_t halves(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ __forceinline__ uint32_t bfloats(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ __forceinline__ float2 floats(uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// Computes a neuron's next state from its gates' arguments. The fused additions are written out, so that acting and
// updating compute the same bits.
__device__ __forceinline__ float next_state(float q, float r, float z, float n, float before) {
  const float candidate = tanh_of(fmaf(sigmoid(r), q, n));
  return fmaf(sigmoid(z), before - candidate, candidate);
}

// The work of one cluster: rows of a run, from one step to another.
struct Work {
  int run, row, from, to;
};

// Fills `masks` (bit i of masks[t]: sequence i resets at step t), and finds this cluster's segment. Segments begin
// at steps where all sequences reset; the last segment takes all remaining steps.
__device__ Work find_work(const uint8_t* resets, uint16_t* masks, int steps, int rows, int runs, int segments) {
  __shared__ int bounds[2];
  const int blocks_of_rows = rows / ROWS, cluster = blockIdx.x / BLOCKS;
  const int segment = cluster / (runs * blocks_of_rows), rest = cluster % (runs * blocks_of_rows);
  const int run = rest / blocks_of_rows, row = rest % blocks_of_rows * ROWS;
  const uint8_t* mine = resets + static_cast<size_t>(run) * steps * rows + row;
  for (int t = threadIdx.x; t < steps; t += THREADS) {
    const uint4 bytes = *reinterpret_cast<const uint4*>(mine + static_cast<size_t>(t) * rows);
    const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    uint32_t mask = 0;
    for (int i = 0; i < ROWS; ++i) mask |= (words[i / 4] >> (8 * (i % 4)) & 1u) << i;
    masks[t] = static_cast<uint16_t>(mask);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int from = segment == 0 ? 0 : steps, to = steps, seen = 0;
    for (int base = 0; base < steps; base += 32) {
      const int t = base + threadIdx.x;
      uint32_t begins = __ballot_sync(~0u, t > 0 && t < steps && masks[t] == 0xffff);
      for (; begins; begins &= begins - 1) {
        const int at = base + __ffs(begins) - 1;
        if (++seen == segment) from = at;
        if (seen == segment + 1 && segment + 1 < segments) to = at;
      }
    }
    if (threadIdx.x == 0) bounds[0] = from, bounds[1] = to;
  }
  __syncthreads();
  return {run, row, bounds[0], bounds[1]};
}

template <int INPUT_TILES, bool KEEP>
__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    forward_loop(const __half* __restrict__ xs, const uint8_t* __restrict__ resets,
                 const __half* __restrict__ hidden_weight, const __half* __restrict__ input_weight,
                 const float* __restrict__ bias, const float* __restrict__ state, float* __restrict__ hs,
                 __half* __restrict__ arguments, int steps, int rows, int runs, int segments) {
  constexpr int D = 16 * INPUT_TILES, INPUT_STRIDE = D + 8;
  __shared__ __align__(16) __half states[2][H / 8][ROWS][8];  // in the layout of ldmatrix
  __shared__ __align__(16) __half inputs[STAGES][ROWS][INPUT_STRIDE];
  __shared__ __align__(8) uint64_t arrived[2];
  extern __shared__ __align__(16) uint16_t masks[];

  const Work work = find_work(resets, masks, steps, rows, runs, segments);
  if (work.from >= work.to) return;  // the same for all blocks of a cluster
  const int block = blockIdx.x % BLOCKS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, pair = lane % 4;  // a result's fragment has rows group and group + 8
  const int neuron = block * MINE + warp * 8 + 2 * pair;

  uint32_t from_h[3][H / 16][2], from_x[3][INPUT_TILES][2];  // right factors, in the order r, z, n
  for (int gate = 0; gate < 3; ++gate) {
    const size_t column = static_cast<size_t>(work.run) * 3 * H + gate * H + block * MINE + warp * 8 + group;
#pragma unroll
    for (int k = 0; k < H / 16; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        from_h[gate][k][i] =
            *reinterpret_cast<const uint32_t*>(hidden_weight + column * H + 16 * k + 8 * i + 2 * pair);
#pragma unroll
    for (int k = 0; k < INPUT_TILES; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        from_x[gate][k][i] =
            *reinterpret_cast<const uint32_t*>(input_weight + column * D + 16 * k + 8 * i + 2 * pair);
  }
  float biases[4][2];  // in the order q, r, z, n
  for (int gate = 0; gate < 4; ++gate)
    for (int j = 0; j < 2; ++j)
      biases[gate][j] = bias[static_cast<size_t>(work.run) * 4 * H + gate * H + neuron + j];

  // The index of sequence i at step t.
  const size_t first_row = static_cast<size_t>(work.run) * steps * rows + work.row;
  auto at = [&](int t, int i) { return first_row + static_cast<size_t>(t) * rows + i; };

  auto fetch_inputs = [&](int t) {
    if (t < work.to)
      for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
        const int row = i / (D / 8), column = i % (D / 8) * 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                         shared_address(&inputs[t % STAGES][row][column])),
                     "l"(xs + at(t, row) * D + column)
                     : "memory");
      }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  // The left factors' addresses for ldmatrix: rows 0 … 15 of columns 0 … 7, then of 8 … 15.
  const int factor_row = lane % 16, factor_column = lane / 16 * 8;
  auto multiply_inputs = [&](int t, float (&sums)[3][4]) {
    const uint32_t address = shared_address(&inputs[t % STAGES][factor_row][factor_column]);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[gate][j] = 0.0f;
#pragma unroll
    for (int k = 0; k < INPUT_TILES; ++k) {
      uint32_t a[4];
      load_factor(a, address + 32 * k);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) multiply_half(sums[gate], a, from_x[gate][k]);
    }
  };

  float h[4];  // neurons `neuron` and the next, of row `group` and then of row `group + 8`
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int row = group + j / 2 * 8;
    const size_t index = (static_cast<size_t>(work.run) * rows + work.row + row) * H + neuron + j % 2;
    h[j] = work.from == 0 ? state[index] : 0.0f;
  }
  for (int i = threadIdx.x; i < ROWS * H; i += THREADS) {
    const int row = i / H, column = i % H;
    const bool empty = work.from > 0 || (masks[0] >> row & 1);
    const float x = state[(static_cast<size_t>(work.run) * rows + work.row + row) * H + column];
    states[0][column / 8][row][column % 8] = __float2half_rn(empty ? 0.0f : x);
  }
  for (int t = work.from; t < work.from + STAGES - 1; ++t) fetch_inputs(t);
  asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 3) : "memory");  // the inputs of two steps have arrived
  constexpr int ALL_BYTES = ROWS * H * sizeof(__half);
  const uint32_t barrier_here = shared_address(&arrived[0]);
  if (threadIdx.x == 0)
    for (int b = 0; b < 2; ++b) create_barrier(barrier_here + 8 * b), expect(barrier_here + 8 * b, ALL_BYTES);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  meet();  // all blocks have started, so they may write into each other
  float next[3][4];
  multiply_inputs(work.from, next);

  // Four threads own 8 neurons of two rows. Each of the four sends all of these to one block.
  const uint32_t there = address_in_block(shared_address(&states[0][block * 8 + warp][group][0]), pair);
  const uint32_t barrier_there = address_in_block(barrier_here, pair);
  constexpr uint32_t ROW_BYTES = 8 * sizeof(__half), BUFFER_BYTES = H / 8 * ROWS * ROW_BYTES;

  int now = 0;
  for (int t = work.from; t < work.to; ++t, now ^= 1) {
    float even[3][4], odd[3][4] = {};  // two independent sums per gate shorten the dependency chain
    float from_input[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      even[0][j] = next[0][j], even[1][j] = next[1][j], even[2][j] = 0.0f;
      from_input[j] = next[2][j];
    }
    if (t > work.from) {
      wait_for(barrier_here + 8 * now, (t - work.from - 1) / 2 % 2);
      if (threadIdx.x == 0) expect(barrier_here + 8 * now, ALL_BYTES);  // for the step after the next
    }
    const uint32_t address = shared_address(&states[now][factor_column / 8][factor_row][0]);
#pragma unroll
    for (int k = 0; k < H / 16; k += 2) {
      uint32_t a[4], b[4];
      load_factor(a, address + 2 * ROWS * ROW_BYTES * k);
      load_factor(b, address + 2 * ROWS * ROW_BYTES * (k + 1));
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) multiply_half(even[gate], a, from_h[gate][k]);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) multiply_half(odd[gate], b, from_h[gate][k + 1]);
    }

    const int here = masks[t], later = t + 1 < steps ? masks[t + 1] : 0;
    float kept[4], q[4], r[4], z[4], n[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = group + j / 2 * 8;
      const float before = here >> row & 1 ? 0.0f : h[j];
      q[j] = even[2][j] + odd[2][j] + biases[0][j % 2];
      r[j] = even[0][j] + odd[0][j] + biases[1][j % 2];
      z[j] = even[1][j] + odd[1][j] + biases[2][j % 2];
      n[j] = from_input[j] + biases[3][j % 2];
      h[j] = next_state(q[j], r[j], z[j], n[j], before);
      kept[j] = later >> row & 1 ? 0.0f : h[j];
    }
    if (t + 1 < work.to) {
      uint32_t rows_of_8[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t own = halves(kept[2 * i], kept[2 * i + 1]);
#pragma unroll
        for (int p = 0; p < 4; ++p) rows_of_8[i][p] = __shfl_sync(~0u, own, p, 4);
      }
      const uint32_t address = there + (now ^ 1) * BUFFER_BYTES, barrier = barrier_there + 8 * (now ^ 1);
      send(address, barrier, rows_of_8[0]);
      send(address + 8 * ROW_BYTES, barrier, rows_of_8[1]);
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 3) : "memory");  // the inputs up to step t + 1 have arrived
    __syncthreads();
    // While the other blocks' parts arrive, do all work that does not need them.
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const size_t index = at(t, group + 8 * i) * H + neuron;
      *reinterpret_cast<float2*>(hs + index) = make_float2(h[2 * i], h[2 * i + 1]);
      if (KEEP) {
        const int j = 2 * i;
        *reinterpret_cast<uint4*>(arguments + 4 * index) =
            make_uint4(halves(q[j], r[j]), halves(z[j], n[j]), halves(q[j + 1], r[j + 1]),
                       halves(z[j + 1], n[j + 1]));
      }
    }
    fetch_inputs(t + STAGES - 1);
    if (t + 1 < work.to) multiply_inputs(t + 1, next);
  }
}

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    backward_loop(const __half* __restrict__ arguments, const uint8_t* __restrict__ resets,
                  const __nv_bfloat16* __restrict__ weight, const float* __restrict__ state,
                  const float* __restrict__ hs, const float* __restrict__ d_hs,
                  __nv_bfloat16* __restrict__ d_arguments, float* __restrict__ d_state, int steps, int rows,
                  int runs, int segments) {
  constexpr int PARTS = 4, COLUMN_TILES = 4, INNER_TILES = 3 * MINE / 16;
  extern __shared__ __align__(16) unsigned char memory[];
  auto gates = reinterpret_cast<__nv_bfloat16(*)[BLOCKS][ROWS][GATE_STRIDE]>(memory);
  auto own = reinterpret_cast<__nv_bfloat16(*)[ROWS][GATE_STRIDE]>(gates + 2);  // what is sent, in alternating buffers
  auto sums = reinterpret_cast<float(*)[ROWS][SUM_STRIDE]>(own + 2);
  auto masks = reinterpret_cast<uint16_t*>(sums + PARTS);
  __shared__ __align__(8) uint64_t arrived[2];

  const Work work = find_work(resets, masks, steps, rows, runs, segments);
  if (work.from >= work.to) return;
  const int block = blockIdx.x % BLOCKS, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, pair = lane % 4;
  const int half = warp / PARTS, part = warp % PARTS;  // of the columns; of the inner axis

  // The weight is [3H, H] (r, z, q): its rows are the inner axis here.
  const auto weights = reinterpret_cast<const volatile uint16_t*>(weight + static_cast<size_t>(work.run) * 3 * H * H);
  uint32_t right[COLUMN_TILES][INNER_TILES][2];
#pragma unroll
  for (int c = 0; c < COLUMN_TILES; ++c) {
    const int column = block * MINE + 32 * half + 8 * c + group;
#pragma unroll
    for (int k = 0; k < INNER_TILES; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int inner = 16 * k + 8 * i + 2 * pair;  // gate · MINE + the neuron in that block
        const int row = inner / MINE * H + part * MINE + inner % MINE;
        right[c][k][i] = weights[row * H + column] | static_cast<uint32_t>(weights[(row + 1) * H + column]) << 16;
      }
    __syncwarp();  // all loads at once would need more registers than there are
  }

  // Outside the multiplication, a thread owns four neurons of one row.
  const int row = threadIdx.x / 16, neuron = threadIdx.x % 16 * 4;
  const size_t first_row = static_cast<size_t>(work.run) * steps * rows + work.row + row;
  auto at = [&](int t) { return (first_row + static_cast<size_t>(t) * rows) * H + block * MINE + neuron; };
  const size_t state_index =
      (static_cast<size_t>(work.run) * rows + work.row + row) * H + block * MINE + neuron;

  uint4 loaded[2];
  float4 before, d_out;
  auto fetch = [&](int t) {
    if (t < work.from) return;
    loaded[0] = *reinterpret_cast<const uint4*>(arguments + 4 * at(t));
    loaded[1] = *reinterpret_cast<const uint4*>(arguments + 4 * at(t) + 8);
    d_out = *reinterpret_cast<const float4*>(d_hs + at(t));
    before = *reinterpret_cast<const float4*>(t == 0 ? state + state_index : hs + at(t - 1));
  };

  float z[4], slopes[4][4], d_direct[4];  // for this thread's neurons; slopes by q, r, z and n
  auto differentiate = [&](int t) {
    const float h[4] = {before.x, before.y, before.z, before.w};
    const uint32_t words[8] = {loaded[0].x, loaded[0].y, loaded[0].z, loaded[0].w,
                               loaded[1].x, loaded[1].y, loaded[1].z, loaded[1].w};
    const bool empty = masks[t] >> row & 1;
    d_direct[0] = d_out.x, d_direct[1] = d_out.y, d_direct[2] = d_out.z, d_direct[3] = d_out.w;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 qr = floats(words[2 * j]), zn = floats(words[2 * j + 1]);
      const float q = qr.x, r = sigmoid(qr.y);
      z[j] = sigmoid(zn.x);
      const float n = tanh_of(zn.y + r * q);
      const float by_n = (1.0f - z[j]) * (1.0f - n * n);
      slopes[j][0] = by_n * r;
      slopes[j][1] = by_n * q * r * (1.0f - r);
      slopes[j][2] = ((empty ? 0.0f : h[j]) - n) * z[j] * (1.0f - z[j]);
      slopes[j][3] = by_n;
    }
  };

  const int factor_row = lane % 16, factor_column = lane / 16 * 8;
  float through[4];  // [dr, dz, dq] U of the following step
  auto multiply = [&](int now) {
    const uint32_t address = shared_address(&gates[now][part][factor_row][factor_column]);
    float d[COLUMN_TILES][4] = {};
#pragma unroll
    for (int k = 0; k < INNER_TILES; ++k) {
      uint32_t a[4];
      load_factor(a, address + 32 * k);
#pragma unroll
      for (int c = 0; c < COLUMN_TILES; ++c) multiply_bfloat(d[c], a, right[c][k]);
    }
#pragma unroll
    for (int c = 0; c < COLUMN_TILES; ++c)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        *reinterpret_cast<float2*>(&sums[part][group + 8 * i][32 * half + 8 * c + 2 * pair]) =
            make_float2(d[c][2 * i], d[c][2 * i + 1]);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 4; ++j) through[j] = 0.0f;
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
      const float4 x = *reinterpret_cast<const float4*>(&sums[p][row][neuron]);
      through[0] += x.x, through[1] += x.y, through[2] += x.z, through[3] += x.w;
    }
  };

  constexpr uint32_t ROW_BYTES = GATE_STRIDE * sizeof(__nv_bfloat16), PART_BYTES = ROWS * ROW_BYTES;
  constexpr uint32_t ALL_BYTES = BLOCKS * PART_BYTES;
  const uint32_t barrier_here = shared_address(&arrived[0]);
  if (threadIdx.x == 0)
    for (int b = 0; b < 2; ++b) create_barrier(barrier_here + 8 * b), expect(barrier_here + 8 * b, ALL_BYTES);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  // A warp owns two rows. Each of its first four threads sends them to one block.
  const uint32_t there = address_in_block(shared_address(&gates[0][block][2 * warp][0]), lane % BLOCKS);
  const uint32_t barrier_there = address_in_block(barrier_here, lane % BLOCKS);

  fetch(work.to - 1);
  differentiate(work.to - 1);
  fetch(work.to - 2);
  meet();  // all blocks have started, so they may write into each other

  float beside[4] = {};  // dh · z of the following step
  int now = 0;
  for (int t = work.to - 1; t >= work.from; --t, now ^= 1) {
    if (t < work.to - 1) {
      wait_for(barrier_here + 8 * now, (work.to - 2 - t) / 2 % 2);
      if (threadIdx.x == 0) expect(barrier_here + 8 * now, ALL_BYTES);  // for the step after the next
      multiply(now);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) through[j] = 0.0f;
    }
    const bool empty_later = t + 1 < work.to && (masks[t + 1] >> row & 1);
    float d_h[4], d_q[4], d_r[4], d_z[4], d_n[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      d_h[j] = d_direct[j] + (empty_later ? 0.0f : beside[j] + through[j]);
      d_q[j] = d_h[j] * slopes[j][0], d_r[j] = d_h[j] * slopes[j][1];
      d_z[j] = d_h[j] * slopes[j][2], d_n[j] = d_h[j] * slopes[j][3];
      beside[j] = d_h[j] * z[j];
    }
    if (t > work.from || t == 0) {
      auto write = [&](int gate, const float (&d)[4]) {
        *reinterpret_cast<uint2*>(&own[now][row][gate * MINE + neuron]) =
            make_uint2(bfloats(d[0], d[1]), bfloats(d[2], d[3]));
      };
      write(0, d_r), write(1, d_z), write(2, d_q);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (lane < BLOCKS)
        send_copy(there + (now ^ 1) * ALL_BYTES, barrier_there + 8 * (now ^ 1), shared_address(&own[now][2 * warp][0]),
                  2 * ROW_BYTES);
    }
    auto out = reinterpret_cast<uint4*>(d_arguments + 4 * at(t));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int j = 2 * i;
      out[i] = make_uint4(bfloats(d_q[j], d_r[j]), bfloats(d_z[j], d_n[j]), bfloats(d_q[j + 1], d_r[j + 1]),
                          bfloats(d_z[j + 1], d_n[j + 1]));
    }
    if (t > work.from) {
      differentiate(t - 1);
      fetch(t - 2);
    }
  }
  if (work.from == 0) {
    wait_for(barrier_here + 8 * now, (work.to - 1) / 2 % 2);
    multiply(now);
    const bool empty = masks[0] >> row & 1;
    float4 d;
    d.x = empty ? 0.0f : beside[0] + through[0], d.y = empty ? 0.0f : beside[1] + through[1];
    d.z = empty ? 0.0f : beside[2] + through[2], d.w = empty ? 0.0f : beside[3] + through[3];
    *reinterpret_cast<float4*>(d_state + state_index) = d;
  }
  meet();  // other blocks may still be receiving from this shared memory
}

// ---------------------------------------------------------------------------------------------------------------
// One step, for acting. A block computes 32 neurons of 16 sequences, and a warp 8 neurons. Products are added in the
// order of the forward loop, so that both compute the same bits: the first update then starts with the policy that
// acted. Weights are stored in the order in which threads read them (see `gru_hopper.Step`), and each thread reads
// all of its weights at once.

constexpr int STEP_WARPS = 4, STEP_THREADS = 32 * STEP_WARPS, STEP_BLOCKS = H / 8 / STEP_WARPS;

template <int INPUT_TILES>
__global__ void __launch_bounds__(STEP_THREADS, 1)
    one_step(const __half* __restrict__ x, const float* __restrict__ state, const uint4* __restrict__ weight,
             const float* __restrict__ bias, float* __restrict__ next, int rows) {
  constexpr int D = 16 * INPUT_TILES, TILES = INPUT_TILES + H / 16, WORDS = (6 * TILES + 3) / 4;
  __shared__ __align__(16) __half factors[2 * TILES][8 * ROWS + 8];  // inputs, then states: 8 numbers of all rows
  const int block = blockIdx.x % STEP_BLOCKS, cluster = blockIdx.x / STEP_BLOCKS, run = cluster / (rows / ROWS);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  const int eight = block * STEP_WARPS + warp, neuron = 8 * eight + 2 * pair;
  const size_t first = static_cast<size_t>(cluster) * ROWS;  // the first sequence

  constexpr int STATES = ROWS * H / 4 / STEP_THREADS;
  float4 loaded[STATES];
#pragma unroll
  for (int i = 0; i < STATES; ++i)
    loaded[i] = reinterpret_cast<const float4*>(state + first * H)[i * STEP_THREADS + threadIdx.x];
  uint4 right[WORDS];  // the order of its words is [tile][r, z, n][2]
#pragma unroll
  for (int i = 0; i < WORDS; ++i)
    right[i] = weight[(static_cast<size_t>(run * H / 8 + eight) * WORDS + i) * 32 + lane];
  auto factor = [&](int tile, int gate, uint32_t (&b)[2]) {  // all indices are known when compiled
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int word = 6 * tile + 2 * gate + i;
      const uint4 four = right[word / 4];
      b[i] = word % 4 == 0 ? four.x : word % 4 == 1 ? four.y : word % 4 == 2 ? four.z : four.w;
    }
  };
  float2 biases[4], before[2];  // in the order q, r, z, n; of rows `group` and `group + 8`
#pragma unroll
  for (int kind = 0; kind < 4; ++kind)
    biases[kind] = *reinterpret_cast<const float2*>(bias + (static_cast<size_t>(run) * 4 + kind) * H + neuron);
#pragma unroll
  for (int i = 0; i < 2; ++i)
    before[i] = *reinterpret_cast<const float2*>(state + (first + group + 8 * i) * H + neuron);

  for (int i = threadIdx.x; i < ROWS * D / 8; i += STEP_THREADS) {
    const int row = i / (D / 8), column = i % (D / 8);
    *reinterpret_cast<uint4*>(&factors[column][8 * row]) = reinterpret_cast<const uint4*>(x + first * D)[i];
  }
#pragma unroll
  for (int i = 0; i < STATES; ++i) {
    const int at = 4 * (i * STEP_THREADS + threadIdx.x), row = at / H, column = at % H;
    *reinterpret_cast<uint2*>(&factors[2 * INPUT_TILES + column / 8][8 * row + column % 8]) =
        make_uint2(halves(loaded[i].x, loaded[i].y), halves(loaded[i].z, loaded[i].w));
  }
  __syncthreads();

  const uint32_t address = shared_address(&factors[lane / 16][lane % 16 * 8]);
  float even[3][4] = {}, odd[3][4] = {}, from_input[4];
#pragma unroll
  for (int tile = 0; tile < TILES; ++tile) {
    uint32_t a[4], b[2];
    load_factor(a, address + 2 * sizeof(factors[0]) * tile);
    const bool is_odd = tile >= INPUT_TILES && (tile - INPUT_TILES) % 2;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      factor(tile, gate, b);
      multiply_half(is_odd ? odd[gate] : even[gate], a, b);
    }
    if (tile == INPUT_TILES - 1)
#pragma unroll
      for (int j = 0; j < 4; ++j) from_input[j] = even[2][j], even[2][j] = 0.0f;
  }

#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float h[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int j = 2 * i + k;
      const float q = even[2][j] + odd[2][j] + (k ? biases[0].y : biases[0].x);
      const float r = even[0][j] + odd[0][j] + (k ? biases[1].y : biases[1].x);
      const float z = even[1][j] + odd[1][j] + (k ? biases[2].y : biases[2].x);
      const float n = from_input[j] + (k ? biases[3].y : biases[3].x);
      h[k] = next_state(q, r, z, n, k ? before[i].y : before[i].x);
    }
    *reinterpret_cast<float2*>(next + (first + group + 8 * i) * H + neuron) = make_float2(h[0], h[1]);
  }
}

using foreign::Array;
using foreign::Result;

// The number of blocks for reset flags [runs …, steps, rows].
int blocks_for(const Array<bool>& resets, int segments) {
  return resets.runs(2) * (resets.axis(0) / ROWS) * segments * BLOCKS;
}

template <bool KEEP>
cudaError_t launch_forward(cudaStream_t stream, int segments, const Array<__half>& xs, const Array<bool>& resets,
                           const Array<__half>& hidden_weight, const Array<__half>& input_weight,
                           const Array<float>& bias, const Array<float>& state, float* hs, __half* arguments) {
  const int steps = resets.axis(1), rows = resets.axis(0);
  const auto kernel = xs.axis(0) == 80 ? forward_loop<5, KEEP> : forward_loop<8, KEEP>;
  kernel<<<blocks_for(resets, segments), THREADS, (steps + 1) * sizeof(uint16_t), stream>>>(
      xs.data, reinterpret_cast<const uint8_t*>(resets.data), hidden_weight.data, input_weight.data, bias.data,
      state.data, hs, arguments, steps, rows, resets.runs(2), segments);
  return cudaGetLastError();
}

cudaError_t forward(cudaStream_t stream, int32_t segments, Array<__half> xs, Array<bool> resets,
                    Array<__half> hidden_weight, Array<__half> input_weight, Array<float> bias, Array<float> state,
                    Result<float> hs) {
  return launch_forward<false>(stream, segments, xs, resets, hidden_weight, input_weight, bias, state, hs.data,
                               nullptr);
}

cudaError_t forward_keeping(cudaStream_t stream, int32_t segments, Array<__half> xs, Array<bool> resets,
                            Array<__half> hidden_weight, Array<__half> input_weight, Array<float> bias,
                            Array<float> state, Result<float> hs, Result<__half> arguments) {
  return launch_forward<true>(stream, segments, xs, resets, hidden_weight, input_weight, bias, state, hs.data,
                              arguments.data);
}

cudaError_t backward(cudaStream_t stream, int32_t segments, Array<__half> arguments, Array<bool> resets,
                     Array<__nv_bfloat16> weight, Array<float> state, Array<float> hs, Array<float> d_hs,
                     Result<__nv_bfloat16> d_arguments, Result<float> d_state) {
  const int steps = resets.axis(1), rows = resets.axis(0);
  const size_t bytes = 2 * (BLOCKS + 1) * ROWS * GATE_STRIDE * sizeof(__nv_bfloat16) +
                       4 * ROWS * SUM_STRIDE * sizeof(float) + (steps + 1) * sizeof(uint16_t);
  const cudaError_t status =
      cudaFuncSetAttribute(backward_loop, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (status != cudaSuccess) return status;
  backward_loop<<<blocks_for(resets, segments), THREADS, bytes, stream>>>(
      arguments.data, reinterpret_cast<const uint8_t*>(resets.data), weight.data, state.data, hs.data, d_hs.data,
      d_arguments.data, d_state.data, steps, rows, resets.runs(2), segments);
  return cudaGetLastError();
}

cudaError_t step(cudaStream_t stream, Array<__half> x, Array<float> state, Array<__half> weight, Array<float> bias,
                 Result<float> next) {
  const auto kernel = x.axis(0) == 80 ? one_step<5> : one_step<8>;
  const int rows = x.axis(1);
  kernel<<<x.runs(2) * (rows / ROWS) * STEP_BLOCKS, STEP_THREADS, 0, stream>>>(
      x.data, state.data, reinterpret_cast<const uint4*>(weight.data), bias.data, next.data, rows);
  return cudaGetLastError();
}

}  // namespace

FOREIGN_FUNCTION(splagger_gru_step, step)
FOREIGN_FUNCTION(splagger_gru_forward, forward)
FOREIGN_FUNCTION(splagger_gru_forward_keeping, forward_keeping)
FOREIGN_FUNCTION(splagger_gru_backward, backward)
