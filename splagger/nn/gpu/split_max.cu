// Split aggregation with a running maximum over whole sequences, and its derivative: one kernel each.
//
//     forward    mₜ = eₜ if the sequence resets at t, else max(mₜ₋₁, eₜ);  outputs [eₜ[:skip]; max(mₜ, floor)]
//     backward   the derivative of each maximum belongs to the step that set it
//
// A thread owns one neuron of one sequence and loops over time. It always loads the next UNROLL steps while it works
// on the current ones. Arrays are row-major: encodings [runs, T, N, W], maxima [runs, N, W - skip].

#include "foreign.h"

namespace {

constexpr int UNROLL = 16, MOST_THREADS = 256;

// What a step leaves behind for the derivative: whether it set the maximum, and twice the slope of max(m, floor),
// which is ½ where both are equal.
constexpr uint8_t SET = 1;
__device__ __forceinline__ uint8_t twice_slope(float m, float floor) { return m > floor ? 2 : m == floor ? 1 : 0; }

struct Sizes {
  int runs, steps, rows, width, skip;
};

// The place of this thread. Blocks are ordered by run, row and part of the neurons.
struct Place {
  int run, row, neuron;
  __device__ explicit Place(const Sizes& s) {
    const int parts = (s.width + blockDim.x - 1) / blockDim.x;
    neuron = blockIdx.x % parts * blockDim.x + threadIdx.x;
    row = blockIdx.x / parts % s.rows;
    run = blockIdx.x / parts / s.rows;
  }
  __device__ size_t at(const Sizes& s, int t) const {
    return ((static_cast<size_t>(run) * s.steps + t) * s.rows + row) * s.width + neuron;
  }
  __device__ size_t maximum(const Sizes& s) const {
    return (static_cast<size_t>(run) * s.rows + row) * (s.width - s.skip) + neuron - s.skip;
  }
  __device__ size_t step(const Sizes& s, int t) const {
    return (static_cast<size_t>(run) * s.steps + t) * s.rows + row;
  }
};

template <bool KEEP>
__global__ void forward_kernel(const float* __restrict__ es, const bool* __restrict__ resets,
                               const float* __restrict__ start, float floor, float* __restrict__ last,
                               float* __restrict__ outputs, uint8_t* __restrict__ kept, Sizes s) {
  const Place place(s);
  if (place.neuron >= s.width) return;
  const bool bypass = place.neuron < s.skip;
  float m = bypass ? 0.0f : start[place.maximum(s)];
  float next[UNROLL];
  bool next_reset[UNROLL];
  auto load = [&](int from) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int t = min(from + i, s.steps - 1);  // without a branch, so that all loads are in flight at once
      next[i] = es[place.at(s, t)];
      next_reset[i] = resets[place.step(s, t)];
    }
  };
  load(0);
  for (int from = 0; from < s.steps; from += UNROLL) {
    float e[UNROLL];
    bool reset[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) e[i] = next[i], reset[i] = next_reset[i];
    load(from + UNROLL);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      if (from + i >= s.steps) break;
      const size_t at = place.at(s, from + i);
      if (bypass) {
        outputs[at] = e[i];
        continue;
      }
      const bool set = reset[i] || !(m >= e[i]);
      m = set ? e[i] : m;
      outputs[at] = m > floor || m != m ? m : floor;
      if (KEEP) kept[at] = static_cast<uint8_t>(set ? SET : 0) | static_cast<uint8_t>(twice_slope(m, floor) << 1);
    }
  }
  if (!bypass) last[place.maximum(s)] = m;
}

__global__ void backward_kernel(const float* __restrict__ d_last, const float* __restrict__ d_outputs,
                                const uint8_t* __restrict__ kept, float* __restrict__ d_es,
                                float* __restrict__ d_start, Sizes s) {
  const Place place(s);
  if (place.neuron >= s.width) return;
  const bool bypass = place.neuron < s.skip;
  float sum = bypass ? 0.0f : d_last[place.maximum(s)];
  float next[UNROLL];
  uint8_t next_kept[UNROLL];
  auto load = [&](int from) {
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const int t = max(from - i, 0);
      next[i] = d_outputs[place.at(s, t)];
      next_kept[i] = kept[place.at(s, t)];  // without a meaning where a neuron bypasses the aggregator
    }
  };
  load(s.steps - 1);
  for (int from = s.steps - 1; from >= 0; from -= UNROLL) {
    float d[UNROLL];
    uint8_t flags[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) d[i] = next[i], flags[i] = next_kept[i];
    load(from - UNROLL);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      if (from - i < 0) break;
      const size_t at = place.at(s, from - i);
      if (bypass) {
        d_es[at] = d[i];
        continue;
      }
      sum += 0.5f * static_cast<float>(flags[i] >> 1) * d[i];
      const bool set = flags[i] & SET;
      d_es[at] = set ? sum : 0.0f;
      sum = set ? 0.0f : sum;
    }
  }
  if (!bypass) d_start[place.maximum(s)] = sum;
}

using foreign::Array;
using foreign::Result;

// The sizes of encodings [runs …, steps, rows, width].
Sizes sizes_of(const Array<float>& es, int skip) {
  return {es.runs(3), es.axis(2), es.axis(1), es.axis(0), skip};
}

int threads_of(const Sizes& s) { return s.width < MOST_THREADS ? s.width : MOST_THREADS; }
int blocks_of(const Sizes& s) { return s.runs * s.rows * ((s.width + threads_of(s) - 1) / threads_of(s)); }

cudaError_t forward(cudaStream_t stream, float floor, int32_t skip, Array<float> es, Array<bool> resets,
                    Array<float> start, Result<float> last, Result<float> outputs) {
  const Sizes s = sizes_of(es, skip);
  forward_kernel<false><<<blocks_of(s), threads_of(s), 0, stream>>>(es.data, resets.data, start.data, floor, last.data,
                                                                    outputs.data, nullptr, s);
  return cudaGetLastError();
}

cudaError_t forward_keeping(cudaStream_t stream, float floor, int32_t skip, Array<float> es, Array<bool> resets,
                            Array<float> start, Result<float> last, Result<float> outputs, Result<uint8_t> kept) {
  const Sizes s = sizes_of(es, skip);
  forward_kernel<true><<<blocks_of(s), threads_of(s), 0, stream>>>(es.data, resets.data, start.data, floor, last.data,
                                                                   outputs.data, kept.data, s);
  return cudaGetLastError();
}

cudaError_t backward(cudaStream_t stream, int32_t skip, Array<float> d_last, Array<float> d_outputs,
                     Array<uint8_t> kept, Result<float> d_es, Result<float> d_start) {
  const Sizes s = sizes_of(d_outputs, skip);
  backward_kernel<<<blocks_of(s), threads_of(s), 0, stream>>>(d_last.data, d_outputs.data, kept.data, d_es.data,
                                                              d_start.data, s);
  return cudaGetLastError();
}

}  // namespace

FOREIGN_FUNCTION(splagger_split_max, forward)
FOREIGN_FUNCTION(splagger_split_max_keeping, forward_keeping)
FOREIGN_FUNCTION(splagger_split_max_backward, backward)
