// Qwen2.5-VL behind the graph protocol: what it declares, and what its attention costs.
#include "models/qwen2_5_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "models/load_model.h"

namespace fovea::qwen2_5_vl {
namespace {

std::unique_ptr<EncoderGraphModel> planner(const std::string& more = "") {
  return plan_model(
      test::config_files({.config = R"({"architectures": ["Qwen2_5_VLForConditionalGeneration"],
                             "vision_config": {"hidden_size": 1280, "out_hidden_size": 2048)" +
                                    more + "}}"}),
      {});
}

TEST(Qwen25VlModel, DeclaresOnePathForImagesAndVideos) {
  const auto model = planner();
  const GraphSpec& spec = model->graph_spec();
  EXPECT_EQ(spec.modalities, (std::vector<Modality>{Modality::kImage, Modality::kVideo}));
  ASSERT_EQ(spec.paths.size(), 1u);
  EXPECT_EQ(spec.out_width, 2048);
  EXPECT_EQ(spec.main_width, 2048);
  EXPECT_EQ(spec.min_token_budget, 64);
}

TEST(Qwen25VlModel, OffsetsOfWindowsArePaddedWithTheLast) {
  const std::vector<BufferDecl> decls = planner()->inputs(0, {.tokens = 64, .items = 8, .seqs = 8});
  const auto decl = std::ranges::find(decls, "cu_window_seqlens", &BufferDecl::name);
  ASSERT_NE(decl, decls.end());
  EXPECT_EQ(decl->shape, Shape{(64 + 3 * 8) / 4 + 1});
  EXPECT_EQ(decl->pad, PadRule::kRepeatLast);
}

TEST(Qwen25VlModel, AttentionCostsAsMuchAsAllElseAtTheParityRows) {
  // Per row a block does 4 h^2 + 3 h i multiplications in its GEMMs, a full one 2 h per key; one
  // block of eight is full.
  EXPECT_EQ(planner()->graph_spec().attention_parity_rows, 8 * (2 * 1280 + 3420 * 3 / 2));
  EXPECT_EQ(planner(", \"fullatt_block_indexes\": []")->graph_spec().attention_parity_rows, 0)
      << "the cost of an item follows its rows alone";
}

TEST(Qwen25VlModel, FactsSayHowBlocksAttend) {
  const auto facts = planner()->facts();
  const auto fact = [&](const std::string& name) {
    const auto found = std::ranges::find(facts, name, &std::pair<std::string, std::string>::first);
    return found == facts.end() ? "none" : found->second;
  };
  EXPECT_EQ(fact("blocks with full attention"), "4");
  EXPECT_EQ(fact("window_size"), "112");
}

}  // namespace
}  // namespace fovea::qwen2_5_vl
