#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fovea/reports.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "media/normalize.h"
#include "models/common/fused_weights.h"
#include "models/common/layers.h"
#include "models/common/weight_names.h"
#include "models/quantization_plan.h"

namespace fovea::common {

/// Fetches the tensors of a tower by name and puts them on a device. A family describes its weights
/// once, as a function of a loader; that function runs twice. A loader without a device only
/// checks: it collects every missing and misshapen tensor and returns weights that have shapes and
/// an address that tests as present, but no memory: enough for counting kernels. A loader with a
/// device loads.
class WeightLoader {
 public:
  /// Checks only. `source` must outlive the loader.
  WeightLoader(const checkpoint::WeightSource& source, WeightNames names);
  /// Loads onto `device`, layers in the formats of `plan`.
  WeightLoader(const checkpoint::WeightSource& source, WeightNames names, Device& device,
               Stream& stream, const QuantizationPlan& plan = {});

  /// While it lives, layers are loaded in a format.
  class FormatScope {
   public:
    FormatScope(WeightLoader& loader, ops::WeightFormat format) noexcept
        : loader_(loader), before_(std::exchange(loader.format_, format)) {}
    ~FormatScope() { loader_.format_ = before_; }
    FormatScope(const FormatScope&) = delete;
    FormatScope& operator=(const FormatScope&) = delete;

   private:
    WeightLoader& loader_;
    ops::WeightFormat before_;
  };
  /// While the result lives, layers are those of a block of a tower.
  [[nodiscard]] FormatScope block(const BlockPlace& place) noexcept {
    return {*this, plan_.of(place)};
  }

  enum class Bias : std::uint8_t {
    kYes,
    kNo,
    kIfStored,  ///< the checkpoint decides
  };

  /// Whether the checkpoint stores a tensor that only some have. Dummy weights have none of those.
  [[nodiscard]] bool stores(const std::string& name) const;
  /// `<name>.weight` (any shape of out_features rows whose sizes multiply to in_features) and
  /// `<name>.bias`, packed for GEMMs.
  [[nodiscard]] ops::PackedLinear linear(const std::string& name, std::int64_t out_features,
                                         const std::vector<std::int64_t>& in_sizes,
                                         Bias bias = Bias::kYes);
  /// The layers of these names as one whose features are theirs in this order, `part_rows` each.
  /// @throws Error(kUnsupported) if they have different dtypes.
  [[nodiscard]] ops::PackedLinear fused(const std::vector<std::string>& parts,
                                        std::int64_t part_rows,
                                        const std::vector<std::int64_t>& in_sizes, Bias bias);
  /// The same of any selection of their rows, and where only some of them have a bias.
  /// @throws as above.
  [[nodiscard]] ops::PackedLinear fused(const FusedWeights& layers, Bias bias) {
    return pack(layers, bias);
  }
  /// As linear, with weight and bias, widened to f32, changed on the host before they are packed.
  /// @param stored shape of the weight, whose first size is out_features.
  /// @param transform weight and bias of the checkpoint in, those of the layer out, in place: the
  /// weight becomes [out_features, in_features], the bias stays [out_features].
  /// @param bias kNo: the checkpoint has none, the transform finds zeros and makes one.
  [[nodiscard]] ops::PackedLinear linear_from(
      const std::string& name, const Shape& stored, std::int64_t in_features,
      const std::function<void(std::vector<float>& weight, std::vector<float>& bias)>& transform,
      Bias bias = Bias::kYes);
  /// The layer `<name>` with every feature multiplied by its value in the tensor `scale`
  /// [out_features], a layer scale, which then needs no work of its own:
  /// s (W x + b) = (s W) x + s b. The weights become f32.
  [[nodiscard]] ops::PackedLinear scaled_linear(const std::string& name, const std::string& scale,
                                                std::int64_t out_features,
                                                std::int64_t in_features);
  /// The tensor `<name>`, [in_features, out_features], turned, as a layer without a bias.
  [[nodiscard]] ops::PackedLinear transposed(const std::string& name, std::int64_t in_features,
                                             std::int64_t out_features);
  /// The fused projection `<name>.qkv`, or the three `<name>.q`, `.k`, `.v` fused in this order.
  [[nodiscard]] ops::PackedLinear qkv(const std::string& name, std::int64_t features,
                                      Bias bias = Bias::kYes);
  /// The same of `layers`, one fused or three to fuse, with the rows of every head of q and k in
  /// another order, as RowOrder.
  [[nodiscard]] ops::PackedLinear qkv(const std::vector<std::string>& layers, std::int64_t features,
                                      std::span<const std::int64_t> order);
  /// The same of `<name>.in_proj_weight` and `<name>.in_proj_bias`, as a module of PyTorch for
  /// attention stores them.
  [[nodiscard]] ops::PackedLinear in_proj(const std::string& name, std::int64_t features,
                                          std::span<const std::int64_t> order);
  /// `<name>.qkv`, with bias, of fewer heads of k and v than of q: each is repeated for the heads
  /// of q that share it, neighbours, so that attention needs not know of groups.
  [[nodiscard]] ops::PackedLinear grouped_qkv(const std::string& name, std::int64_t features,
                                              std::int64_t num_heads,
                                              std::int64_t num_key_value_heads);
  /// The same of the three `<name>.q_proj`, `.k_proj` and `.v_proj`.
  [[nodiscard]] ops::PackedLinear grouped_qkv_of_three(const std::string& name,
                                                       std::int64_t features,
                                                       std::int64_t num_heads,
                                                       std::int64_t num_key_value_heads);
  /// `<name>_weight` and `<name>_bias`, q, k and v of attention whose only query is that of the
  /// tensor `probe`, [1, 1, features]: q is computed here, and is that of every row. The weights
  /// become f32.
  [[nodiscard]] ops::PackedLinear probed_qkv(const std::string& name, const std::string& probe,
                                             std::int64_t features);
  /// `<name>.weight` and `<name>.bias`.
  [[nodiscard]] LayerNorm layer_norm(const std::string& name, std::int64_t features, float epsilon);
  /// `<name>.weight`.
  [[nodiscard]] RmsNorm rms_norm(const std::string& name, std::int64_t features, float epsilon);
  /// `<name>.gate_proj` and `.up_proj`, features -> wide, and `.down_proj`, wide -> features. The
  /// wide side is filled up with zeros to a multiple of 8, which changes no sum, because kernels
  /// work on whole vectors.
  [[nodiscard]] GatedMlp gated(const std::string& name, std::int64_t features, std::int64_t wide,
                               ops::Activation activation, Bias bias);
  /// Blocks that have been loaded, prepared to be computed together where the backend can.
  [[nodiscard]] BlockSequence block_sequence(std::vector<Block> blocks) const;
  /// One tensor widened to f32, for example a position table.
  [[nodiscard]] Tensor f32(const std::string& name, const Shape& shape);
  /// The same with another shape of as many elements.
  [[nodiscard]] Tensor f32(const std::string& name, const Shape& stored, const Shape& wanted);
  /// One vector widened to f32, as a matrix of one row.
  [[nodiscard]] Tensor row(const std::string& name, std::int64_t features);
  /// The numbers `names`, each `count` times, one after the other: [names * count] f32.
  [[nodiscard]] Tensor repeated(const std::vector<std::string>& names, std::int64_t count);
  /// Values that are in no checkpoint, f32, row-major.
  [[nodiscard]] Tensor constant(std::span<const float> values, const Shape& shape);
  /// [3, 256]: value of every byte per channel.
  [[nodiscard]] Tensor constant(const media::NormalizeTable& table);

  /// One tensor of shape `stored`, widened to f32 and transformed on the host into one of shape
  /// `wanted`, for example a position table at another size. A tensor may be asked for repeatedly.
  [[nodiscard]] Tensor f32_from(
      const std::string& name, const Shape& stored, const Shape& wanted,
      const std::function<std::vector<float>(std::span<const float>)>& transform);
  /// `<name>.weight`, [out_channels, in_channels, side, side], and `<name>.bias` of a convolution,
  /// as a layer over the side * side pixels under it, row-major, each with all its channels.
  [[nodiscard]] ops::PackedLinear conv(const std::string& name, std::int64_t out_channels,
                                       std::int64_t in_channels, std::int64_t side, Bias bias);
  /// The same of a convolution whose weight is stored as that of a layer over what unfold of
  /// PyTorch gives, [out_channels, in_channels * side * side], channel by channel.
  [[nodiscard]] ops::PackedLinear unfolded(const std::string& name, std::int64_t out_channels,
                                           std::int64_t in_channels, std::int64_t side, Bias bias);
  /// The layer `<name>` over patches of `pixels` pixels that are stored one after the other, each
  /// with its 3 channels, as one over them channel by channel, as ops::patchify gives them.
  [[nodiscard]] ops::PackedLinear channels_last(const std::string& name, std::int64_t features,
                                                std::int64_t pixels, Bias bias);
  /// The same of a 3 x 3 convolution, for rows of ops::im2col_3x3.
  [[nodiscard]] Conv3x3 conv3x3(const std::string& name, std::int64_t out_channels,
                                std::int64_t in_channels, std::int64_t stride, Bias bias);

  /// Everything asked for so far, with what was found.
  [[nodiscard]] const std::vector<TensorReport>& report() const noexcept { return report_; }
  /// Elements of all tensors asked for.
  [[nodiscard]] std::int64_t parameters() const noexcept { return parameters_; }

 private:
  [[nodiscard]] ops::PackedLinear pack(const FusedWeights& fused, Bias bias);
  /// Several of the same inputs and dtypes, whose features follow one another.
  [[nodiscard]] ops::PackedLinear pack(std::span<const FusedWeights> all, Bias bias);
  /// A layer whose weight, of this shape, is [out, channel, tap], as one over [tap, channel].
  [[nodiscard]] ops::PackedLinear over_taps(const std::string& name, const Shape& shape,
                                            std::int64_t in_channels, Bias bias);
  /// Notes what the checkpoint says about a tensor.
  void check(const std::string& name, const Shape& shape);
  [[nodiscard]] std::vector<float> widened(const std::string& name, const Shape& shape) const;
  [[nodiscard]] bool exists(const std::string& name) const;
  /// kYes or kNo.
  [[nodiscard]] Bias decided(Bias bias, const std::string& layer) const;

  const checkpoint::WeightSource& source_;
  WeightNames names_;
  Device* device_ = nullptr;  // null: check only
  Stream* stream_ = nullptr;
  QuantizationPlan plan_;
  ops::WeightFormat format_ = ops::WeightFormat::kNative;
  std::vector<TensorReport> report_;
  std::unordered_set<std::string> reported_;  // names in report_
  std::int64_t parameters_ = 0;
};

}  // namespace fovea::common
