// config.json of DeepSeek-OCR: the published values, and every refusal.
#include "models/deepseek_ocr/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr {
namespace {

/// config.json with this text for SAM, CLIP, the projector, and further keys.
struct Text {
  std::string sam = "{}";
  std::string clip = "{}";
  std::string projector = "{}";
  std::string more = "";

  [[nodiscard]] checkpoint::HfConfig files() const {
    return test::config_files(
        {.config = "{\"architectures\": [\"DeepseekOCRForCausalLM\"], \"vision_config\": "
                   "{\"width\": {\"sam_vit_b\": " +
                   sam + ", \"clip-l-14-224\": " + clip + "}}, \"projector_config\": " + projector +
                   more + "}"});
  }
};

void expect_refused(ErrorCode code, const std::string& message, const Text& text) {
  test::expect_error(code, message, [&] { (void)parse_config(text.files()); });
}

TEST(DeepseekOcrConfig, DefaultsAreThoseOfTheReleasedCheckpoint) {
  const Config c = parse_config(Text{}.files());
  EXPECT_EQ(c.sam.width, 768);
  EXPECT_EQ(c.sam.head_dim(), 64);
  EXPECT_EQ(c.sam.layers, 12);
  EXPECT_EQ(c.feature_width(), 1024);
  EXPECT_EQ(c.clip_width, 1024);
  EXPECT_EQ(c.clip_head_dim(), 64);
  EXPECT_EQ(c.clip_layers, 24);
  EXPECT_EQ(c.projector_input_dim, 2048);
  EXPECT_EQ(c.n_embed, 1280);
  EXPECT_EQ(c.max_position_embeddings, 8192);
  for (std::int64_t layer = 0; layer < 12; ++layer) {
    EXPECT_EQ(c.sam.is_global_block(layer), layer % 3 == 2) << layer;
  }
}

TEST(DeepseekOcrConfig, ReadsEverySize) {
  const Config c =
      parse_config(Text{.sam = R"({"width": 96, "heads": 4, "layers": 3, "global_attn_indexes": [0],
                      "downsample_channels": [16, 48]})",
                        .clip = R"({"width": 48, "heads": 2, "layers": 5})",
                        .projector = R"({"input_dim": 96, "n_embed": 7})"}
                       .files());
  EXPECT_EQ(c.sam.head_dim(), 24);
  EXPECT_EQ(c.sam.layers, 3);
  EXPECT_TRUE(c.sam.is_global_block(0));
  EXPECT_FALSE(c.sam.is_global_block(2));
  EXPECT_EQ(c.sam.downsample_channels, (std::array<std::int64_t, 2>{16, 48}));
  EXPECT_EQ(c.clip_head_dim(), 24);
  EXPECT_EQ(c.clip_layers, 5);
  EXPECT_EQ(c.n_embed, 7);
}

TEST(DeepseekOcrConfig, TheLanguageModelBoundsBudgets) {
  const auto limit = [](const std::string& more) {
    return parse_config(Text{.more = more}.files()).max_position_embeddings;
  };
  EXPECT_EQ(limit(R"(, "max_position_embeddings": 100)"), 100);
  EXPECT_EQ(limit(R"(, "language_config": {"max_position_embeddings": 200})"), 200);
  EXPECT_EQ(limit(R"(, "max_position_embeddings": 100, "language_config": {})"), 100);
  EXPECT_EQ(limit(R"(, "max_position_embeddings": 100,
                     "language_config": {"max_position_embeddings": 200})"),
            200);
}

TEST(DeepseekOcrConfig, RefusesWhatItCannotRun) {
  expect_refused(ErrorCode::kUnsupported, "config.json: tile_tag: only 2D is supported, got 1D",
                 {.more = R"(, "tile_tag": "1D")"});
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: projector_config.projector_type: only linear is supported, got mlp",
                 {.projector = R"({"projector_type": "mlp"})"});
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config.width.sam_vit_b: head size 12 (768 / 64)",
                 {.sam = R"({"heads": 64})"});
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: head size 4 (1024 / 256) is not a multiple of 8",
                 {.clip = R"({"heads": 256})"});
}

TEST(DeepseekOcrConfig, RefusesTowersThatDoNotFitTogether) {
  expect_refused(ErrorCode::kCorruptData, "config.json: 200 heads do not divide a width of 1024",
                 {.clip = R"({"heads": 200})"});
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: SAM features have 512 channels, CLIP takes 1024",
                 {.sam = R"({"downsample_channels": [512, 512]})"});
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: projector_config.input_dim: expected 2048, got 1024",
                 {.projector = R"({"input_dim": 1024})"});
  expect_refused(ErrorCode::kCorruptData,
                 "global_attn_indexes[1]: expected a block index below 12, got 12",
                 {.sam = R"({"global_attn_indexes": [0, 12]})"});
  expect_refused(ErrorCode::kCorruptData, "expected a block index below 12, got -1",
                 {.sam = R"({"global_attn_indexes": [-1]})"});
  expect_refused(ErrorCode::kCorruptData, "global_attn_indexes: expected at most 1 block indexes",
                 {.sam = R"({"layers": 1, "global_attn_indexes": [0, 0]})"});
  expect_refused(ErrorCode::kCorruptData, "downsample_channels: expected 2 numbers, got 1",
                 {.sam = R"({"downsample_channels": [1024]})"});
}

TEST(DeepseekOcrConfig, RefusesSizesThatWouldOverflowOrFillTheMemory) {
  const std::string number = "expected a number in [1, 1048576], got ";
  for (const char* key : {"width", "heads"}) {
    expect_refused(ErrorCode::kCorruptData,
                   cat("config.json: vision_config.width.sam_vit_b.", key, ": ", number, 0),
                   {.sam = cat("{\"", key, "\": 0}")});
    expect_refused(
        ErrorCode::kCorruptData,
        cat("config.json: vision_config.width.clip-l-14-224.", key, ": ", number, 1048577),
        {.clip = cat("{\"", key, "\": 1048577}")});
  }
  expect_refused(ErrorCode::kCorruptData,
                 "sam_vit_b.layers: expected a number in [1, 1024], got 1025",
                 {.sam = R"({"layers": 1025})"});
  expect_refused(ErrorCode::kCorruptData,
                 "clip-l-14-224.layers: expected a number in [1, 1024], got -5",
                 {.clip = R"({"layers": -5})"});
  expect_refused(ErrorCode::kCorruptData, "downsample_channels[0]: " + number + "-1",
                 {.sam = R"({"downsample_channels": [-1, 1024]})"});
  expect_refused(ErrorCode::kCorruptData, "downsample_channels[1]: " + number,
                 {.sam = R"({"downsample_channels": [1, 9223372036854775807]})"});
  expect_refused(ErrorCode::kCorruptData, "projector_config.n_embed: " + number + "0",
                 {.projector = R"({"n_embed": 0})"});
  expect_refused(ErrorCode::kCorruptData, "config.json: max_position_embeddings: " + number + "0",
                 {.more = R"(, "max_position_embeddings": 0)"});
}

TEST(DeepseekOcrConfig, RefusalsOfMissingAndMistypedKeysNameThem) {
  expect_refused(ErrorCode::kCorruptData, "vision_config.width.sam_vit_b", {.sam = "null"});
  expect_refused(ErrorCode::kCorruptData, "clip-l-14-224", {.clip = "3"});
  expect_refused(ErrorCode::kCorruptData, "projector_config", {.projector = "null"});
  expect_refused(ErrorCode::kCorruptData, "sam_vit_b.heads", {.sam = R"({"heads": "12"})"});
  expect_refused(ErrorCode::kCorruptData, "global_attn_indexes",
                 {.sam = R"({"global_attn_indexes": 3})"});
}

TEST(DeepseekOcrView, HasTheGridAndTokensOfItsSide) {
  struct Case {
    std::int64_t side, grid, tokens_side;
  };
  for (const Case& c :
       {Case{512, 32, 8}, Case{640, 40, 10}, Case{1024, 64, 16}, Case{1280, 80, 20}}) {
    const common::SquareView view = view_of(c.side);
    EXPECT_EQ(view.grid(), c.grid) << "of SAM";
    EXPECT_EQ(view.patches(), c.grid * c.grid);
    EXPECT_EQ(view.tokens_side(), c.tokens_side);
    EXPECT_EQ(view.tokens(), c.tokens_side * c.tokens_side);
    EXPECT_EQ(view.pixel_bytes(), static_cast<std::size_t>(c.side * c.side * 3));
  }
}

TEST(DeepseekOcrConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("deepseek_ocr", "config.json")) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.sam.width, 128);
    EXPECT_EQ(c.sam.layers, 3);
    EXPECT_EQ(c.sam.global_attn_indexes, std::vector<std::int64_t>{1});
    EXPECT_EQ(c.n_embed, 64);
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr
