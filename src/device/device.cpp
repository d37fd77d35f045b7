// Tensors on a device.
#include "fovea/tower/device/device.h"

namespace fovea {

Tensor make_tensor(Device& device, DType dtype, const Shape& shape) {
  return {device.allocate(static_cast<std::size_t>(shape.elements()) * size_of(dtype)), dtype,
          shape};
}

Tensor upload(Device& device, Stream& stream, ConstTensorView host) {
  Tensor tensor = make_tensor(device, host.dtype, host.shape);
  stream.copy(tensor.buffer.data(), host.data, host.bytes());
  stream.synchronize();
  return tensor;
}

}  // namespace fovea
