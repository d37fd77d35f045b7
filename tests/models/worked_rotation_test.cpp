// Rotary positions of a head as stored, worked out with the references: frequencies, and what
// becomes of q through the order in which its rows are loaded.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/grid/inputs.h"
#include "models/config_files.h"
#include "models/kimi_vl/model.h"
#include "models/llama4/model.h"
#include "models/load_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using Values = std::vector<float>;

/// A CPU with memory for one small layer.
class WorkedRotation : public ::testing::Test {
 protected:
  Values frequencies(std::int64_t head_dim, double theta = 10000.0) {
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader loader(source, "", *device_, *stream_);
    return values_of(common::inverse_frequencies(loader, head_dim, theta));
  }

  static Values values_of(const Tensor& tensor) {
    const auto* const first = tensor.view().as<float>();
    return {first, first + tensor.view().shape.elements()};
  }

  /// A checkpoint for these files that holds zeros, but 1 to the length of a head in `q_bias`.
  void write_checkpoint(const checkpoint::HfConfig& files, const std::string& q_bias,
                        std::int64_t head_dim) {
    Values zeros(1 << 17);
    Values bias(static_cast<std::size_t>(3 * head_dim));
    for (std::int64_t k = 0; k < head_dim; ++k)
      bias[static_cast<std::size_t>(k)] = static_cast<float>(k + 1);
    std::vector<checkpoint::OutputTensor> tensors;
    const auto weights = checkpoint::WeightSource::dummy(0);
    for (const TensorReport& tensor : check_model(files, {}, weights).report.tensors) {
      const std::string name = tensor.name.substr(std::string_view("model.").size());
      const Shape shape(tensor.shape);
      const Values& values = name == q_bias ? bias : zeros;
      ASSERT_LE(static_cast<std::size_t>(shape.elements()), values.size()) << name;
      tensors.push_back(
          {name, {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape}});
    }
    checkpoint::write_safetensors(folder_ / "model.safetensors", tensors, {});
  }

  /// q of a patch: the bias of the layer, scaled so that q[k] = (k + 1) / head_dim, with halves
  /// turned by the patch's angles, in the order of the checkpoint.
  Values rotated_q(const common::Attention& attention, const Values& inv_freq, double row,
                   double col) {
    const auto half = static_cast<std::size_t>(attention.head_dim() / 2);
    const Values q = bias_of(attention.qkv);
    Values out(2 * half);
    for (std::size_t j = 0; j < half; ++j) {
      const double angle = (j < half / 2 ? row : col) * inv_freq[j];
      const double a = q[j] / static_cast<double>(2 * half);
      const double b = q[j + half] / static_cast<double>(2 * half);
      out[stored_place(q[j])] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
      out[stored_place(q[j + half])] =
          static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
    }
    return out;
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  const test::TemporaryDirectory folder_;

 private:
  static std::size_t stored_place(float value) { return static_cast<std::size_t>(value) - 1; }

  Values bias_of(const ops::PackedLinear& linear) {
    Values x(static_cast<std::size_t>(linear.in_features));
    Values out(static_cast<std::size_t>(linear.out_features));
    const auto view = [](Values& values) {
      return TensorView{
          reinterpret_cast<std::byte*>(values.data()), DType::kF32, {1, std::ssize(values)}};
    };
    const Buffer memory = device_->allocate(std::size_t{1} << 20);
    Arena arena(memory.data(), memory.bytes());
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    ops::linear(ctx, {.x = view(x), .weight = linear, .out = view(out)});
    stream_->synchronize();
    return out;
  }
};

TEST_F(WorkedRotation, FrequenciesAreThoseOfTheReference) {
  struct Case {
    std::int64_t head_dim;
    Values first;
    float last;
  };
  for (const Case& c : {Case{64, {1, .562341325f, .316227766f, .177827941f}, .000177827941f},
                        Case{72, {1, .59948425f, .359381366f, .215443469f}, .000166810054f},
                        Case{80, {1, .630957344f, .398107171f, .251188643f}, .000158489319f},
                        Case{88, {1, .6579332f, .4328761f, .2848036f}, .00015199f},
                        Case{128, {1, .749894209f, .562341325f, .421696503f}, .000133352143f}}) {
    SCOPED_TRACE(c.head_dim);
    const Values got = frequencies(c.head_dim);
    ASSERT_EQ(std::ssize(got), c.head_dim / 2);
    for (std::size_t i = 0; i < c.first.size(); ++i) EXPECT_NEAR(got[i], c.first[i], 6e-8);
    EXPECT_NEAR(got.back(), c.last, 2e-9);
  }
}

TEST_F(WorkedRotation, KimiVlTurnsPairsByColumnAndRowInTurn) {
  const auto files = test::config_files({.config = R"({
      "architectures": ["KimiVLForConditionalGeneration"], "text_config": {"hidden_size": 8},
      "vision_config": {"hidden_size": 72, "num_attention_heads": 1, "num_hidden_layers": 1,
                        "intermediate_size": 8, "patch_size": 2, "init_pos_emb_height": 2,
                        "init_pos_emb_width": 2}})"});
  write_checkpoint(files, "vision_tower.encoder.blocks.0.wqkv.bias", 72);
  const auto source = checkpoint::WeightSource::open(folder_.path());
  common::WeightLoader loader(source, "", *device_, *stream_);
  const auto weights = kimi_vl::load_weights(loader, kimi_vl::parse_config(files), {});
  const Values got = rotated_q(weights.blocks.blocks[0].attn, values_of(weights.inv_freq), 1, 2);
  const Values want{-.0310381f, .0010695f, -.0242358f, .0650781f,
                    -.0524083f, .0949755f, .0175785f,  .1465907f};
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-7) << k;
}

TEST_F(WorkedRotation, Llama4TurnsTheFirstHalfOfThePairsByColumn) {
  const auto files = test::config_files({.config = R"({
      "architectures": ["Llama4ForConditionalGeneration"], "text_config": {"hidden_size": 8},
      "vision_config": {"hidden_size": 8, "num_attention_heads": 1, "num_hidden_layers": 1,
                        "intermediate_size": 32, "image_size": 8, "patch_size": 4,
                        "projector_input_dim": 8, "projector_output_dim": 8,
                        "vision_output_dim": 8}})"});
  write_checkpoint(files, "vision_model.model.layers.0.self_attn.q_proj.bias", 8);
  const auto source = checkpoint::WeightSource::open(folder_.path());
  common::WeightLoader loader(source, "", *device_, *stream_);
  const auto weights = llama4::load_weights(loader, llama4::parse_config(files), {});
  // Patch 2 of a grid of 2 x 2; rows and columns count from 1.
  const Values got = rotated_q(weights.layers[0].attn, values_of(weights.inv_freq), 2, 1);
  const Values want{-.1428300f, .2402594f, .3699813f, .5037249f,
                    -.9420648f, .2562008f, .8548263f, 1.0172988f};
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-7) << k;
}

}  // namespace
}  // namespace fovea
