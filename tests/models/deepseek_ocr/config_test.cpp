// config.json and processor_config.json of DeepSeek-OCR: the published values, and every refusal.
#include "models/deepseek_ocr/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
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
  std::string processor = "";

  [[nodiscard]] checkpoint::HfConfig files() const {
    checkpoint::HfConfig files{
        .directory = "model",
        .config = JsonDocument::parse(
            "{\"architectures\": [\"DeepseekOCRForCausalLM\"], \"vision_config\": {\"width\": "
            "{\"sam_vit_b\": " +
                sam + ", \"clip-l-14-224\": " + clip + "}}, \"projector_config\": " + projector +
                more + "}",
            "config.json"),
        .preprocessor = std::nullopt,
        .video_preprocessor = std::nullopt,
        .processor = std::nullopt};
    if (!processor.empty()) {
      files.processor = JsonDocument::parse(processor, "processor_config.json");
    }
    return files;
  }
};

void expect_refused(ErrorCode code, const std::string& message, const Text& text) {
  test::expect_error(code, message, [&] {
    const checkpoint::HfConfig files = text.files();
    (void)parse_config(files);
    (void)parse_preprocess_config(files, MediaOptions{});
  });
}

TEST(Config, DefaultsAreThoseOfTheReleasedCheckpoint) {
  const Config c = parse_config(Text{}.files());
  EXPECT_EQ(c.sam_width, 768);
  EXPECT_EQ(c.sam_head_dim(), 64);
  EXPECT_EQ(c.sam_layers, 12);
  EXPECT_EQ(c.feature_width(), 1024);
  EXPECT_EQ(c.clip_width, 1024);
  EXPECT_EQ(c.clip_head_dim(), 64);
  EXPECT_EQ(c.clip_layers, 24);
  EXPECT_EQ(c.projector_input_dim, 2048);
  EXPECT_EQ(c.n_embed, 1280);
  EXPECT_EQ(c.max_position_embeddings, 8192);
  for (std::int64_t layer = 0; layer < 12; ++layer) {
    EXPECT_EQ(c.is_global_block(layer), layer % 3 == 2) << layer;
  }
}

TEST(Config, ReadsEverySize) {
  const Config c =
      parse_config(Text{.sam = R"({"width": 96, "heads": 4, "layers": 3, "global_attn_indexes": [0],
                      "downsample_channels": [16, 48]})",
                        .clip = R"({"width": 48, "heads": 2, "layers": 5})",
                        .projector = R"({"input_dim": 96, "n_embed": 7})"}
                       .files());
  EXPECT_EQ(c.sam_head_dim(), 24);
  EXPECT_EQ(c.sam_layers, 3);
  EXPECT_TRUE(c.is_global_block(0));
  EXPECT_FALSE(c.is_global_block(2));
  EXPECT_EQ(c.downsample_channels, (std::array<std::int64_t, 2>{16, 48}));
  EXPECT_EQ(c.clip_head_dim(), 24);
  EXPECT_EQ(c.clip_layers, 5);
  EXPECT_EQ(c.n_embed, 7);
}

TEST(Config, TheLanguageModelBoundsBudgets) {
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

TEST(Config, RefusesWhatItCannotRun) {
  expect_refused(ErrorCode::kUnsupported, "config.json: tile_tag: only 2D is supported, got 1D",
                 {.more = R"(, "tile_tag": "1D")"});
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: projector_config.projector_type: only linear is supported, got mlp",
                 {.projector = R"({"projector_type": "mlp"})"});
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: head sizes must be multiples of 8, got 768 / 16 and 1024 / 200",
                 {.sam = R"({"heads": 16})", .clip = R"({"heads": 200})"});
  expect_refused(ErrorCode::kUnsupported, "got 768 / 64 and 1024 / 16",
                 {.sam = R"({"heads": 64})"});
}

TEST(Config, RefusesTowersThatDoNotFitTogether) {
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

TEST(Config, RefusesSizesThatWouldOverflowOrFillTheMemory) {
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

TEST(Config, RefusalsOfMissingAndMistypedKeysNameThem) {
  expect_refused(ErrorCode::kCorruptData, "vision_config.width.sam_vit_b", {.sam = "null"});
  expect_refused(ErrorCode::kCorruptData, "clip-l-14-224", {.clip = "3"});
  expect_refused(ErrorCode::kCorruptData, "projector_config", {.projector = "null"});
  expect_refused(ErrorCode::kCorruptData, "sam_vit_b.heads", {.sam = R"({"heads": "12"})"});
  expect_refused(ErrorCode::kCorruptData, "global_attn_indexes",
                 {.sam = R"({"global_attn_indexes": 3})"});
}

TEST(PreprocessConfig, DefaultsAreTheModeOfTheVendor) {
  const PreprocessConfig p = parse_preprocess_config(Text{}.files(), MediaOptions{});
  EXPECT_EQ(p.base.side_px, 1024);
  EXPECT_EQ(p.tile.side_px, 640);
  EXPECT_EQ(p.min_crops, 2);
  EXPECT_EQ(p.max_crops, 6);
  EXPECT_EQ(p.image_mean, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kPillow);
}

TEST(PreprocessConfig, GeometryFollowsFromTheSide) {
  // Specification, section 5: side, SAM grid, tokens a side.
  struct Case {
    std::int64_t side, grid, tokens_side;
  };
  for (const Case& c :
       {Case{512, 32, 8}, Case{640, 40, 10}, Case{1024, 64, 16}, Case{1280, 80, 20}}) {
    const ViewGeometry view{c.side};
    EXPECT_EQ(view.grid(), c.grid);
    EXPECT_EQ(view.tokens_side(), c.tokens_side);
    EXPECT_EQ(view.tokens(), c.tokens_side * c.tokens_side);
    EXPECT_EQ(view.pixel_bytes(), static_cast<std::size_t>(c.side * c.side * 3));
  }
}

TEST(PreprocessConfig, ReadsTheProcessorFile) {
  const PreprocessConfig p = parse_preprocess_config(
      Text{.processor = R"({"image_mean": [0, 0.25, 1], "image_std": [1, 2, 3]})"}.files(),
      {.image_backend = ImageBackend::kTorchvision});
  EXPECT_EQ(p.image_mean, (std::array<float, 3>{0, 0.25f, 1}));
  EXPECT_EQ(p.image_std, (std::array<float, 3>{1, 2, 3}));
  EXPECT_EQ(p.engine, media::ResizeEngine::kTorchvision);
}

TEST(PreprocessConfig, RefusesListsOfAnotherLength) {
  expect_refused(ErrorCode::kCorruptData,
                 "processor_config.json: image_mean: expected 3 numbers, got 1",
                 {.processor = R"({"image_mean": [0.5]})"});
  expect_refused(ErrorCode::kCorruptData, "image_std: expected 3 numbers, got 4",
                 {.processor = R"({"image_std": [1, 1, 1, 1]})"});
}

TEST(PreprocessConfig, RefusesDeviationsThatAreNotAboveZero) {
  expect_refused(ErrorCode::kCorruptData,
                 "processor_config.json: image_std: expected 3 numbers above 0, got 0",
                 {.processor = R"({"image_std": [0, 1, 1]})"});
}

TEST(PreprocessConfig, SaysWhatAProcessorFileLeavesOpen) {
  const std::string text =
      assumptions(Text{.processor = R"({"image_mean": [0, 0, 0]})"}.files(), {});
  EXPECT_NE(text.find("processor_config.json keys=image_std image_std=0.5,0.5,0.5"),
            std::string::npos)
      << text;
}

TEST(Config, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("deepseek_ocr", "config.json")) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config c = parse_config(files);
    EXPECT_EQ(c.sam_width, 128);
    EXPECT_EQ(c.sam_layers, 3);
    EXPECT_EQ(c.global_attn_indexes, std::vector<std::int64_t>{1});
    EXPECT_EQ(c.n_embed, 64);
    EXPECT_EQ(parse_preprocess_config(files, {}).image_std[2], 0.5f);
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr
