// The families that there are, and finding one by its architecture.
#include "models/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/file.h"
#include "models/config_files.h"
#include "models/golden_model.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

TEST(Registry, EveryArchitectureFindsItsFamily) {
  for (const ModelFamily* family : model_families()) {
    EXPECT_FALSE(family->architectures.empty()) << family->name;
    for (const std::string_view name : family->architectures) {
      EXPECT_TRUE(&find_family(name) == family || !family->tower.empty()) << name;
    }
  }
}

/// Families whose golden checkpoints are not in the repository, for its size: FOVEA_GOLDEN_DIR may
/// name a folder that has them. tools/compare_retrieval_with_transformers.py makes those of
/// encoders for retrieval.
constexpr auto kInFullSetAlone =
    std::to_array<std::string_view>({"paligemma",       "deepseek_vl",   "cohere_vision",
                                     "paddleocr_vl",    "lfm2_vl",       "idefics3",
                                     "hunyuan_vl",      "deepseek_ocr2", "deepseek_vl2",
                                     "gemma4",          "minicpmv4_6",   "minimax_m3_vl",
                                     "nemotron_h_omni", "molmo2",        "phi4_multimodal",
                                     "llava",           "kimi_k25",      "step3p7",
                                     "ernie4_5_vl",     "clip",          "siglip",
                                     "siglip2",         "dino"});

TEST(Registry, EveryFamilyHasAGoldenModel) {
  std::set<std::string_view> covered;
  for (const std::string& folder : test::supported_golden_models()) {
    covered.insert(family_of(checkpoint::read_hf_config(folder)).name);
  }
  for (const ModelFamily* family : model_families()) {
    const bool elsewhere =
        std::ranges::find(kInFullSetAlone, family->name) != kInFullSetAlone.end();
    EXPECT_TRUE(covered.contains(family->name) || elsewhere) << family->name;
  }
}

TEST(Registry, UnknownArchitecturesAreRefusedWithTheFamilies) {
  for (const ModelFamily* family : model_families()) {
    test::expect_error(ErrorCode::kUnsupported, std::string(family->name),
                       [] { (void)find_family("NoSuchModel"); });
  }
}

/// The architecture that a config.json of these keys has.
std::string_view architecture_of(const std::string& keys) {
  return known_architecture(test::config_files({.config = "{" + keys + "}"}));
}

TEST(Registry, TheFirstKnownOfAllArchitecturesCounts) {
  constexpr std::string_view kWanted = "Qwen2VLForConditionalGeneration";
  EXPECT_EQ(architecture_of(R"("architectures": ["Qwen2VLForConditionalGeneration"])"), kWanted);
  EXPECT_EQ(architecture_of(R"("architectures": ["MyReranker", "Qwen2VLForConditionalGeneration",
                                "Glm4vForConditionalGeneration"], "model_type": "qwen3_vl")"),
            kWanted);
}

TEST(Registry, OneArchitectureMayHaveTwoTowers) {
  const auto name_of = [](const std::string& vision) {
    return family_of(test::config_files(
                         {.config = R"({"architectures": ["LlavaForConditionalGeneration"])" +
                                    vision + "}"}))
        .name;
  };
  EXPECT_EQ(name_of(R"(, "vision_config": {"model_type": "pixtral"})"), "mistral3");
  EXPECT_EQ(name_of(R"(, "vision_config": {"model_type": "clip_vision_model"})"), "llava");
  EXPECT_EQ(name_of(R"(, "vision_config": {})"), "llava");
  EXPECT_EQ(name_of(""), "llava");
}

TEST(Registry, AModelTypeMeansTheArchitectureThatIsSpelledAlike) {
  for (const char* names :
       {R"("architectures": null)", R"("architectures": [])", R"("architectures": ["Unknown"])"}) {
    const auto of_type = [&](const std::string& type) {
      return architecture_of(std::string(names) + ", \"model_type\": \"" + type + "\"");
    };
    EXPECT_EQ(of_type("qwen2_5_vl"), "Qwen2_5_VLForConditionalGeneration");
    EXPECT_EQ(of_type("qwen3_vl_moe"), "Qwen3VLMoeForConditionalGeneration");
    EXPECT_EQ(of_type("glm4v_moe"), "Glm4vMoeForConditionalGeneration");
    EXPECT_EQ(of_type("internvl_chat"), "InternVLChatModel");
    EXPECT_EQ(of_type("internvl"), "InternVLForConditionalGeneration");
  }
  test::expect_error(ErrorCode::kUnsupported, "architecture \"qwen2\" is not supported",
                     [] { (void)architecture_of(R"("model_type": "qwen2")"); });
}

TEST(Registry, ARetrieverHasTheTowerOfTheModelThatItWraps) {
  const auto of_wrapped = [](const std::string& type) {
    return architecture_of(R"("architectures": ["ColQwen2ForRetrieval"], "model_type": "colqwen2",
                              "vlm_config": {"model_type": ")" +
                           type + "\"}");
  };
  EXPECT_EQ(of_wrapped("qwen2_vl"), "Qwen2VLForConditionalGeneration");
  EXPECT_EQ(of_wrapped("qwen2_5_vl"), "Qwen2_5_VLForConditionalGeneration");
  test::expect_error(ErrorCode::kUnsupported,
                     "architecture \"ColQwen2ForRetrieval\" is not supported",
                     [&] { (void)of_wrapped("blip"); });
}

TEST(Registry, AConfigurationWithoutNamesIsRefused) {
  test::expect_error(ErrorCode::kCorruptData,
                     "config.json: expected architectures or a model_type, which say what the "
                     "model is, got neither",
                     [] { (void)architecture_of(R"("architectures": [])"); });
}

TEST(Registry, ARefusalNamesTheNearestFamilyAndThePageForATowerOfOnesOwn) {
  const auto expect_nearest = [](const std::string& name, const std::string& said) {
    test::expect_error(
        ErrorCode::kUnsupported,
        "architecture \"" + name + "\" is not supported; " + said +
            "docs/own_tower.md says how to run a tower of your own; supported families, "
            "whose names docs/models.md lists, are qwen2_vl, ",
        [&] { (void)architecture_of("\"architectures\": [\"" + name + "\"]"); });
  };
  expect_nearest("Qwen2VLAudioModel", "the nearest family is qwen2_vl; ");
  expect_nearest("NVLM_D", "the nearest family is internvl; ");
  expect_nearest("NoSuchModel", "");
  EXPECT_EQ(nearest_family("glm9_vl"), "glm4v") << "a model_type is spelled in lower case";
}

TEST(Registry, TheNearestFamilyOfAKnownArchitectureIsAFamily) {
  std::set<std::string_view> names;
  for (const ModelFamily* family : model_families()) names.insert(family->name);
  for (const char* unknown :
       {"Qwen2_5X", "ColQwen2X", "InternS1_1X", "MiniMaxM3X", "NVLM_D", "Cohere3X", "Gemma4X",
        "KimiX", "Llama4X", "DeepseekX", "UnlimitedOCRX", "StepX", "MolmoX", "HunYuanVLX",
        "ColIdefics3X", "VipLlavaX", "MiniCPMV"}) {
    EXPECT_TRUE(names.contains(nearest_family(unknown))) << unknown;
  }
}

/// The rows of docs/models/vllm_names.md: "| `Name` | [Page](page.md) |" or
/// "| `Name` | refused, nearest family: why |".
TEST(Registry, TheNamesOfVllmAreTakenOrRefusedAsTheirPageSays) {
  const std::vector<std::uint8_t> page =
      read_file(FOVEA_TEST_SOURCE_DIR "/docs/models/vllm_names.md", 1 << 20);
  const std::string text(page.begin(), page.end());
  const std::regex row("\\n\\| `(\\w+)` \\| (refused(, nearest (\\w+))?: )?");
  int taken = 0;
  int refused = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    const std::string name = (*it)[1];
    SCOPED_TRACE(name);
    const std::string files = name == "ColPaliForRetrieval"
                                  ? R"("vlm_config": {"model_type": "paligemma"}, )"
                                  : std::string();
    const std::string config = "{" + files + "\"architectures\": [\"" + name + "\"]}";
    if (!(*it)[2].matched) {
      EXPECT_NO_THROW((void)known_architecture(test::config_files({.config = config})));
      ++taken;
      continue;
    }
    test::expect_error(ErrorCode::kUnsupported, "is not supported",
                       [&] { (void)known_architecture(test::config_files({.config = config})); });
    EXPECT_EQ(nearest_family(name), (*it)[4].str());
    ++refused;
  }
  EXPECT_GE(taken, 67);
  EXPECT_EQ(taken + refused, 126);
}

}  // namespace
}  // namespace fovea
