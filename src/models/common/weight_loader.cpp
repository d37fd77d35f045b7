// Tensors by name onto a device. Values keep the checkpoint's dtype until a backend packs them;
// norms, biases and tables are small and become f32, which is exact for every storage dtype.
#include "models/common/weight_loader.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "core/check.h"
#include "core/interrupt.h"

namespace fovea::common {

namespace {

/// A shape of any rank as a Shape is written: files may hold ranks that ours cannot.
std::string sizes_text(std::span<const std::int64_t> sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes) text += cat(text.size() == 1 ? "" : ", ", size);
  return text + "]";
}

/// A tensor with a shape and an address, but no memory behind it: it cannot be read or written. The
/// address is far from those of a measuring arena, which ops could take for an overlap.
Tensor without_memory(const Shape& shape) {
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 62);  // NOLINT: no memory
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

/// The weight of a convolution, [out, channel, tap], as [out, tap, channel] in its dtype.
std::vector<std::byte> tap_by_tap(const ConstTensorView& stored, std::int64_t out_channels,
                                  std::int64_t in_channels) {
  const std::int64_t taps = stored.shape.elements() / (out_channels * in_channels);
  const std::size_t size = size_of(stored.dtype);
  std::vector<std::byte> turned(stored.bytes());
  std::byte* next = turned.data();
  for (std::int64_t out = 0; out < out_channels; ++out) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t channel = 0; channel < in_channels; ++channel, next += size) {
        const std::int64_t from = (out * in_channels + channel) * taps + tap;
        std::copy_n(stored.data + static_cast<std::size_t>(from) * size, size, next);
      }
    }
  }
  return turned;
}

}  // namespace

WeightLoader::WeightLoader(const checkpoint::WeightSource& source, WeightNames names)
    : source_(source), names_(std::move(names)) {}

WeightLoader::WeightLoader(const checkpoint::WeightSource& source, WeightNames names,
                           Device& device, Stream& stream, const QuantizationPlan& plan)
    : source_(source), names_(std::move(names)), device_(&device), stream_(&stream), plan_(plan) {}

bool WeightLoader::exists(const std::string& name) const {
  return source_.is_dummy() || std::ranges::binary_search(source_.names(), names_.stored(name));
}

bool WeightLoader::stores(const std::string& name) const {
  return !source_.is_dummy() && exists(name);
}

WeightLoader::Bias WeightLoader::decided(Bias bias, const std::string& layer) const {
  if (bias != Bias::kIfStored) return bias;
  return exists(layer + ".bias") ? Bias::kYes : Bias::kNo;
}

void WeightLoader::check(const std::string& name, const Shape& shape) {
  check_interrupt();
  TensorReport entry{names_.stored(name), "", {shape.sizes().begin(), shape.sizes().end()}, ""};
  if (!reported_.insert(entry.name).second) return;
  parameters_ += shape.elements();
  if (source_.is_dummy()) {
    entry.dtype = "BF16";
  } else if (!exists(name)) {
    entry.problem = cat("missing, expected ", shape);
  } else if (const auto listing = source_.listing(entry.name)) {
    entry.dtype = listing->dtype;
    if (listing->shape != entry.shape) {
      entry.problem = cat("has shape ", sizes_text(listing->shape), " in ", listing->file,
                          ", expected ", shape);
    } else if (entry.dtype != "BF16" && entry.dtype != "F16" && entry.dtype != "F32" &&
               listing->scales.empty()) {
      entry.problem = cat("has dtype ", entry.dtype, " in ", listing->file,
                          ", supported are BF16, F16 and F32, and matrices of F8_E4M3 with ",
                          "_scale or _scale_inv for all, each row or each block of 128 x 128");
    }
  }
  report_.push_back(std::move(entry));
}

std::vector<float> WeightLoader::widened(const std::string& name, const Shape& shape) const {
  const ConstTensorView stored = source_.tensor(names_.stored(name), shape);
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

BlockSequence WeightLoader::block_sequence(std::vector<Block> blocks) const {
  BlockSequence sequence{.blocks = std::move(blocks), .prepared = {}};
  if (device_ == nullptr) return sequence;
  std::vector<ops::BlockLayers> layers;
  layers.reserve(sequence.blocks.size());
  for (const Block& block : sequence.blocks) {
    if (block.norm1.epsilon != block.norm2.epsilon || block.attn.q_norm.weight.view()) {
      return sequence;
    }
    layers.push_back({.norm1_weight = block.norm1.weight.view(),
                      .norm1_bias = block.norm1.bias.view(),
                      .norm2_weight = block.norm2.weight.view(),
                      .norm2_bias = block.norm2.bias.view(),
                      .epsilon = block.norm1.epsilon,
                      .qkv = block.attn.qkv,
                      .proj = block.attn.proj,
                      .fc1 = block.mlp.fc1,
                      .fc2 = block.mlp.fc2,
                      .activation = block.mlp.activation,
                      .num_heads = block.attn.num_heads});
  }
  sequence.prepared = ops::prepare_blocks(*device_, layers);
  return sequence;
}

Tensor WeightLoader::f32(const std::string& name, const Shape& shape) {
  return f32(name, shape, shape);
}

Tensor WeightLoader::f32(const std::string& name, const Shape& stored, const Shape& wanted) {
  return f32_from(name, stored, wanted, [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  });
}

Tensor WeightLoader::row(const std::string& name, std::int64_t features) {
  return f32(name, {features}, {1, features});
}

Tensor WeightLoader::repeated(const std::vector<std::string>& names, std::int64_t count) {
  const Shape shape{std::ssize(names) * count};
  std::vector<float> values;
  for (const std::string& name : names) {
    if (device_ == nullptr) {
      check(name, {});
      continue;
    }
    values.insert(values.end(), static_cast<std::size_t>(count), widened(name, {}).front());
  }
  return device_ == nullptr ? without_memory(shape) : constant(values, shape);
}

ops::PackedLinear WeightLoader::conv(const std::string& name, std::int64_t out_channels,
                                     std::int64_t in_channels, std::int64_t side, Bias bias) {
  return over_taps(name, {out_channels, in_channels, side, side}, in_channels, bias);
}

ops::PackedLinear WeightLoader::unfolded(const std::string& name, std::int64_t out_channels,
                                         std::int64_t in_channels, std::int64_t side, Bias bias) {
  return over_taps(name, {out_channels, in_channels * side * side}, in_channels, bias);
}

ops::PackedLinear WeightLoader::channels_last(const std::string& name, std::int64_t features,
                                              std::int64_t pixels, Bias bias) {
  // A pixel is what a convolution calls a channel, and a channel is what it calls a tap.
  return over_taps(name, {features, 3 * pixels}, pixels, bias);
}

ops::PackedLinear WeightLoader::over_taps(const std::string& name, const Shape& shape,
                                          std::int64_t in_channels, Bias bias) {
  const std::int64_t out_channels = shape[0];
  const std::int64_t in_features = shape.elements() / out_channels;
  bias = decided(bias, name);
  if (device_ == nullptr) {
    check(name + ".weight", shape);
    if (bias == Bias::kYes) check(name + ".bias", {out_channels});
    return without_memory(in_features, out_channels, bias);
  }
  const ConstTensorView stored = source_.tensor(names_.stored(name + ".weight"), shape);
  const std::vector<std::byte> turned = tap_by_tap(stored, out_channels, in_channels);
  const ConstTensorView bias_view =
      bias == Bias::kYes ? source_.tensor(names_.stored(name + ".bias"), {out_channels})
                         : ConstTensorView{};
  return ops::pack_linear(*device_, {turned.data(), stored.dtype, {out_channels, in_features}},
                          bias_view, format_);
}

Conv3x3 WeightLoader::conv3x3(const std::string& name, std::int64_t out_channels,
                              std::int64_t in_channels, std::int64_t stride, Bias bias) {
  return {.weight = conv(name, out_channels, in_channels, 3, bias), .stride = stride};
}

LayerNorm WeightLoader::layer_norm(const std::string& name, std::int64_t features, float epsilon) {
  return {.weight = f32(name + ".weight", {features}),
          .bias = f32(name + ".bias", {features}),
          .epsilon = epsilon};
}

RmsNorm WeightLoader::rms_norm(const std::string& name, std::int64_t features, float epsilon) {
  return {.weight = f32(name + ".weight", {features}), .epsilon = epsilon};
}

ops::PackedLinear WeightLoader::linear(const std::string& name, std::int64_t out_features,
                                       const std::vector<std::int64_t>& in_sizes, Bias bias) {
  return pack({.parts = {name}, .part_rows = out_features, .in_sizes = in_sizes}, bias);
}

ops::PackedLinear WeightLoader::fused(const std::vector<std::string>& parts, std::int64_t part_rows,
                                      const std::vector<std::int64_t>& in_sizes, Bias bias) {
  return pack({.parts = parts, .part_rows = part_rows, .in_sizes = in_sizes}, bias);
}

ops::PackedLinear WeightLoader::linear_from(
    const std::string& name, const Shape& stored, std::int64_t in_features,
    const std::function<void(std::vector<float>&, std::vector<float>&)>& transform, Bias has_bias) {
  const std::int64_t out_features = stored[0];
  has_bias = decided(has_bias, name);
  if (device_ == nullptr) {
    check(name + ".weight", stored);
    if (has_bias == Bias::kYes) check(name + ".bias", {out_features});
    return without_memory(in_features, out_features, has_bias);
  }
  std::vector<float> weight = widened(name + ".weight", stored);
  std::vector<float> bias(static_cast<std::size_t>(out_features));
  if (has_bias == Bias::kYes) bias = widened(name + ".bias", {out_features});
  transform(weight, bias);
  const auto view = [](const std::vector<float>& values, const Shape& shape) -> ConstTensorView {
    FOVEA_CHECK(static_cast<std::int64_t>(values.size()) == shape.elements(), kInternal,
                "expected a layer of ", shape, ", got ", values.size(), " values");
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
  };
  return ops::pack_linear(*device_, view(weight, {out_features, in_features}),
                          view(bias, {out_features}), format_);
}

ops::PackedLinear WeightLoader::scaled_linear(const std::string& name, const std::string& scale,
                                              std::int64_t out_features, std::int64_t in_features) {
  const auto multiply = [&](std::vector<float>& weight, std::vector<float>& bias) {
    const std::vector<float> factors = widened(scale, {out_features});
    const auto cols = static_cast<std::size_t>(in_features);
    for (std::size_t row = 0; row < factors.size(); ++row) {
      bias[row] *= factors[row];
      for (float& value : std::span(weight).subspan(row * cols, cols)) value *= factors[row];
    }
  };
  ops::PackedLinear layer = linear_from(name, {out_features, in_features}, in_features, multiply);
  if (device_ == nullptr) check(scale, {out_features});
  return layer;
}

ops::PackedLinear WeightLoader::transposed(const std::string& name, std::int64_t in_features,
                                           std::int64_t out_features) {
  const Shape shape{in_features, out_features};
  if (device_ == nullptr) {
    check(name, shape);
    return without_memory(in_features, out_features, Bias::kNo);
  }
  const ConstTensorView stored = source_.tensor(names_.stored(name), shape);
  // It is a convolution with one output channel, whose taps are the features.
  const std::vector<std::byte> turned = tap_by_tap(stored, 1, in_features);
  return ops::pack_linear(*device_, {turned.data(), stored.dtype, {out_features, in_features}}, {},
                          format_);
}

ops::PackedLinear WeightLoader::qkv(const std::string& name, std::int64_t features, Bias bias) {
  const bool split = !exists(name + ".qkv.weight") && exists(name + ".q.weight");
  if (!split) return linear(name + ".qkv", 3 * features, {features}, bias);
  return pack({.parts = {name + ".q", name + ".k", name + ".v"},
               .part_rows = features,
               .in_sizes = {features}},
              bias);
}

namespace {

/// Rows of q, k and v with those of every head of q and k in another order.
std::vector<std::int64_t> reordered_rows(std::int64_t features,
                                         std::span<const std::int64_t> order) {
  const auto head_dim = std::ssize(order);
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 3 * features; ++row) {
    const std::int64_t within = row % head_dim;
    const bool is_v = row >= 2 * features;
    rows.push_back(is_v ? row : row - within + order[static_cast<std::size_t>(within)]);
  }
  return rows;
}

}  // namespace

ops::PackedLinear WeightLoader::qkv(const std::vector<std::string>& layers, std::int64_t features,
                                    std::span<const std::int64_t> order) {
  return pack({.parts = layers,
               .part_rows = 3 * features / std::ssize(layers),
               .in_sizes = {features},
               .rows = reordered_rows(features, order)},
              Bias::kYes);
}

ops::PackedLinear WeightLoader::in_proj(const std::string& name, std::int64_t features,
                                        std::span<const std::int64_t> order) {
  return pack({.parts = {name + ".in_proj"},
               .part_rows = 3 * features,
               .in_sizes = {features},
               .separator = "_",
               .rows = reordered_rows(features, order)},
              Bias::kYes);
}

ops::PackedLinear WeightLoader::grouped_qkv(const std::string& name, std::int64_t features,
                                            std::int64_t num_heads,
                                            std::int64_t num_key_value_heads) {
  const std::int64_t head_dim = features / num_heads;
  const std::int64_t shared_rows = num_key_value_heads * head_dim;  // of k, and of v
  const std::int64_t group = num_heads / num_key_value_heads;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(features));
  std::iota(rows.begin(), rows.end(), 0);
  for (const std::int64_t first : {features, features + shared_rows}) {
    for (std::int64_t row = 0; row < features; ++row) {
      rows.push_back(first + row / head_dim / group * head_dim + row % head_dim);
    }
  }
  return pack({.parts = {name + ".qkv"},
               .part_rows = features + 2 * shared_rows,
               .in_sizes = {features},
               .rows = std::move(rows)},
              Bias::kYes);
}

ops::PackedLinear WeightLoader::grouped_qkv_of_three(const std::string& name, std::int64_t features,
                                                     std::int64_t num_heads,
                                                     std::int64_t num_key_value_heads) {
  const std::int64_t head_dim = features / num_heads;
  const std::int64_t shared_rows = num_key_value_heads * head_dim;  // of k, and of v
  const std::int64_t group = num_heads / num_key_value_heads;
  std::vector<std::int64_t> rows;
  for (const std::int64_t first : {std::int64_t{0}, shared_rows}) {
    for (std::int64_t row = 0; row < features; ++row) {
      rows.push_back(first + row / head_dim / group * head_dim + row % head_dim);
    }
  }
  const FusedWeights all[] = {
      {.parts = {name + ".q_proj"}, .part_rows = features, .in_sizes = {features}},
      {.parts = {name + ".k_proj", name + ".v_proj"},
       .part_rows = shared_rows,
       .in_sizes = {features},
       .rows = std::move(rows)}};
  return pack(all, Bias::kYes);
}

ops::PackedLinear WeightLoader::probed_qkv(const std::string& name, const std::string& probe,
                                           std::int64_t features) {
  const Shape weight_shape{3 * features, features};
  const Shape bias_shape{3 * features};
  if (device_ == nullptr) {
    check(probe, {1, 1, features});
    check(name + "_weight", weight_shape);
    check(name + "_bias", bias_shape);
    return without_memory(features, 3 * features, Bias::kYes);
  }
  const std::vector<float> query = widened(probe, {1, 1, features});
  std::vector<float> weight = widened(name + "_weight", weight_shape);
  std::vector<float> bias = widened(name + "_bias", bias_shape);
  for (std::size_t row = 0; row < query.size(); ++row) {
    const std::span<float> of_row = std::span(weight).subspan(row * query.size(), query.size());
    double sum = bias[row];
    for (std::size_t i = 0; i < query.size(); ++i) sum += double{of_row[i]} * double{query[i]};
    bias[row] = static_cast<float>(sum);
    std::ranges::fill(of_row, 0.0f);
  }
  const auto view = [](const std::vector<float>& values, const Shape& shape) -> ConstTensorView {
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
  };
  return ops::pack_linear(*device_, view(weight, weight_shape), view(bias, bias_shape), format_);
}

GatedMlp WeightLoader::gated(const std::string& name, std::int64_t features, std::int64_t wide,
                             ops::Activation activation, Bias bias) {
  constexpr std::int64_t kVector = 8;
  return {.gate_up = pack({.parts = {name + ".gate_proj", name + ".up_proj"},
                           .part_rows = wide,
                           .in_sizes = {features},
                           .row_multiple = kVector},
                          bias),
          .down = pack({.parts = {name + ".down_proj"},
                        .part_rows = features,
                        .in_sizes = {wide},
                        .column_multiple = kVector},
                       bias),
          .activation = activation};
}

ops::PackedLinear WeightLoader::pack(const FusedWeights& fused, Bias bias) {
  return pack(std::span(&fused, 1), bias);
}

ops::PackedLinear WeightLoader::pack(std::span<const FusedWeights> all, Bias bias) {
  bias = decided(bias, all.front().parts.front());
  const std::int64_t in_features = all.front().in_features();
  std::int64_t out_features = 0;
  StoredBytes weight;
  StoredBytes biases;
  for (const FusedWeights& fused : all) {
    out_features += fused.out_features();
    const Shape bias_shape{fused.part_rows};
    const std::string weights_end = cat(fused.separator, "weight");
    const std::string biases_end = cat(fused.separator, "bias");
    if (device_ == nullptr) {
      for (std::size_t i = 0; i < fused.parts.size(); ++i) {
        check(fused.parts[i] + weights_end, fused.part_shape());
        if (bias == Bias::kYes && fused.has_bias(i)) check(fused.parts[i] + biases_end, bias_shape);
      }
      continue;
    }
    append_fused(source_, fused, names_, weights_end, fused.part_shape(), weight);
    if (bias == Bias::kYes) append_fused(source_, fused, names_, biases_end, bias_shape, biases);
  }
  if (device_ == nullptr) return without_memory(in_features, out_features, bias);
  const ConstTensorView bias_view =
      bias == Bias::kYes ? ConstTensorView{biases.bytes.data(), biases.dtype, {out_features}}
                         : ConstTensorView{};
  const Shape shape{out_features, in_features};
  return ops::pack_linear(*device_, {weight.bytes.data(), weight.dtype, shape}, bias_view, format_);
}

}  // namespace fovea::common
