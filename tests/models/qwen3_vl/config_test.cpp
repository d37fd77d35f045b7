// config.json and processor files of Qwen3-VL: both spellings, defaults, and every refusal.
#include "models/qwen3_vl/config.h"

#include <gtest/gtest.h>

#include "fovea/error.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

checkpoint::HfConfig files_of(const std::string& vision, const std::string& preprocessor = "",
                              const std::string& architecture = "Qwen3VLForConditionalGeneration") {
  checkpoint::HfConfig files{
      .directory = "model",
      .config = JsonDocument::parse(
          "{\"architectures\": [\"" + architecture + "\"], \"vision_config\": " + vision + "}",
          "config.json"),
      .preprocessor = std::nullopt,
      .video_preprocessor = std::nullopt,
      .processor = std::nullopt};
  if (!preprocessor.empty()) {
    files.preprocessor = JsonDocument::parse(preprocessor, "preprocessor_config.json");
  }
  return files;
}

std::string message_of(const std::string& vision, const std::string& preprocessor = "") {
  try {
    const checkpoint::HfConfig files = files_of(vision, preprocessor);
    const Config config = parse_config(files);
    (void)parse_preprocess_config(files, config, MediaOptions{});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse_config(files_of("{}"));
  EXPECT_EQ(c.depth, 27);
  EXPECT_EQ(c.hidden_size, 1152);
  EXPECT_EQ(c.head_dim(), 72);
  EXPECT_EQ(c.intermediate_size, 4304);
  EXPECT_EQ(c.position_side(), 48);
  EXPECT_EQ(c.deepstack_visual_indexes, (std::vector<std::int64_t>{8, 16, 24}));
  EXPECT_EQ(c.out_width(), 4 * 3584);
  EXPECT_EQ(c.patch_dim(), 1536);
}

TEST(Config, Qwen35HasNoDeepstackUnlessListed) {
  const auto parse = [](const char* vision) {
    return parse_config(files_of(vision, "", "Qwen3_5ForConditionalGeneration"));
  };
  EXPECT_EQ(parse("{}").num_deepstack(), 0);
  EXPECT_EQ(parse("{\"deepstack_visual_indexes\": [3]}").num_deepstack(), 1);
}

TEST(Config, AcceptsListsWhereSomeFilesHaveThem) {
  EXPECT_EQ(parse_config(files_of("{\"patch_size\": [14, 14], \"in_chans\": 3}")).patch_size, 14);
}

TEST(Config, ReadsRopeTheta) {
  EXPECT_EQ(parse_config(files_of("{\"rope_parameters\": {\"rope_theta\": 500.0}}")).rope_theta,
            500);
}

TEST(Config, ReadsTheActivationOfTheMlp) {
  const auto activation = [](const std::string& name) {
    return parse_config(files_of("{\"hidden_act\": \"" + name + "\"}")).hidden_act;
  };
  EXPECT_EQ(parse_config(files_of("{}")).hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(activation("gelu_pytorch_tanh"), ops::Activation::kGeluTanh);
  EXPECT_EQ(activation("gelu_new"), ops::Activation::kGeluTanh);
  EXPECT_EQ(activation("gelu"), ops::Activation::kGeluErf);
  EXPECT_EQ(activation("quick_gelu"), ops::Activation::kQuickGelu);
  EXPECT_EQ(activation("silu"), ops::Activation::kSilu);
  EXPECT_EQ(activation("swish"), ops::Activation::kSilu);
}

TEST(Config, RefusalsNameFileAndKey) {
  EXPECT_NE(message_of("{\"num_heads\": \"16\"}").find("vision_config.num_heads"),
            std::string::npos);
  EXPECT_NE(message_of("{\"depth\": 0}").find("vision_config.depth"), std::string::npos);
  EXPECT_NE(message_of("{\"in_channels\": 1}").find("RGB"), std::string::npos);
  EXPECT_NE(message_of("{\"num_heads\": 5}").find("num_heads 5 does not divide"),
            std::string::npos);
  EXPECT_EQ(message_of("{\"hidden_act\": \"relu\"}"),
            "config.json: vision_config.hidden_act: expected gelu_pytorch_tanh, gelu_new, gelu, "
            "quick_gelu, silu or swish, got relu");
  EXPECT_NE(message_of("{\"num_position_embeddings\": 10}").find("square"), std::string::npos);
  EXPECT_NE(message_of("{\"temporal_patch_size\": 3}").find("temporal_patch_size"),
            std::string::npos);
  EXPECT_NE(message_of("{\"deepstack_visual_indexes\": [27]}").find("below depth 27"),
            std::string::npos);
}

TEST(Config, RefusesSizesThatWouldOverflowOrFillTheMemory) {
  EXPECT_EQ(message_of("{\"patch_size\": []}"),
            "config.json: vision_config.patch_size: expected a number, got an empty list");
  EXPECT_EQ(message_of("{\"hidden_size\": 1048577}"),
            "config.json: vision_config.hidden_size: expected a positive number up to 1048576, got "
            "1048577");
  EXPECT_EQ(message_of("{\"depth\": 1025}"),
            "config.json: vision_config.depth: expected at most 1024 blocks, got 1025");
  EXPECT_EQ(message_of("{\"patch_size\": 4096}"),
            "config.json: vision_config: patch_size 4096 times spatial_merge_size 2 is above 4096");
}

TEST(PreprocessConfig, RefusesLimitsThatWouldOverflow) {
  EXPECT_EQ(message_of("{}", "{\"max_pixels\": 1099511627777}"),
            "preprocessor_config.json: expected 0 < min_pixels <= max_pixels <= 1099511627776, got "
            "65536 and 1099511627777");
}

TEST(PreprocessConfig, TakesEverySpellingOfTheLimits) {
  const auto limits = [](const char* preprocessor) {
    const checkpoint::HfConfig files = files_of("{}", preprocessor);
    return parse_preprocess_config(files, parse_config(files), MediaOptions{}).image;
  };
  EXPECT_EQ(limits("{\"size\": {\"shortest_edge\": 100, \"longest_edge\": 200}}").min_pixels, 100);
  EXPECT_EQ(limits("{\"size\": {\"min_pixels\": 7, \"max_pixels\": 9}}").max_pixels, 9);
  EXPECT_EQ(limits("{\"size\": {\"shortest_edge\": 1}, \"max_pixels\": 50}").max_pixels, 50);
  EXPECT_EQ(limits("{\"min_pixels\": null}").min_pixels, 65536);
}

TEST(PreprocessConfig, RefusalsNameFileAndKey) {
  EXPECT_NE(message_of("{}", "{\"patch_size\": 14}").find("preprocessor_config.json"),
            std::string::npos);
  EXPECT_NE(message_of("{}", "{\"merge_size\": 3}").find("contradicts config.json"),
            std::string::npos);
  EXPECT_NE(message_of("{}", "{\"image_mean\": [0.5]}").find("expected 3 numbers"),
            std::string::npos);
  EXPECT_NE(message_of("{}", "{\"do_resize\": false}").find("do_resize"), std::string::npos);
  EXPECT_NE(message_of("{}", "{\"resample\": 1}").find("resample"), std::string::npos);
  EXPECT_NE(
      message_of("{}", "{\"min_pixels\": 9, \"max_pixels\": 8}").find("min_pixels <= max_pixels"),
      std::string::npos);
}

TEST(PreprocessConfig, PillowBackendChangesTheEngine) {
  const checkpoint::HfConfig files = files_of("{}");
  const Config config = parse_config(files);
  EXPECT_EQ(parse_preprocess_config(files, config, {.image_backend = ImageBackend::kPillow}).engine,
            media::ResizeEngine::kPillow);
  EXPECT_EQ(parse_preprocess_config(files, config, MediaOptions{}).engine,
            media::ResizeEngine::kTorchvision);
}

TEST(Config, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "config.json")) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config c = parse_config(files);
    EXPECT_EQ(c.head_dim(), 72);
    EXPECT_EQ(c.num_deepstack(), 3);
    EXPECT_EQ(parse_preprocess_config(files, c, MediaOptions{}).image.min_pixels, 4096);
    EXPECT_EQ(parse_preprocess_config(files, c, MediaOptions{}).video.max_pixels, 786432);
  }
}

TEST(PreprocessConfig, RefusesFactorsThatAreNotAboveZero) {
  EXPECT_EQ(message_of("{}", "{\"rescale_factor\": 0}"),
            "preprocessor_config.json: rescale_factor: expected a number above 0, got 0");
  EXPECT_EQ(message_of("{}", "{\"rescale_factor\": -1}"),
            "preprocessor_config.json: rescale_factor: expected a number above 0, got -1");
  EXPECT_EQ(message_of("{}", "{\"image_std\": [0.5, 0, 0.5]}"),
            "preprocessor_config.json: image_std: expected 3 numbers above 0, got 0");
  EXPECT_EQ(message_of("{}", "{\"image_std\": [0.5, 0.5, 1e-40]}")
                .find("preprocessor_config.json: "
                      "image_std: expected 3 numbers above 0"),
            0u);
  EXPECT_EQ(
      message_of("{}", "{\"image_mean\": [0, 0, 1e300]}"),
      "preprocessor_config.json: image_mean[2]: expected a number that f32 holds, got 1e+300");
}

TEST(PreprocessConfig, RefusesSizesOfAnotherKind) {
  for (const char* size : {"\"zz\"", "0", "-1", "[1]"}) {
    const std::string message = message_of("{}", std::string("{\"size\": ") + size + "}");
    EXPECT_EQ(message.find("preprocessor_config.json: size: expected an object, got "), 0u)
        << message;
  }
  EXPECT_EQ(message_of("{}", "{\"size\": {\"height\": 224, \"width\": 224}}"),
            "preprocessor_config.json: size: expected shortest_edge and longest_edge");
}

TEST(PreprocessConfig, SaysWhatAProcessorFileLeavesOpen) {
  const auto assumed = [](const char* preprocessor) {
    return assumptions(files_of("{}", preprocessor), MediaOptions{});
  };
  EXPECT_EQ(assumed(R"({"size": {"shortest_edge": 1, "longest_edge": 2},
                        "image_mean": [0, 0, 0], "image_std": [1, 1, 1]})"),
            "");
  EXPECT_EQ(assumed(R"({"min_pixels": 1, "max_pixels": 2, "image_std": [1, 1, 1]})"),
            "missing=preprocessor_config.json keys=image_mean image_mean=0.5,0.5,0.5");
  EXPECT_EQ(assumed(R"({"size": null, "image_mean": [0, 0, 0]})"),
            "missing=preprocessor_config.json keys=size,image_std image_pixels=65536..16777216 "
            "image_std=0.5,0.5,0.5 video_pixels=4096..25165824");
  EXPECT_EQ(assumed("").find("missing=model/preprocessor_config.json image_pixels="), 0u);
}

}  // namespace
}  // namespace fovea::qwen3_vl
