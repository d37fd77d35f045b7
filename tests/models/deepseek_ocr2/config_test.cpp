// config.json of DeepSeek-OCR 2 in both formats: what is read, what is refused.
#include "models/deepseek_ocr2/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr2 {
namespace {

/// The vendor's file with this text for SAM, the decoder, the projector, and further keys.
struct Vendor {
  std::string sam = "{}";
  std::string decoder = "{}";
  std::string projector = "{}";
  std::string more = "";

  [[nodiscard]] checkpoint::HfConfig files() const {
    return test::config_files({.config = "{\"vision_config\": {\"width\": {\"sam_vit_b\": " + sam +
                                         ", \"qwen2-0-5b\": " + decoder +
                                         "}}, \"projector_config\": " + projector + more + "}"});
  }
};

/// The file of transformers with this text for SAM, the decoder and the language model.
struct Converted {
  std::string sam = "{}";
  std::string encoder = R"({"hidden_size": 896, "num_attention_heads": 14})";
  std::string text = R"({"hidden_size": 1280})";

  [[nodiscard]] checkpoint::HfConfig files() const {
    return test::config_files({.config = "{\"vision_config\": {\"sam_config\": " + sam +
                                         ", \"encoder_config\": " + encoder +
                                         "}, \"text_config\": " + text + "}"});
  }
};

template <class Text>
void expect_refused(ErrorCode code, const std::string& message, const Text& text) {
  test::expect_error(code, message, [&] { (void)parse_config(text.files()); });
}

TEST(DeepseekOcr2Config, TheVendorsFileIsThatOfTheReleasedCheckpoint) {
  const Config c = parse_config(
      Vendor{.sam = R"({"width": 768, "layers": 12, "heads": 12, "downsample_channels": [512, 1024],
                        "global_attn_indexes": [2, 5, 8, 11]})",
             .decoder = R"({"dim": 896})",
             .projector = R"({"input_dim": 896, "n_embed": 1280, "projector_type": "linear"})",
             .more = R"(, "tile_tag": "2D", "language_config": {"max_position_embeddings": 8192})"}
          .files());
  EXPECT_EQ(c.format, Format::kVendor);
  EXPECT_EQ(c.sam.downsample_channels, (std::array<std::int64_t, 2>{512, 896}))
      << "the second one is that of the decoder, whatever the file says";
  EXPECT_EQ(c.sam.mlp_width, 3072);
  EXPECT_EQ(c.sam.grid, 64);
  EXPECT_EQ(c.decoder.num_hidden_layers, 24);
  EXPECT_EQ(c.decoder.head_dim(), 64);
  EXPECT_EQ(c.decoder.num_key_value_heads, 2);
  EXPECT_EQ(c.decoder.intermediate_size, 4864);
  EXPECT_EQ(c.decoder.rope_theta, 1e6);
  EXPECT_EQ(c.n_embed, 1280);
  EXPECT_EQ(c.max_position_embeddings, 8192);
}

TEST(DeepseekOcr2Config, AConvertedFileNamesAllSizes) {
  const Config c = parse_config(
      Converted{.sam = R"({"hidden_size": 96, "num_attention_heads": 2, "num_hidden_layers": 3,
                     "mlp_ratio": 1.5, "output_channels": 32, "image_size": 896, "window_size": 7,
                     "downsample_channels": [64, 128], "global_attn_indexes": [1]})",
                .encoder = R"({"hidden_size": 128, "intermediate_size": 144, "num_hidden_layers": 3,
                         "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
                         "rope_parameters": {"rope_theta": 500, "rope_type": "default"},
                         "layer_types": ["full_attention"], "sliding_window": null})",
                .text = R"({"hidden_size": 64, "max_position_embeddings": 512})"}
          .files());
  EXPECT_EQ(c.format, Format::kTransformers);
  EXPECT_EQ(c.sam.head_dim(), 48);
  EXPECT_EQ(c.sam.mlp_width, 144);
  EXPECT_EQ(c.sam.neck_channels, 32);
  EXPECT_EQ(c.sam.grid, 56);
  EXPECT_EQ(c.sam.window, 7);
  EXPECT_TRUE(c.sam.is_global_block(1));
  EXPECT_EQ(c.decoder.num_key_value_heads, 1);
  EXPECT_EQ(c.decoder.rms_norm_eps, 1e-5);
  EXPECT_EQ(c.decoder.rope_theta, 500);
  EXPECT_EQ(c.n_embed, 64);
  EXPECT_EQ(c.max_position_embeddings, 512);
}

TEST(DeepseekOcr2Config, AConvertedFileLeavesTheRestToItsClass) {
  const Config c = parse_config(Converted{}.files());
  EXPECT_EQ(c.sam.width, 768);
  EXPECT_EQ(c.sam.mlp_width, 3072);
  EXPECT_EQ(c.sam.grid, 64);
  EXPECT_EQ(c.sam.feature_width(), 896);
  EXPECT_EQ(c.decoder.num_hidden_layers, 32);
  EXPECT_EQ(c.decoder.num_key_value_heads, 14) << "as many as of queries";
  EXPECT_EQ(c.decoder.rope_theta, 1e4);
  EXPECT_EQ(c.max_position_embeddings, 2048);
}

TEST(DeepseekOcr2Config, RefusesWhatTheVendorsTowersDoNotHave) {
  expect_refused(ErrorCode::kUnsupported, "tile_tag: only 2D is supported, got 1D",
                 Vendor{.more = R"(, "tile_tag": "1D")"});
  expect_refused(ErrorCode::kUnsupported, "projector_type: only linear is supported",
                 Vendor{.projector = R"({"projector_type": "mlp"})"});
  expect_refused(ErrorCode::kUnsupported, "input_dim: only 896 is supported",
                 Vendor{.projector = R"({"input_dim": 2048})"});
  expect_refused(ErrorCode::kCorruptData, "14 heads do not divide a width of 900",
                 Vendor{.decoder = R"({"dim": 900})"});
  expect_refused(ErrorCode::kUnsupported, "head size 12 (768 / 64)",
                 Vendor{.sam = R"({"heads": 64})"});
  expect_refused(ErrorCode::kCorruptData, "expected a number in [1, 1048576], got 0",
                 Vendor{.decoder = R"({"dim": 0})"});
}

TEST(DeepseekOcr2Config, RefusesWhatConvertedTowersDoNotHave) {
  const auto sam = [](ErrorCode code, const std::string& message, const std::string& keys) {
    expect_refused(code, message, Converted{.sam = keys});
  };
  sam(ErrorCode::kUnsupported, "patch_size: only 16 is supported", R"({"patch_size": 14})");
  sam(ErrorCode::kUnsupported, "use_rel_pos: only true is supported", R"({"use_rel_pos": false})");
  sam(ErrorCode::kUnsupported, "num_channels: only 3 is supported", R"({"num_channels": 1})");
  sam(ErrorCode::kCorruptData, "image_size: expected at least 16", R"({"image_size": 15})");
  sam(ErrorCode::kCorruptData, "mlp_ratio: expected at most 64", R"({"mlp_ratio": 65})");
  sam(ErrorCode::kCorruptData, "SAM features have 64 channels, the decoder takes 896",
      R"({"downsample_channels": [64, 64]})");
  const auto encoder = [](ErrorCode code, const std::string& message, const std::string& keys) {
    expect_refused(
        code, message,
        Converted{.encoder = R"({"hidden_size": 896, "num_attention_heads": 14, )" + keys + "}"});
  };
  encoder(ErrorCode::kUnsupported, "use_sliding_window: only false is supported",
          R"("use_sliding_window": true)");
  encoder(ErrorCode::kUnsupported, "only full_attention is supported, got sliding_attention",
          R"("layer_types": ["full_attention", "sliding_attention"])");
  encoder(ErrorCode::kUnsupported, "rope_type: only default is supported, got yarn",
          R"("rope_parameters": {"rope_type": "yarn"})");
  encoder(ErrorCode::kUnsupported, "head_dim: only 64 is supported", R"("head_dim": 128)");
  encoder(ErrorCode::kCorruptData, "4 heads of keys do not divide 14 heads of queries",
          R"("num_key_value_heads": 4)");
}

TEST(DeepseekOcr2Config, RefusalsOfMissingAndMistypedKeysNameThem) {
  expect_refused(ErrorCode::kCorruptData, "qwen2-0-5b", Vendor{.decoder = "3"});
  expect_refused(ErrorCode::kCorruptData, "projector_config", Vendor{.projector = "null"});
  expect_refused(ErrorCode::kCorruptData, "sam_config", Converted{.sam = "null"});
  expect_refused(ErrorCode::kCorruptData, "hidden_size", Converted{.text = "{}"});
  expect_refused(ErrorCode::kCorruptData, "window_size",
                 Converted{.sam = R"({"window_size": "a"})"});
}

TEST(DeepseekOcr2Config, ReadsTheGoldenCheckpoint) {
  const auto folders = test::golden_folders("deepseek_ocr2", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder deepseek_ocr2; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.format, Format::kTransformers);
    EXPECT_EQ(c.sam.feature_width(), c.decoder.hidden_size);
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr2
