// fovea encode on the golden checkpoint: rows, order, files, failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "checkpoint/safetensors.h"
#include "integration/run_program.h"
#include "support/golden.h"
#include "support/golden_pixel_values.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

using checkpoint::SafetensorsFile;
using nlohmann::json;
using ::testing::HasSubstr;

/// Floating-point rows of the reference and ours differ by the order of f32 additions, about 1e-6.
constexpr double kTolerance = 1e-4;

class EncodeProgram : public ::testing::Test {
 protected:
  [[nodiscard]] std::string image(const std::string& name) const {
    return model_ + "/images/" + name;
  }
  [[nodiscard]] std::string output() const { return folder_ / "rows.safetensors"; }

  [[nodiscard]] ProgramResult encode(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"encode", model_, "--output", output()});
    return run_fovea(arguments);
  }

  /// Rows of item i in the output.
  [[nodiscard]] std::vector<std::int64_t> shape_of(int i) const {
    const SafetensorsFile file(output());
    return file.find("item_" + std::to_string(i))->shape;
  }

  const std::string model_ = golden_folder("qwen3_vl", "model.safetensors");
  const std::string photo_ = image("photo_180x180.jpg");       // 36 rows
  const std::string gradient_ = image("gradient_64x200.png");  // 12 rows
  const std::string noise_ = image("noise_101x61.png");        // 6 rows
  const std::string frames_ = model_ + "/video_frames";        // 90 rows
  TemporaryDirectory folder_;
};

/// The numbers in the last column of the items' rows of a table.
std::vector<double> differences_in(const std::string& table) {
  static const std::regex last_cell(R"(\n *\d+  .* (\S+e[-+]\d+)(?=\n))");
  std::vector<double> values;
  for (std::sregex_iterator it(table.begin(), table.end(), last_cell), end; it != end; ++it) {
    values.push_back(std::stod((*it)[1]));
  }
  return values;
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

TEST_F(EncodeProgram, PixelValuesOfAnotherKindFailWithoutOutput) {
  expect_failure(encode({"--pixel-values", folder_ / "none.safetensors"}), 1, "none.safetensors");
  expect_failure(encode({"--pixel-values", model_ + "/model.safetensors"}), 1,
                 "model.safetensors: expected pixel_values with image_grid_thw");
  EXPECT_EQ(folder_.entries(), 0U);
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
  const json items = json::parse(metadata.at("fovea.items"));
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
    const json stats = json::parse(read_text(folder_ / "stats.json"));
    std::int64_t hits = 0;
    for (const json& replica : stats["replicas"]) {
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
  const json stats = json::parse(read_text(folder_ / "stats.json"));
  EXPECT_EQ(stats["graph_hits"], 2);
  EXPECT_EQ(stats["graph_misses"], 0);
  EXPECT_EQ(stats["hit_rate"], 1.0);
  EXPECT_EQ(stats["token_budgets"], json({16, 64}));
  EXPECT_GE(stats["num_budgets"], 1);
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
  const json stats = json::parse(read_text(folder_ / "stats.json"));
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

TEST_F(EncodeProgram, PlotIsAChartOfTheStages) {
  expect_success(encode({photo_, "--plot", folder_ / "time.svg"}));
  EXPECT_THAT(read_text(folder_ / "time.svg"), HasSubstr("photo_180x180.jpg"));
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

TEST_F(EncodeProgram, MissingImageFailsWithoutOutput) {
  expect_failure(encode({photo_, folder_ / "none.png", "--stats", folder_ / "stats.json"}), 1,
                 "none.png");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, BrokenImageFailsWithoutOutput) {
  write_text(folder_ / "broken.png", read_text(noise_).substr(0, 100));
  expect_failure(encode({folder_ / "broken.png"}), 1, "broken.png");
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(EncodeProgram, FailureLeavesTheOldOutput) {
  write_text(output(), "old");
  expect_failure(encode({folder_ / "none.png"}), 1, "none.png");
  EXPECT_EQ(read_text(output()), "old");
}

TEST_F(EncodeProgram, MissingVideoFails) {
  expect_failure(encode({"--video", folder_ / "none.mp4"}), 1, "none.mp4");
}

TEST_F(EncodeProgram, MissingModelFails) {
  expect_failure(run_fovea({"encode", folder_ / "model", noise_, "-o", output()}), 1,
                 folder_ / "model");
}

TEST_F(EncodeProgram, UnwritableOutputFails) {
  expect_failure(run_fovea({"encode", model_, noise_, "-o", "/nonexistent/rows.safetensors"}), 1,
                 "/nonexistent/rows.safetensors");
}

TEST_F(EncodeProgram, OneFileForTwoOutputsIsRefused) {
  expect_failure(encode({noise_, "--stats", output()}), 2, output());
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, AnOutputThatIsAnInputIsRefusedBeforeTheWork) {
  const std::string mine = folder_ / "mine.png";
  const std::string list = folder_ / "list";
  const std::string frames = folder_ / "frames";
  const std::string model = folder_ / "model";
  std::filesystem::copy(noise_, mine);
  write_text(list, mine + "\n");
  std::filesystem::create_directory(frames);
  std::filesystem::copy(noise_, frames + "/0.png");
  std::filesystem::create_directory(model);
  for (const char* name : {"/config.json", "/model.safetensors"}) write_text(model + name, "mine");
  using Arguments = std::vector<std::string>;
  for (const auto& [arguments, input] : std::vector<std::pair<Arguments, std::string>>{
           {{mine, "-o", mine}, mine},
           {{folder_.path(), "-o", output(), "--stats", mine}, mine},
           {{"@" + list, "-o", output(), "--plot", list}, list},
           {{"@" + list, "-o", mine}, mine},
           {{"--pixel-values", mine, "-o", mine}, mine},
           {{"--video", frames, "-o", frames + "/0.png"}, frames + "/0.png"},
           {{noise_, "-o", model + "/model.safetensors"}, model + "/model.safetensors"}}) {
    Arguments all{"encode", model};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string before = read_text(input);
    expect_failure(run_fovea(all), 2, "got the input " + input);
    EXPECT_EQ(read_text(input), before);
  }
}

TEST_F(EncodeProgram, WarnsOfRowsThatAreNotFinite) {
  const std::string model = folder_ / "model";
  std::filesystem::copy(model_, model);
  std::string weights = read_text(model + "/model.safetensors");
  std::fill(weights.end() - 4096, weights.end(), '\xff');  // bf16 NaN
  write_text(model + "/model.safetensors", weights);
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    const ProgramResult result =
        run_fovea({"encode", model, noise_, "-o", output(), "--dtype", dtype});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err,
              "fovea: warning: item_0: rows of " + noise_ + " hold values that are not finite\n");
  }
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

TEST_F(EncodeProgram, AFileAboveTheLimitOfTheProcessIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);  // the program inherits it
  const ProgramResult result = encode({noise_});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  expect_failure(result, 1, "cannot write: File too large");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, MissingGoldenFileFailsBeforeTheModelIsLoaded) {
  expect_failure(
      run_fovea({"encode", folder_ / "model", noise_, "-o", output(), "--golden", folder_.path()}),
      1, "golden.safetensors");
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, SkippedItemsAreReportedAndTheRestIsWritten) {
  write_text(folder_ / "broken.png", "no image");
  const ProgramResult result =
      encode({folder_ / "broken.png", noise_, "--video", folder_ / "none.mp4", photo_, "--on-error",
              "skip", "--stats", folder_ / "stats.json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              ::testing::MatchesRegex("fovea: warning: item_0 skipped: .*broken.png.*\n"
                                      "fovea: warning: item_2 skipped: .*none.mp4.*\n"));
  const SafetensorsFile file(output());
  EXPECT_EQ(file.find("item_0"), nullptr);
  EXPECT_EQ(file.find("item_2"), nullptr);
  EXPECT_EQ(file.find("item_1")->shape.front(), 6);
  EXPECT_EQ(file.find("item_3")->shape.front(), 36);
  const json items = json::parse(file.header().metadata.at("fovea.items"));
  ASSERT_EQ(items.size(), 4U);
  EXPECT_TRUE(items[0].contains("error"));
  EXPECT_EQ(json::parse(read_text(folder_ / "stats.json"))["failed_items"], 2);
}

TEST_F(EncodeProgram, SkippingEverythingFailsWithoutOutput) {
  const ProgramResult result = encode({folder_ / "a.png", folder_ / "b.png", "--on-error", "skip"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ::testing::MatchesRegex("fovea: warning: item_0 skipped: .*a.png.*\n"
                                                  "fovea: warning: item_1 skipped: .*b.png.*\n"
                                                  "fovea: error: none of 2 items could be encoded; "
                                                  "the first: .*a.png.*\n"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 3) << result.err;
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(EncodeProgram, PixelLimitIsChecked) {
  expect_failure(encode({photo_, "--max-image-pixels", "1000"}), 1, "photo_180x180.jpg");
}

TEST_F(EncodeProgram, UnknownConfigurationKeysAreWarnedAbout) {
  const ProgramResult result = encode({noise_, "--compilation-config", R"({"level": 3})"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "fovea: warning: --compilation-config: key \"level\" is ignored\n");
}

}  // namespace
}  // namespace fovea::test
