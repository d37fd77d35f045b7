// fovea encode on the golden checkpoint: rows, order, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include "checkpoint/safetensors.h"
#include "integration/encode_program.h"
#include "support/golden_pixel_values.h"
#include "support/json.h"

namespace fovea::test {
namespace {

using checkpoint::SafetensorsFile;
using ::testing::HasSubstr;

/// Floating-point rows of the reference and ours differ by the order of f32 additions, about 1e-6.
constexpr double kTolerance = 1e-4;

/// The numbers in the last column of the items' rows of a table.
std::vector<double> differences_in(const std::string& table) {
  static const std::regex last_cell(R"(\n *\d+  .* (\S+e[-+]\d+)(?=\n))");
  std::vector<double> values;
  for (std::sregex_iterator it(table.begin(), table.end(), last_cell), end; it != end; ++it) {
    values.push_back(std::stod((*it)[1]));
  }
  return values;
}

TEST_F(EncodeProgram, DecodesJpegAtAFractionOfItsSizeOnRequest) {
  const auto rows = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {photo_, noise_, "--min-pixels=1024", "--max-pixels=1024"});
    expect_success(encode(arguments));
    EXPECT_EQ(shape_of(0)[0], 1);
    const SafetensorsFile file(output());
    std::vector<std::string> found;
    for (const char* name : {"item_0", "item_1"}) {
      const ConstTensorView view = file.tensor(name);
      found.emplace_back(reinterpret_cast<const char*>(view.data), view.bytes());
    }
    return found;
  };
  const std::vector<std::string> full = rows({});
  const std::vector<std::string> scaled = rows({"--jpeg-scaling"});
  EXPECT_NE(scaled[0], full[0]);
  EXPECT_EQ(scaled[1], full[1]) << "PNG is decoded in full";
}

TEST_F(EncodeProgram, WritesVectorsOfEncodersForRetrieval) {
  const TemporaryDirectory model;
  std::ofstream(model / "config.json") << R"({"architectures": ["DINOv3ViTModel"],
      "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 16,
      "intermediate_size": 48})";
  const auto run = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"encode", model.path(), "--output", output(), "--load-format",
                                 "dummy", photo_, noise_, "--quiet"});
    return run_fovea(flags);
  };
  expect_success(run({}));
  EXPECT_EQ(shape_of(1), (std::vector<std::int64_t>{197, 32}));
  expect_success(run({"--vectors"}));
  EXPECT_EQ(shape_of(1), (std::vector<std::int64_t>{1, 32}));
  expect_failure(run({"--normalize-vectors"}), 1, "normalize_vectors: expected vectors, too");
  expect_failure(encode({noise_, "--vectors"}), 1, "vectors: family qwen3_vl makes rows for a");
}

TEST_F(EncodeProgram, KeepsNothingOnTheCpu) {
  expect_success(encode({noise_, "--device", "cpu", "--cache-dir", folder_ / "cache", "--quiet"}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(EncodeProgram, EqualsTheReferenceOnAllImagesAndTheVideo) {
  for (const char* mode : {"--packing=greedy", "--enforce-eager"}) {
    const ProgramResult result =
        encode({model_ + "/images", "--video", frames_, "--golden", model_, mode});
    expect_success(result);
    const std::vector<double> differences = differences_in(result.out);
    ASSERT_EQ(differences.size(), 5U) << result.out;
    for (const double difference : differences) EXPECT_LE(difference, kTolerance);
  }
}

TEST_F(EncodeProgram, EncodesEqualItemsOnceWithACache) {
  const ProgramResult result = encode({photo_, noise_, photo_, "--video", frames_, "--video",
                                       frames_, "--encoder-cache-size", "64Mi"});
  expect_success(result);
  EXPECT_THAT(result.out,
              HasSubstr("cache   2 of 5 items not encoded again (40.0 %), 3 items kept"));
  EXPECT_EQ(shape_of(2), shape_of(0));
  EXPECT_EQ(shape_of(4), shape_of(3));
}

TEST_F(EncodeProgram, CountsWhatLiesOnTheDeviceAndOnTheHost) {
  const ProgramResult result = encode({photo_, noise_, photo_, "--encoder-cache-size", "64Mi",
                                       "--encoder-device-cache-size", "40K"});
  expect_success(result);
  EXPECT_THAT(
      result.out,
      HasSubstr("cache   1 of 3 items not encoded again (33.3 %), 2 items kept in 42.0 KiB"));
  EXPECT_THAT(result.out, HasSubstr("        device: 0 hits, 1 item in 36.0 KiB of 39.1 KiB\n"));
  EXPECT_THAT(result.out, HasSubstr("        host: 0 hits, 1 item in 6.0 KiB of 64.0 MiB\n"));
  EXPECT_EQ(shape_of(2), shape_of(0));
}

TEST_F(EncodeProgram, TakesBytesOfADeviceWithAUnit) {
  expect_failure(encode({photo_, "--encoder-device-cache-size", "100"}), 2,
                 "expected bytes, with K, M, G, Ki, Mi or Gi behind the number, got \"100\"");
}

TEST_F(EncodeProgram, NumbersItemsInCommandLineOrder) {
  expect_success(encode({photo_, "--video", frames_, noise_, "--video", frames_, gradient_}));
  const std::vector<std::int64_t> rows{36, 90, 6, 90, 12};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(shape_of(i), (std::vector<std::int64_t>{rows[static_cast<std::size_t>(i)], 256}));
  }
}

/// Writes the processor's output for golden items to a file.
std::string write_pixel_values(const std::string& path, const std::string& model,
                               const std::vector<std::string>& names, DType dtype) {
  GoldenPixelValues all;
  std::vector<std::int64_t> grids;
  for (const std::string& name : names) {
    const GoldenPixelValues item = golden_pixel_values(model, name);
    all.values.insert(all.values.end(), item.values.begin(), item.values.end());
    all.patches += item.patches;
    all.patch_dim = item.patch_dim;
    all.modality = item.modality;
    grids.insert(grids.end(), item.grid.begin(), item.grid.end());
  }
  const bool video = all.modality == Modality::kVideo;
  const std::vector<std::uint8_t> bytes = stored_as(dtype, all.values);
  const checkpoint::OutputTensor tensors[] = {
      {video ? "pixel_values_videos" : "pixel_values",
       {reinterpret_cast<const std::byte*>(bytes.data()), dtype, {all.patches, all.patch_dim}}},
      {video ? "video_grid_thw" : "image_grid_thw",
       {reinterpret_cast<const std::byte*>(grids.data()), DType::kI64, {std::ssize(names), 3}}}};
  checkpoint::write_safetensors(path, tensors, {});
  return path;
}

TEST_F(EncodeProgram, PixelValuesStandWhereTheirImagesWould) {
  const std::string images = write_pixel_values(folder_ / "images.safetensors", model_,
                                                {"gradient_64x200", "photo_180x180"}, DType::kF32);
  const std::string video =
      write_pixel_values(folder_ / "video.safetensors", model_, {"video"}, DType::kBF16);
  expect_success(encode({noise_, gradient_, photo_, "--video", frames_, noise_}));
  std::vector<std::string> expected;
  const auto bytes_of = [&](int i) {
    const SafetensorsFile file(output());
    const ConstTensorView rows = file.tensor("item_" + std::to_string(i));
    return std::string(reinterpret_cast<const char*>(rows.data), rows.bytes());
  };
  for (int i = 0; i < 5; ++i) expected.push_back(bytes_of(i));
  const ProgramResult result =
      encode({noise_, "--pixel-values", images, "--pixel-values", video, noise_});
  expect_success(result);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(bytes_of(i), expected[static_cast<std::size_t>(i)]) << i;
  }
  EXPECT_THAT(result.out, HasSubstr("images.safetensors[1]"));
}

TEST_F(EncodeProgram, PixelValuesAreComparedWithTheReference) {
  const ProgramResult result = encode({"--pixel-values",
                                       write_pixel_values(folder_ / "gradient_64x200.safetensors",
                                                          model_, {"gradient_64x200"}, DType::kF16),
                                       "--golden", model_});
  expect_success(result);
  const std::vector<double> differences = differences_in(result.out);
  ASSERT_EQ(differences.size(), 1U) << result.out;
  EXPECT_LE(differences[0], kTolerance);
}

TEST_F(EncodeProgram, WritesGridsAndMetadata) {
  expect_success(encode({gradient_, "--video", frames_}));
  const SafetensorsFile file(output());
  EXPECT_EQ(file.header().tensors.size(), 4U);
  const ConstTensorView grid = file.tensor("item_1.grid_thw");
  ASSERT_EQ(grid.dtype, DType::kI64);
  std::array<std::int64_t, 3> values{};
  std::memcpy(values.data(), grid.data, sizeof(values));
  EXPECT_EQ(values, (std::array<std::int64_t, 3>{3, 10, 12}));
  const auto& metadata = file.header().metadata;
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(metadata.at("fovea.model"), std::filesystem::path(model_).filename().string());
  EXPECT_TRUE(metadata.contains("fovea.version"));
  const Json items = Json::parse(metadata.at("fovea.items"));
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0]["modality"], "image");
  EXPECT_EQ(items[1]["modality"], "video");
}

TEST_F(EncodeProgram, SmallerTypesAreTheRoundedFloats) {
  expect_success(encode({noise_}));
  const SafetensorsFile exact(output());
  const ConstTensorView rows = exact.tensor("item_0");
  std::vector<float> expected(static_cast<std::size_t>(rows.shape.elements()));
  widen_to_f32(rows.dtype, rows.data, expected.data(), expected.size());
  const struct {
    const char* name;
    DType dtype;
    float step;  // half a unit in the last place, relative
  } kTypes[] = {{"bfloat16", DType::kBF16, 1.0F / 256}, {"float16", DType::kF16, 1.0F / 2048}};
  for (const auto& type : kTypes) {
    expect_success(encode({noise_, "--dtype", type.name}));
    const SafetensorsFile file(output());
    const ConstTensorView narrow = file.tensor("item_0");
    ASSERT_EQ(narrow.dtype, type.dtype);
    std::vector<float> values(expected.size());
    widen_to_f32(narrow.dtype, narrow.data, values.data(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], expected[i], std::abs(expected[i]) * type.step + 1e-7F);
    }
  }
}

TEST_F(EncodeProgram, ReplayWritesTheSameBytesAsEager) {
  expect_success(encode({photo_, gradient_}));
  const std::string replayed = read_text(output());
  expect_success(encode({photo_, gradient_, "--enforce-eager"}));
  EXPECT_EQ(read_text(output()), replayed);
}

TEST_F(EncodeProgram, ReplicasWriteTheSameBytesAsOne) {
  const std::vector<std::string> inputs{photo_, "--video", frames_, gradient_, noise_};
  expect_success(encode(inputs));
  const std::string alone = read_text(output());
  const std::vector<std::string> ways[] = {{"--device=cpu", "--data-parallel-size=3"},
                                           {"--device=cpu, cpu"}};
  for (const std::vector<std::string>& flags : ways) {
    std::vector<std::string> arguments = inputs;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), {"--stats", folder_ / "stats.json"});
    const ProgramResult result = encode(arguments);
    expect_success(result);
    EXPECT_EQ(read_text(output()), alone);
    EXPECT_NE(result.out.find("\n        cpu: "), std::string::npos) << result.out;
    const Json stats = Json::parse(read_text(folder_ / "stats.json"));
    std::int64_t hits = 0;
    for (const Json& replica : stats["replicas"]) {
      EXPECT_EQ(replica["device"], "cpu");
      hits += replica["graph_hits"].get<std::int64_t>();
    }
    EXPECT_EQ(stats["graph_hits"], hits);
    EXPECT_EQ(hits, 4);
  }
}

TEST_F(EncodeProgram, StatsCountReplays) {
  expect_success(encode({photo_, gradient_, "--stats", folder_ / "stats.json", "--token-budgets",
                         "16,64", "--max-items-per-batch", "4"}));
  const Json stats = Json::parse(read_text(folder_ / "stats.json"));
  EXPECT_EQ(stats["graph_hits"], 2);
  EXPECT_EQ(stats["graph_misses"], 0);
  EXPECT_EQ(stats["hit_rate"], 1.0);
  EXPECT_EQ(stats["token_budgets"], Json({16, 64}));
  EXPECT_EQ(stats["media_profile"], "vllm");
  EXPECT_GE(stats["num_budgets"].get<int>(), 1);
  EXPECT_EQ(stats["items"], 2);
  EXPECT_EQ(stats["rows"], 48);
  ASSERT_EQ(stats["paths"].size(), 1U);
  EXPECT_EQ(stats["paths"][0]["name"], "default");
  EXPECT_EQ(stats["paths"][0]["live_rows"], 48);
  EXPECT_EQ(stats["paths"][0]["padded_rows"], 16);  // 48 of 64
  EXPECT_EQ(stats["paths"][0]["replays"], 1);
}

TEST_F(EncodeProgram, StatsCountWhatFitsNoGraph) {
  expect_success(
      encode({photo_, gradient_, "--stats", folder_ / "stats.json", "--compilation-config",
              R"({"encoder_cudagraph_token_budgets": [16],
                             "encoder_cudagraph_max_images_per_batch": 1})"}));
  const Json stats = Json::parse(read_text(folder_ / "stats.json"));
  EXPECT_EQ(stats["graph_hits"], 1);
  EXPECT_EQ(stats["graph_misses"], 1);
  EXPECT_EQ(stats["hit_rate"], 0.5);
  EXPECT_FALSE(stats["miss_reasons"].empty());
}

TEST_F(EncodeProgram, UnderscoresInFlagNamesAreDashes) {
  expect_success(encode({noise_, "--token_budgets=64", "--max_items_per_batch", "2"}));
}

TEST_F(EncodeProgram, ModelMayBeAFlag) {
  expect_success(run_fovea({"encode", "--model", model_, noise_, "-o", output()}));
  EXPECT_EQ(shape_of(0).front(), 6);
}

TEST_F(EncodeProgram, InputsNamedLikeVerbsAreFiles) {
  std::filesystem::copy(noise_, folder_ / "plan");
  expect_success(run_fovea({"encode", model_, "plan", "-o", "rows.safetensors"}, folder_.path()));
  EXPECT_EQ(shape_of(0).front(), 6);
}

TEST_F(EncodeProgram, StatsHaveTheStagesOfItems) {
  expect_success(encode({photo_, "--stats", folder_ / "stats.json"}));
  const Json items = Json::parse(read_text(folder_ / "stats.json"))["slowest_items"];
  ASSERT_EQ(items.size(), 1U);
  EXPECT_THAT(items[0]["name"].get<std::string>(), HasSubstr("photo_180x180.jpg"));
  EXPECT_GT(items[0]["encode_ms"].get<double>(), 0);
}

TEST_F(EncodeProgram, SaysWhatDrawsChartsNow) {
  expect_failure(encode({photo_, "--plot", folder_ / "time.svg"}), 2,
                 "unknown flag --plot; tools/chart.py draws what --output-json writes");
}

TEST_F(EncodeProgram, TableShowsEveryStage) {
  const ProgramResult result = encode({noise_});
  EXPECT_THAT(result.out,
              HasSubstr("read ms  decode ms  resize ms  pack ms  encode ms  output ms"));
}

TEST_F(EncodeProgram, TableCanBeTurnedOff) {
  const ProgramResult result = encode({noise_, "--no-table"});
  expect_success(result);
  EXPECT_EQ(result.out, "");
}

TEST_F(EncodeProgram, OutputsBehindLinksAreReplacedThere) {
  write_text(folder_ / "rows", "old");
  std::filesystem::create_symlink("rows", output());
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  expect_success(encode({noise_}));
  EXPECT_TRUE(std::filesystem::is_symlink(output()));
  EXPECT_EQ(shape_of(0).front(), 6);
  expect_failure(encode({noise_, "--stats", folder_ / "null"}), 1, "null: not a regular file");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "null"));
}

}  // namespace
}  // namespace fovea::test
