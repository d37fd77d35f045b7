#include "vllm/translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

/// What stands behind the model after translation.
Words translated(Words flags, Words verb = {"encode"}) {
  verb.emplace_back("m");
  const std::size_t before = verb.size();
  verb.insert(verb.end(), flags.begin(), flags.end());
  const Words all = translate_vllm(verb).arguments;
  return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
}

Words graphs(const std::string& json, Words others = {}) {
  others.insert(others.end(), {"--compilation-config", json});
  return translated(others);
}

TEST(Translation, LeavesOwnFlagsAlone) {
  const Words line{"encode", "m", "a.png", "--token-budgets", "64", "--", "--max-model-len", "3"};
  const Translation translation = translate_vllm(line);
  EXPECT_EQ(translation.arguments, line);
  EXPECT_THAT(translation.warnings, IsEmpty());
  EXPECT_EQ(translation.in_typed_words("--token-budgets: no"), "--token-budgets: no");
}

TEST(Translation, TensorParallelTowersAreReplicas) {
  EXPECT_EQ(translated({"--tensor-parallel-size", "4", "--mm-encoder-tp-mode=data"}),
            (Words{"--data-parallel-size", "4"}));
  EXPECT_THAT(translated({"--tensor-parallel-size", "1"}), IsEmpty());
  EXPECT_THAT(translated({"--mm-encoder-tp-mode", "weights"}), IsEmpty());
}

TEST(Translation, ATowerIsNotDivided) {
  expect_usage_error(
      "--tensor-parallel-size 2: the tower is not divided; --mm-encoder-tp-mode data", [] {
        (void)translated({"--tensor-parallel-size", "2"});
      });
  expect_usage_error("--mm-encoder-tp-mode: expected weights, data, got \"rows\"", [] {
    (void)translated({"--mm-encoder-tp-mode", "rows"});
  });
}

TEST(Translation, TheNumberOfReplicasIsGivenOnce) {
  expect_usage_error("--tensor-parallel-size and --data-parallel-size both give the number", [] {
    (void)translated({"--tensor-parallel-size", "2", "--mm-encoder-tp-mode", "data",
                      "--data-parallel-size", "2"});
  });
}

TEST(Translation, VideosThatNoPromptMayHaveNeedNoGraphs) {
  for (const Words& verb : {Words{"serve"}, Words{"bench", "mm-processor"}}) {
    const auto limits = [&](const std::string& json) {
      return translated({"--limit-mm-per-prompt", json}, verb);
    };
    EXPECT_EQ(limits(R"({"image": 3, "video": {"count": 0, "num_frames": 32}})"),
              (Words{"--max-images-per-prompt", "3", "--max-videos-per-prompt", "0",
                     "--max-frames-per-batch", "0"}));
    EXPECT_EQ(limits(R"({"image": 0, "video": 1, "audio": 4})"),
              (Words{"--max-images-per-prompt", "0", "--max-videos-per-prompt", "1"}));
  }
}

TEST(Translation, OwnFlagsWinOverLimitsOfPrompts) {
  EXPECT_EQ(translated({"--max-images-per-prompt", "3", "--limit-mm-per-prompt",
                        R"({"image": 1, "video": 2})"},
                       {"serve"}),
            (Words{"--max-images-per-prompt", "3", "--max-videos-per-prompt", "2"}));
}

TEST(Translation, CommandsWithoutPromptsRefuseLimitsThatChangeNothing) {
  for (const char* idle : {R"({"image": 4})", R"({"image": 0, "video": 0})", R"({"video": 1})"}) {
    expect_usage_error(std::string("--limit-mm-per-prompt: this command has no prompts; expected "
                                   "{\"video\": 0}, which leaves videos out of the graphs, got ") +
                           idle,
                       [idle] {
                         (void)translated({"--limit-mm-per-prompt", idle});
                       });
  }
  EXPECT_EQ(translated({"--limit-mm-per-prompt", R"({"video": 0, "audio": 1})"}),
            (Words{"--max-frames-per-batch", "0"}));
}

TEST(Translation, RefusesLimitsThatAreNone) {
  expect_usage_error("--limit-mm-per-prompt: expected a JSON object, got image=1", [] {
    (void)translated({"--limit-mm-per-prompt", "image=1"});
  });
  expect_usage_error("--limit-mm-per-prompt: video: expected a whole number >= 0, got -1", [] {
    (void)translated({"--limit-mm-per-prompt", R"({"video": -1})"});
  });
}

TEST(Translation, ThePromptBoundsInferredBudgets) {
  EXPECT_EQ(translated({"--max-model-len", "4096"}), (Words{"--max-num-batched-tokens", "4096"}));
  EXPECT_THAT(translated({"--max-model-len", "32768"}), IsEmpty());
  EXPECT_EQ(translated({"--max-model-len", "32768", "--max-num-batched-tokens", "65536"}),
            (Words{"--max-num-batched-tokens", "32768"}));
  EXPECT_EQ(translated({"--max-model-len", "32768", "--max-num-batched-tokens", "100"}),
            (Words{"--max-num-batched-tokens", "100"}));
}

TEST(Translation, AttentionHasNamesOfBoth) {
  for (const auto& [name, value] :
       {std::pair("FLASH_ATTN", "auto"), std::pair("FLASHINFER", "cudnn-or-auto"),
        std::pair("TORCH_SDPA", "auto"), std::pair("TRITON_ATTN", "portable"),
        std::pair("hopper", "hopper"), std::pair("unknown", "unknown")}) {
    EXPECT_EQ(translated({"--mm-encoder-attn-backend", name}),
              (Words{"--mm-encoder-attn-backend", value}));
  }
  EXPECT_THAT(translate_vllm({"verify", "m", "--mm-encoder-attn-backend", "FLASH_ATTN"}).warnings,
              ElementsAre("--mm-encoder-attn-backend FLASH_ATTN stands for auto here"));
}

TEST(Translation, GraphsHaveTheFieldsOfTheReference) {
  EXPECT_EQ(graphs(R"({"cudagraph_mm_encoder": false,
                       "encoder_cudagraph_token_budgets": [64, 256],
                       "encoder_cudagraph_max_vision_items_per_batch": 8,
                       "encoder_cudagraph_max_frames_per_batch": 0})"),
            (Words{"--enforce-eager", "--token-budgets", "[64,256]", "--max-items-per-batch", "8",
                   "--max-frames-per-batch", "0"}));
  EXPECT_EQ(graphs(R"({"encoder_cudagraph_token_budgets": {"global": [272, 544], "local": [9]}})"),
            (Words{"--token-budgets", R"({"global":[272,544],"local":[9]})"}));
  EXPECT_EQ(graphs(R"({"encoder_cudagraph_max_images_per_batch": 3})"),
            (Words{"--max-items-per-batch", "3"}));
  EXPECT_THAT(graphs(R"({"cudagraph_mm_encoder": true,
                         "encoder_cudagraph_max_frames_per_batch": null})"),
              IsEmpty());
}

TEST(Translation, OwnFlagsWinOverTheCompilationConfig) {
  const Words own{"--enforce-eager",
                  "--token-budgets",
                  "128",
                  "--max-items-per-batch",
                  "0",
                  "--max-frames-per-batch",
                  "4"};
  EXPECT_EQ(graphs(R"({"cudagraph_mm_encoder": false,
                       "encoder_cudagraph_token_budgets": [64],
                       "encoder_cudagraph_max_vision_items_per_batch": 8,
                       "encoder_cudagraph_max_frames_per_batch": 16})",
                   own),
            own);
}

TEST(Translation, WarnsAboutKeysThatSayNothingAboutGraphs) {
  EXPECT_THAT(translate_vllm({"encode", "m", "--compilation-config", R"({"level": 3})"}).warnings,
              ElementsAre("--compilation-config: key \"level\" is ignored"));
}

TEST(Translation, RefusesConfigurationsOfWrongTypes) {
  for (const char* json : {"", "{", "[1]", "3", R"({"cudagraph_mm_encoder": 1})",
                           R"({"encoder_cudagraph_token_budgets": 64})"}) {
    expect_usage_error("--compilation-config: ", [&] { (void)graphs(json); });
  }
}

TEST(Translation, ComplaintsQuoteTheEndsOfALongText) {
  const std::string name(100'000, 'x');
  for (const std::string& json :
       {"[\"" + name + "\"]", "{\"cudagraph_mm_encoder\": \"" + name + "\"}"}) {
    try {
      (void)graphs(json);
      ADD_FAILURE() << "expected a complaint";
    } catch (const UsageError& error) {
      EXPECT_LT(std::string_view(error.what()).size(), 200u);
    }
  }
}

TEST(Translation, ComplaintsNameWhatWasTyped) {
  const Translation translation =
      translate_vllm({"encode", "m", "--max-model-len", "9", "--compilation-config",
                      R"({"encoder_cudagraph_token_budgets": [0]})"});
  EXPECT_EQ(translation.in_typed_words("--token-budgets: expected 1, got 0"),
            "--compilation-config: encoder_cudagraph_token_budgets: expected 1, got 0");
  EXPECT_EQ(translation.in_typed_words("unknown flag --max-num-batched-tokens"),
            "unknown flag --max-model-len");
  EXPECT_EQ(translation.in_typed_words("--token-budgets-of-others: no"),
            "--token-budgets-of-others: no");
}

TEST(Translation, AnExampleConnectorReadsAFolder) {
  const std::string config =
      R"({"ec_role": "ec_consumer", "ec_connector_extra_config": {"shared_storage_path": "/rows"}})";
  EXPECT_EQ(translated({"--ec-transfer-config", config}, {"serve"}), (Words{"--ec-dir", "/rows"}));
  EXPECT_EQ(translated({"--ec-transfer-config", config, "--ec-dir", "/rows"}, {"serve"}),
            (Words{"--ec-dir", "/rows"}));
  EXPECT_EQ(translated({"--ec-transfer-config", config}),
            (Words{"--ec-transfer-config", config}));  // only a server writes rows for others
}

TEST(Translation, RefusesTransfersThatAreNone) {
  const auto refuses = [](const std::string& json, const std::string& complaint) {
    expect_usage_error(complaint, [&] {
      (void)translated({"--ec-dir", "/other", "--ec-transfer-config", json}, {"serve"});
    });
  };
  refuses("[]", "--ec-transfer-config: expected a JSON object, got []");
  refuses(R"({"ec_connector": "NixlConnector"})", "only ECExampleConnector reads files");
  refuses(R"({"ec_connector": 3})", "--ec-transfer-config: ");
  refuses("{}", "expected ec_connector_extra_config with shared_storage_path");
  refuses(R"({"ec_connector_extra_config": {"shared_storage_path": "/rows"}})",
          "--ec-dir and --ec-transfer-config name different folders");
}

TEST(Translation, FlagsAboutTextHaveNoEffectOnTheBenchmark) {
  const Words flags{"--random-input-len", "1024", "--output-len=3", "--disable-tqdm"};
  EXPECT_EQ(translated(flags, {"bench", "mm-processor"}), Words{"--quiet"});
  Words line{"bench", "mm-processor", "m"};
  line.insert(line.end(), flags.begin(), flags.end());
  EXPECT_THAT(translate_vllm(line).warnings,
              ElementsAre("--random-input-len has no effect on this workload",
                          "--output-len has no effect on this workload"));
  EXPECT_EQ(translated(flags), flags);
}

}  // namespace
}  // namespace fovea::cli
