// Tensors by name onto a device. Values keep the checkpoint's dtype until a backend packs them;
// norms, biases and tables are small and become f32, which is exact for every storage dtype.
#include "models/blocks/weight_loader.h"

#include <algorithm>

#include "core/check.h"
#include "device/arena.h"

namespace fovea::blocks {

namespace {

/// A tensor with a shape and an address, but no memory behind it. Nobody may read or write it.
Tensor without_memory(const Shape& shape) {
  auto* const nowhere = reinterpret_cast<std::byte*>(Arena::kAlignment);
  const auto release = [](void*, std::byte*, std::size_t) noexcept {};
  return {Buffer(nowhere, 0, release, nullptr), DType::kF32, shape};
}

/// The same for a linear layer.
ops::PackedLinear without_memory(std::int64_t in_features, std::int64_t out_features,
                                 WeightLoader::Bias bias) {
  return {.in_features = in_features,
          .out_features = out_features,
          .has_bias = bias == WeightLoader::Bias::kYes,
          .weight = {},
          .bias = {}};
}

}  // namespace

WeightLoader::WeightLoader(const checkpoint::WeightSource& source, std::string prefix)
    : source_(source), prefix_(std::move(prefix)) {}

WeightLoader::WeightLoader(const checkpoint::WeightSource& source, std::string prefix,
                           Device& device, Stream& stream)
    : source_(source), prefix_(std::move(prefix)), device_(&device), stream_(&stream) {}

bool WeightLoader::exists(const std::string& name) const {
  return source_.is_dummy() || std::ranges::binary_search(source_.names(), prefix_ + name);
}

void WeightLoader::check(const std::string& name, const Shape& shape) {
  if (!reported_.insert(prefix_ + name).second) return;
  parameters_ += shape.elements();
  TensorReport entry{prefix_ + name, "", {shape.sizes().begin(), shape.sizes().end()}, ""};
  if (source_.is_dummy()) {
    entry.dtype = "BF16";
  } else if (!exists(name)) {
    entry.problem = cat("missing, expected ", shape);
  } else if (const auto listing = source_.listing(entry.name)) {
    entry.dtype = listing->dtype;
    if (listing->shape != entry.shape) {
      entry.problem =
          cat("has shape ", Shape(listing->shape), " in ", listing->file, ", expected ", shape);
    } else if (entry.dtype != "BF16" && entry.dtype != "F16" && entry.dtype != "F32") {
      entry.problem = cat("has dtype ", entry.dtype, " in ", listing->file,
                          ", supported are BF16, F16 and F32");
    }
  }
  report_.push_back(std::move(entry));
}

std::vector<float> WeightLoader::widened(const std::string& name, const Shape& shape) const {
  const ConstTensorView stored = source_.tensor(prefix_ + name, shape);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  widen_to_f32(stored.dtype, stored.data, values.data(), values.size());
  return values;
}

Tensor WeightLoader::constant(std::span<const float> values, const Shape& shape) {
  FOVEA_CHECK(static_cast<std::int64_t>(values.size()) == shape.elements(), kInternal,
              "expected a constant of ", shape, ", got ", values.size(), " values");
  if (device_ == nullptr) return without_memory(shape);
  return upload(*device_, *stream_,
                {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape});
}

Tensor WeightLoader::constant(const media::NormalizeTable& table) {
  constexpr std::size_t kValues = std::tuple_size_v<media::NormalizeTable> * 256;
  return constant({table.front().data(), kValues}, {3, 256});
}

Tensor WeightLoader::f32_from(
    const std::string& name, const Shape& stored, const Shape& wanted,
    const std::function<std::vector<float>(std::span<const float>)>& transform) {
  if (device_ == nullptr) {
    check(name, stored);
    return without_memory(wanted);
  }
  return constant(transform(widened(name, stored)), wanted);
}

Tensor WeightLoader::f32(const std::string& name, const Shape& shape) {
  const auto as_stored = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  return f32_from(name, shape, shape, as_stored);
}

Tensor WeightLoader::row(const std::string& name, std::int64_t features) {
  Tensor tensor = f32(name, {features});
  tensor.shape = {1, features};
  return tensor;
}

Conv3x3 WeightLoader::conv3x3(const std::string& name, std::int64_t out_channels,
                              std::int64_t in_channels, std::int64_t stride) {
  constexpr std::int64_t kTaps = 9;
  const Shape shape{out_channels, in_channels, 3, 3};
  const std::int64_t in_features = kTaps * in_channels;
  if (device_ == nullptr) {
    check(name + ".weight", shape);
    return {.weight = without_memory(in_features, out_channels, Bias::kNo), .stride = stride};
  }
  // [out, channel, tap] to [out, tap, channel], in the dtype of the file.
  const ConstTensorView stored = source_.tensor(prefix_ + name + ".weight", shape);
  const std::size_t size = size_of(stored.dtype);
  std::vector<std::byte> turned(stored.bytes());
  std::byte* next = turned.data();
  for (std::int64_t out = 0; out < out_channels; ++out) {
    for (std::int64_t tap = 0; tap < kTaps; ++tap) {
      for (std::int64_t channel = 0; channel < in_channels; ++channel, next += size) {
        const std::int64_t from = (out * in_channels + channel) * kTaps + tap;
        std::copy_n(stored.data + static_cast<std::size_t>(from) * size, size, next);
      }
    }
  }
  return {.weight = ops::pack_linear(
              *device_, {turned.data(), stored.dtype, {out_channels, in_features}}, {}),
          .stride = stride};
}

LayerNorm WeightLoader::layer_norm(const std::string& name, std::int64_t features, float epsilon) {
  return {.weight = f32(name + ".weight", {features}),
          .bias = f32(name + ".bias", {features}),
          .epsilon = epsilon};
}

ops::PackedLinear WeightLoader::linear(const std::string& name, std::int64_t out_features,
                                       const std::vector<std::int64_t>& in_sizes, Bias bias) {
  return pack({name}, out_features, in_sizes, bias);
}

ops::PackedLinear WeightLoader::qkv(const std::string& name, std::int64_t features) {
  const bool split = !exists(name + ".qkv.weight") && exists(name + ".q.weight");
  if (!split) return pack({name + ".qkv"}, 3 * features, {features}, Bias::kYes);
  return pack({name + ".q", name + ".k", name + ".v"}, features, {features}, Bias::kYes);
}

ops::PackedLinear WeightLoader::pack(const std::vector<std::string>& parts, std::int64_t part_rows,
                                     const std::vector<std::int64_t>& in_sizes, Bias bias) {
  const auto num_parts = static_cast<std::int64_t>(parts.size());
  const std::int64_t in_features = Shape(in_sizes).elements();
  std::vector<std::int64_t> sizes{part_rows};
  sizes.insert(sizes.end(), in_sizes.begin(), in_sizes.end());
  const Shape weight_shape(sizes);
  if (device_ == nullptr) {
    for (const std::string& part : parts) {
      check(part + ".weight", weight_shape);
      if (bias == Bias::kYes) check(part + ".bias", {part_rows});
    }
    return without_memory(in_features, num_parts * part_rows, bias);
  }
  // The bytes of all parts, one after the other; parts of one layer share a dtype.
  const auto stack = [&](const char* suffix, const Shape& shape, std::vector<std::byte>& bytes) {
    DType dtype = DType::kF32;
    for (const std::string& part : parts) {
      const ConstTensorView view = source_.tensor(prefix_ + part + suffix, shape);
      FOVEA_CHECK(bytes.empty() || view.dtype == dtype, kUnsupported, prefix_, part, suffix, " is ",
                  to_string(view.dtype), ", its siblings are ", to_string(dtype));
      dtype = view.dtype;
      bytes.insert(bytes.end(), view.data, view.data + view.bytes());
    }
    return dtype;
  };
  std::vector<std::byte> weight_bytes;
  std::vector<std::byte> bias_bytes;
  const DType weight_dtype = stack(".weight", weight_shape, weight_bytes);
  ConstTensorView bias_view;
  if (bias == Bias::kYes) {
    const DType bias_dtype = stack(".bias", {part_rows}, bias_bytes);
    bias_view = {bias_bytes.data(), bias_dtype, {num_parts * part_rows}};
  }
  return ops::pack_linear(*device_,
                          {weight_bytes.data(), weight_dtype, {num_parts * part_rows, in_features}},
                          bias_view);
}

}  // namespace fovea::blocks
