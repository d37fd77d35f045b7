// SigLIP as an encoder: what is read of its files, and its list of tensors.
#include "models/siglip/model.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/load_model.h"
#include "support/expect_error.h"

namespace fovea::siglip {
namespace {

CheckedModel check(const std::string& config, TowerOutput output,
                   const std::string& processor = {}) {
  return check_model(test::config_files({.config = config, .preprocessor = processor}), {},
                     checkpoint::WeightSource::dummy(0), output);
}

/// The tensors and parameters of transformers' module of the vision part.
void expect_count(const std::string& config, const std::string& processor, std::size_t tensors,
                  std::int64_t parameters) {
  const CheckedModel model = check(config, TowerOutput::kVectors, processor);
  EXPECT_EQ(model.report.tensors.size(), tensors);
  EXPECT_EQ(model.report.parameters, parameters);
}

TEST(SiglipModel, HasTheTensorsOfThePublishedTowers) {
  expect_count(R"({"architectures": ["SiglipVisionModel"]})", "", 208, 92'884'224);
  expect_count(R"({"architectures": ["SiglipModel"], "text_config": {}, "vision_config": {
      "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "image_size": 384,
      "num_attention_heads": 16, "patch_size": 14, "model_type": "siglip_vision_model"}})",
               R"({"size": {"height": 384, "width": 384}, "resample": 3,
                   "image_processor_type": "SiglipImageProcessor"})",
               448, 428'225'600);
}

TEST(SiglipModel, RowsAreThePatchesAndAVectorIsOneRow) {
  constexpr const char* kConfig = R"({"architectures": ["SiglipVisionModel"]})";
  const CheckedModel rows = check(kConfig, TowerOutput::kRows);
  EXPECT_EQ(rows.planner->processor().plan_image(640, 480).spec.out_rows, 196);
  EXPECT_EQ(rows.report.tensors.size(), 208U - 11) << "the head is for vectors";
  const CheckedModel vectors = check(kConfig, TowerOutput::kUnitVectors);
  EXPECT_EQ(vectors.planner->processor().plan_image(640, 480).spec.out_rows, 1);
  EXPECT_EQ(vectors.planner->graph_spec().out_width, 768);
}

TEST(SiglipModel, WithoutAHeadThereAreRowsAlone) {
  constexpr const char* kConfig =
      R"({"architectures": ["SiglipVisionModel"], "vision_use_head": false})";
  EXPECT_NO_THROW((void)check(kConfig, TowerOutput::kRows));
  test::expect_error(ErrorCode::kUnsupported, "vision_use_head: false, so the model makes no",
                     [] { (void)check(kConfig, TowerOutput::kVectors); });
}

TEST(SiglipModel, RefusesViewsOfAnotherSize) {
  test::expect_error(ErrorCode::kUnsupported, "views of 384 pixels a side contradict", [] {
    (void)check(R"({"architectures": ["SiglipVisionModel"]})", TowerOutput::kRows,
                R"({"size": {"height": 384, "width": 384}})");
  });
}

}  // namespace
}  // namespace fovea::siglip
