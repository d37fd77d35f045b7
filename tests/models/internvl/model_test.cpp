// InternVL behind the graph protocol: budgets, both formats of one tower, frames as views.
#include "models/internvl/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <random>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/graph_config.h"
#include "models/config_files.h"
#include "models/load_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea::internvl {
namespace {

using Rows = std::vector<float>;

/// A checkpoint on the CPU.
struct Checkpoint {
  explicit Checkpoint(const std::string& directory) : folder(directory) {}

  std::string folder;
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device = make_cpu_device(2, *kernels);
  std::unique_ptr<Stream> stream = device->create_stream();
  std::unique_ptr<EncoderGraphModel> model =
      load_model(checkpoint::read_hf_config(folder), {}, checkpoint::WeightSource::open(folder),
                 *device, *stream);

  /// The rows of an item by itself.
  [[nodiscard]] Rows encode(const PreparedItem& item) const {
    const std::int64_t width = model->graph_spec().out_width;
    Rows rows(static_cast<std::size_t>(item.plan.spec.out_rows * width));
    const PreparedItem* items[] = {&item};
    const TensorView out[] = {
        {reinterpret_cast<std::byte*>(rows.data()), DType::kF32, {item.plan.spec.out_rows, width}}};
    GraphManager manager(*model, *device, {});
    manager.execute_eager(items, out);
    return rows;
  }
};

/// An item of random pixels.
PreparedItem random_item(const ItemPlan& plan) {
  std::mt19937 random(1);
  return {.plan = plan, .pixels = test::random_bytes(plan.pixel_bytes, random)};
}

TEST(InternvlModel, BudgetsAreThoseOfTheReference) {
  const Checkpoint native(test::golden_folder("internvl", "model.safetensors"));
  const GraphSpec& spec = native.model->graph_spec();
  EXPECT_EQ(spec.modalities, (std::vector{Modality::kImage, Modality::kVideo}));
  ASSERT_EQ(spec.paths.size(), 1u);
  EXPECT_EQ(spec.paths[0].unit, 4) << "tokens of a view of 56 x 56 pixels";
  EXPECT_EQ(spec.paths[0].min_token_budget, 4);
  const auto published = plan_model(test::config_files({.config = R"({
      "architectures": ["InternVLForConditionalGeneration"], "vision_config": {},
      "text_config": {"hidden_size": 896}})"}),
                                    {});
  const GraphConfig config = graph_config_of(*published, 8192, {.user = {}});
  EXPECT_EQ(config.path_budgets[0], (std::vector<std::int64_t>{256, 512, 1024, 2048, 4096, 8192}));
  EXPECT_EQ(config.max_items, 32);
}

TEST(InternvlModel, AFrameGivesTheRowsOfAnImageOfOneView) {
  for (const char* family : {"internvl", "internvl_chat"}) {
    const Checkpoint checkpoint(test::golden_folder(family, "model.safetensors"));
    const ItemProcessor& processor = checkpoint.model->processor();
    const PreparedItem video = random_item(processor.plan_video(2, 40, 30));
    PreparedItem image{.plan = processor.plan_image(56, 56), .pixels = {}};
    image.pixels.assign(video.pixels.end() - static_cast<std::ptrdiff_t>(image.plan.pixel_bytes),
                        video.pixels.end());
    const Rows rows = checkpoint.encode(video);
    EXPECT_EQ(checkpoint.encode(image), Rows(rows.begin() + std::ssize(rows) / 2, rows.end()));
  }
}

/// The golden checkpoint of the format of transformers, written in the authors' format.
class Renamed {
 public:
  explicit Renamed(const std::string& native) : file_(native + "/model.safetensors") {
    const std::string chat = "vision_model.";
    rename("cls_token", chat + "embeddings.class_embedding");
    rename("position_embeddings", chat + "embeddings.position_embedding");
    rename_layer("patch_embeddings.projection", chat + "embeddings.patch_embedding");
    for (const std::string i : {"0", "1"}) {
      const std::string from = "layer." + i + ".";
      const std::string to = chat + "encoder.layers." + i + ".";
      for (const char* part : {"weight", "bias"}) fuse(from, part, to + "attn.qkv." + part);
      rename_layer(from + "attention.projection_layer", to + "attn.proj");
      rename_layer(from + "mlp.fc1", to + "mlp.fc1");
      rename_layer(from + "mlp.fc2", to + "mlp.fc2");
      rename_layer(from + "layernorm_before", to + "norm1");
      rename_layer(from + "layernorm_after", to + "norm2");
      rename(from + "lambda_1", to + "ls1");
      rename(from + "lambda_2", to + "ls2");
    }
    rename_layer("multi_modal_projector.layer_norm", "mlp1.0");
    rename_layer("multi_modal_projector.linear_1", "mlp1.1");
    rename_layer("multi_modal_projector.linear_2", "mlp1.3");
    checkpoint::write_safetensors(folder_ / "model.safetensors", tensors_, {});
    std::ofstream(folder_ / "config.json") << R"({"architectures": ["InternVLChatModel"],
        "ps_version": "v2", "llm_config": {"hidden_size": 48}, "vision_config": {
        "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 160, "image_size": 56, "qkv_bias": true, "qk_normalization": false,
        "norm_type": "layer_norm"}})";
  }
  [[nodiscard]] std::string folder() const { return folder_.path(); }

 private:
  [[nodiscard]] ConstTensorView stored(const std::string& ending) const {
    const auto& tensors = file_.header().tensors;
    const auto found = std::ranges::find_if(
        tensors, [&](const auto& tensor) { return tensor.name.ends_with(ending); });
    return file_.tensor(found->name);
  }
  void rename(const std::string& from, const std::string& to) {
    tensors_.push_back({to, stored(from)});
  }
  void rename_layer(const std::string& from, const std::string& to) {
    for (const char* part : {".weight", ".bias"}) rename(from + part, to + part);
  }
  /// q, k and v one after the other.
  void fuse(const std::string& layer, const std::string& part, const std::string& to) {
    std::vector<std::byte>& bytes = fused_.emplace_back();
    Shape shape;
    for (const char* name : {"q", "k", "v"}) {
      const ConstTensorView view = stored(layer + "attention." + name + "_proj." + part);
      bytes.insert(bytes.end(), view.data, view.data + view.bytes());
      shape = view.shape;
    }
    const Shape fused = shape.rank() == 2 ? Shape{3 * shape[0], shape[1]} : Shape{3 * shape[0]};
    tensors_.push_back({to, {bytes.data(), DType::kBF16, fused}});
  }

  checkpoint::SafetensorsFile file_;
  test::TemporaryDirectory folder_;
  std::vector<checkpoint::OutputTensor> tensors_;
  std::list<std::vector<std::byte>> fused_;
};

TEST(InternvlModel, BothFormatsOfATowerGiveTheSameRows) {
  const std::string folder = test::golden_folder("internvl", "model.safetensors");
  const Renamed renamed(folder);
  const Checkpoint native(folder);
  const Checkpoint chat(renamed.folder());
  const PreparedItem video = random_item(native.model->processor().plan_video(3, 40, 30));
  const Rows expected = native.encode(video);
  const Rows got = chat.encode(video);
  ASSERT_EQ(got.size(), expected.size());
  // Bytes become values by other roundings: in one step, and in two.
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 2e-5);
}

}  // namespace
}  // namespace fovea::internvl
