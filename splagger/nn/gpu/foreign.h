// Functions that XLA calls, decoded through its C interface. XLA's C++ interface does the same and more, but compiling
// it takes longer than compiling all kernels.
//
// A function's parameters are the stream; then attributes, in alphabetical order of their names; then arrays and results:
//     cudaError_t forward(cudaStream_t stream, int32_t skip, Array<float> x, Result<float> y);
//     FOREIGN_FUNCTION(splagger_forward, forward)

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <tuple>

#include "xla/ffi/api/c_api.h"

namespace foreign {

// XLA's code of a number type. Booleans are bytes.
template <typename T>
constexpr XLA_FFI_DataType CODE = XLA_FFI_DataType_INVALID;
template <>
inline constexpr XLA_FFI_DataType CODE<float> = XLA_FFI_DataType_F32;
template <>
inline constexpr XLA_FFI_DataType CODE<__half> = XLA_FFI_DataType_F16;
template <>
inline constexpr XLA_FFI_DataType CODE<__nv_bfloat16> = XLA_FFI_DataType_BF16;
template <>
inline constexpr XLA_FFI_DataType CODE<uint8_t> = XLA_FFI_DataType_U8;
template <>
inline constexpr XLA_FFI_DataType CODE<bool> = XLA_FFI_DataType_PRED;

template <typename T>
struct Array {
  T* data;
  const int64_t* dims;
  int rank;

  // The size of the axis `back` before the last.
  int axis(int back) const { return static_cast<int>(dims[rank - 1 - back]); }
  // The product of all sizes but those of the last `axes`: the number of runs.
  int runs(int axes) const {
    int64_t product = 1;
    for (int i = 0; i + axes < rank; ++i) product *= dims[i];
    return static_cast<int>(product);
  }
};

template <typename T>
struct Result : Array<T> {};

// What is left of a call to decode.
struct Call {
  const XLA_FFI_CallFrame* frame;
  int arrays = 0, results = 0, attributes = 0;
  bool valid = true;

  template <typename T>
  Array<T> decode(void** all, int64_t count, int index) {
    if (index >= count) return valid = false, Array<T>{};
    const auto buffer = static_cast<const XLA_FFI_Buffer*>(all[index]);
    valid = valid && buffer->dtype == CODE<T>;
    return {static_cast<T*>(buffer->data), buffer->dims, static_cast<int>(buffer->rank)};
  }
  template <typename T>
  T attribute() {
    if (attributes >= frame->attrs.size) return valid = false, T{};
    return *static_cast<const T*>(static_cast<const XLA_FFI_Scalar*>(frame->attrs.attrs[attributes++])->value);
  }
  bool finished() const {
    return valid && arrays == frame->args.size && results == frame->rets.size && attributes == frame->attrs.size;
  }
};

template <typename T>
struct Next {  // an attribute
  static T of(Call& call) { return call.attribute<T>(); }
};
template <typename T>
struct Next<Array<T>> {
  static Array<T> of(Call& call) { return call.decode<T>(call.frame->args.args, call.frame->args.size, call.arrays++); }
};
template <typename T>
struct Next<Result<T>> {
  static Result<T> of(Call& call) {
    return {call.decode<T>(call.frame->rets.rets, call.frame->rets.size, call.results++)};
  }
};

inline XLA_FFI_Error* error(const XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, XLA_FFI_Error_Code_INTERNAL};
  return frame->api->XLA_FFI_Error_Create(&args);
}

// Answers a call of XLA: with this interface's version, if it asks for that, or by calling `function`.
template <typename... Parts>
XLA_FFI_Error* answer(XLA_FFI_CallFrame* frame, cudaError_t (*function)(cudaStream_t, Parts...)) {
  if (frame->extension_start != nullptr && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
    metadata->traits = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE;
    return nullptr;
  }
  XLA_FFI_Stream_Get_Args stream = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, nullptr, frame->ctx, nullptr};
  if (XLA_FFI_Error* failed = frame->api->XLA_FFI_Stream_Get(&stream)) return failed;
  Call call = {frame};
  std::tuple<Parts...> parts{Next<Parts>::of(call)...};  // from left to right
  if (!call.finished()) return error(frame, "a kernel was called with other arrays than it takes");
  const cudaError_t status = std::apply(
      [&](auto... part) { return function(static_cast<cudaStream_t>(stream.stream), part...); }, parts);
  return status == cudaSuccess ? nullptr : error(frame, cudaGetErrorString(status));
}

}  // namespace foreign

#define FOREIGN_FUNCTION(name, function) \
  extern "C" XLA_FFI_Error* name(XLA_FFI_CallFrame* frame) { return foreign::answer(frame, function); }
