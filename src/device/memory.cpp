// The bump allocator under a forward pass, and tensors with memory of their own.
#include <algorithm>
#include <limits>

#include "core/check.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/device/device.h"

namespace fovea {

namespace {

std::size_t bytes_of(DType dtype, const Shape& shape) {
  const auto bytes = checked_mul(shape.elements(), static_cast<std::int64_t>(size_of(dtype)));
  FOVEA_CHECK(bytes.has_value(), kInvalidArgument, "a tensor of ", to_string(dtype), ' ', shape,
              " has more bytes than 63 bits hold");
  return static_cast<std::size_t>(*bytes);
}

}  // namespace

Arena Arena::measuring() noexcept {
  // A non-null, aligned address that no op may dereference: views made from it test as present.
  return {reinterpret_cast<std::byte*>(kAlignment), std::numeric_limits<std::size_t>::max()};
}

TensorView Arena::tensor(DType dtype, const Shape& shape) {
  const std::size_t bytes = bytes_of(dtype, shape);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  FOVEA_CHECK(rounded <= capacity_ - used_, kInternal, "arena of ", capacity_, " bytes has ",
              capacity_ - used_, " left, ", rounded, " are needed for ", shape);
  const TensorView view{memory_ + used_, dtype, shape};
  used_ += rounded;
  high_water_ = std::max(high_water_, used_);
  return view;
}

Tensor make_tensor(Device& device, DType dtype, const Shape& shape) {
  return {device.allocate(bytes_of(dtype, shape)), dtype, shape};
}

Tensor upload(Device& device, Stream& stream, ConstTensorView host) {
  Tensor tensor = make_tensor(device, host.dtype, host.shape);
  stream.copy(tensor.buffer.data(), host.data, host.bytes());
  stream.synchronize();
  return tensor;
}

}  // namespace fovea
