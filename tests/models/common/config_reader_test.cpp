// Sizes of config files: bounds, lists, and what refusals say.
#include "models/common/config_reader.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

using Sizes = std::vector<std::int64_t>;

JsonDocument parse(const std::string& text) { return JsonDocument::parse(text, "config.json"); }

std::int64_t depth_of(const std::string& text, std::int64_t most = kMaxSize) {
  const JsonDocument document = parse(text);
  return read_size(document.root(), "depth", 12, most);
}

TEST(VisionConfig, IsAtTheTopOrInThePartThatSees) {
  const auto depth = [](const std::string& text) {
    const JsonDocument document = parse(text);
    return vision_config(document.root()).at("depth").as_int();
  };
  EXPECT_EQ(depth(R"({"vision_config": {"depth": 3}})"), 3);
  EXPECT_EQ(depth(R"({"thinker_config": {"vision_config": {"depth": 4}}})"), 4);
  EXPECT_EQ(depth(R"({"vlm_config": {"vision_config": {"depth": 5}}})"), 5);
  test::expect_error(ErrorCode::kCorruptData, "config.json: thinker_config.vision_config",
                     [&] { (void)depth(R"({"thinker_config": {}, "vision_config": {}})"); });
}

TEST(ReadSize, TakesNumbersAndListsOfEqualOnes) {
  EXPECT_EQ(depth_of(R"({"depth": 1})"), 1);
  EXPECT_EQ(depth_of(R"({"depth": 1048576})"), kMaxSize);
  EXPECT_EQ(depth_of(R"({"depth": [14]})"), 14);
  EXPECT_EQ(depth_of(R"({"depth": [14, 14]})"), 14);
}

TEST(ReadSize, FallsBackWhereTheKeyIsAbsent) { EXPECT_EQ(depth_of("{}"), 12); }

TEST(ReadDepthAndHeads, SecondNamesCountWhereBothAreThere) {
  struct Tower {
    std::int64_t depth = 27;
    std::int64_t num_heads = 16;
  };
  const auto expect = [](const std::string& text, std::int64_t depth, std::int64_t num_heads) {
    const JsonDocument document = parse(text);
    Tower tower;
    read_depth_and_heads(document.root(), tower);
    EXPECT_EQ(tower.depth, depth) << text;
    EXPECT_EQ(tower.num_heads, num_heads) << text;
  };
  expect("{}", 27, 16);
  expect(R"({"depth": 3, "num_heads": 4})", 3, 4);
  expect(R"({"num_hidden_layers": 5, "num_attention_heads": 8})", 5, 8);
  expect(R"({"num_hidden_layers": 5, "num_attention_heads": 8, "depth": 3, "num_heads": 4})", 5, 8);
  test::expect_error(ErrorCode::kCorruptData, "config.json: num_hidden_layers: ", [&] {
    expect(R"({"depth": 3, "num_hidden_layers": 0})", 0, 0);
  });
}

TEST(ReadSize, RefusalsNameTheKeyAndTheBounds) {
  const auto expect_refused = [](const std::string& value, const std::string& message) {
    test::expect_error(ErrorCode::kCorruptData, "config.json: depth: " + message,
                       [&] { (void)depth_of("{\"depth\": " + value + "}", 8); });
  };
  expect_refused("0", "expected a number in [1, 8], got 0");
  expect_refused("-3", "expected a number in [1, 8], got -3");
  expect_refused("9", "expected a number in [1, 8], got 9");
  expect_refused("[]", "expected a number, got a list of 0");
  expect_refused("[8, 8, 8]", "expected a number, got a list of 3");
  test::expect_error(ErrorCode::kCorruptData, "config.json: depth",
                     [] { (void)depth_of(R"({"depth": "8"})"); });
  test::expect_error(ErrorCode::kCorruptData, "depth[0]: expected a number in [1, 8], got 9",
                     [] { (void)depth_of(R"({"depth": [9]})", 8); });
}

TEST(ReadSize, RefusesTwoNumbersThatDiffer) {
  test::expect_error(ErrorCode::kUnsupported,
                     "config.json: depth: only equal numbers are supported, got 14 and 15",
                     [] { (void)depth_of(R"({"depth": [14, 15]})"); });
}

Sizes indexes_of(const std::string& list, std::int64_t depth) {
  const JsonDocument document = parse("{\"indexes\": " + list + "}");
  return read_block_indexes(document.root().at("indexes"), depth);
}

TEST(ReadBlockIndexes, TakesAscendingLists) {
  EXPECT_EQ(indexes_of("[0, 2]", 3), (Sizes{0, 2}));
  EXPECT_EQ(indexes_of("[0, 1, 2]", 3), (Sizes{0, 1, 2}));
  EXPECT_EQ(indexes_of("[]", 3), Sizes{});
}

TEST(ReadBlockIndexes, RefusesBlocksThatTheTowerLacks) {
  const auto expect_refused = [](const std::string& list, const std::string& message) {
    test::expect_error(ErrorCode::kCorruptData, "config.json: indexes" + message,
                       [&] { (void)indexes_of(list, 3); });
  };
  expect_refused("[0, 3]", "[1]: expected a block index below 3, got 3");
  expect_refused("[-1]", "[0]: expected a block index below 3, got -1");
  expect_refused("[0, 1, 2, 0]", ": expected at most 3 block indexes, got 4");
  expect_refused("3", "");
}

TEST(ReadBlockIndexes, RefusesABlockThatOccursTwice) {
  test::expect_error(ErrorCode::kCorruptData,
                     "config.json: indexes[2]: expected ascending block indexes, got 1 after 1",
                     [] { (void)indexes_of("[0, 1, 1]", 4); });
  test::expect_error(ErrorCode::kCorruptData,
                     "config.json: indexes[2]: expected ascending block indexes, got 0 after 2",
                     [] { (void)indexes_of("[0, 2, 0]", 4); });
}

TEST(ElementsOf, RefusesAnotherNumber) {
  const JsonDocument document = parse(R"({"sides": [1, 2, 3]})");
  const JsonView sides = document.root().at("sides");
  EXPECT_EQ(elements_of(sides, 3).size(), 3u);
  test::expect_error(ErrorCode::kCorruptData, "config.json: sides: expected 2 numbers, got 3",
                     [&] { (void)elements_of(sides, 2); });
}

TEST(CheckHeads, RequiresWholeVectorsOfEight) {
  const JsonDocument document = parse("{}");
  EXPECT_NO_THROW(check_heads(document.root(), 1152, 16));
  test::expect_error(ErrorCode::kCorruptData, "config.json: 5 heads do not divide a width of 1152",
                     [&] { check_heads(document.root(), 1152, 5); });
  test::expect_error(ErrorCode::kUnsupported,
                     "config.json: head size 12 (96 / 8) is not a multiple of 8",
                     [&] { check_heads(document.root(), 96, 8); });
}

TEST(Require, TakesTheOneValueOrNone) {
  const JsonDocument document = parse(R"({"ratio": 0.5, "kind": "linear", "bias": false})");
  const JsonView root = document.root();
  for (const char* key : {"ratio", "absent"}) EXPECT_NO_THROW(require_number(root, key, 0.5));
  for (const char* key : {"kind", "absent"}) EXPECT_NO_THROW(require_text(root, key, "linear"));
  for (const char* key : {"bias", "absent"}) EXPECT_NO_THROW(require_flag(root, key, false));
}

TEST(Require, RefusalsNameTheKeyAndBothValues) {
  const JsonDocument document = parse(R"({"a": {"ratio": 1, "kind": "mlp", "bias": true}})");
  const JsonView a = document.root().at("a");
  test::expect_error(ErrorCode::kUnsupported, "config.json: a.ratio: only 0.5 is supported, got 1",
                     [&] { require_number(a, "ratio", 0.5); });
  test::expect_error(ErrorCode::kUnsupported, "a.kind: only linear is supported, got mlp",
                     [&] { require_text(a, "kind", "linear"); });
  test::expect_error(ErrorCode::kUnsupported, "a.bias: only false is supported, got true",
                     [&] { require_flag(a, "bias", false); });
  test::expect_error(ErrorCode::kCorruptData, "a.kind", [&] { require_number(a, "kind", 1); });
}

struct Sizes4 {
  std::int64_t hidden_size = 64, num_hidden_layers = 2, num_attention_heads = 4,
               intermediate_size = 96;
};

TEST(ReadTransformer, FillsTheFieldsOfTheirKeys) {
  const JsonDocument document = parse(R"({"hidden_size": 128, "num_hidden_layers": 7,
      "num_attention_heads": 8})");
  Sizes4 c;
  read_transformer(document.root(), c);
  EXPECT_EQ(c.hidden_size, 128);
  EXPECT_EQ(c.num_hidden_layers, 7);
  EXPECT_EQ(c.num_attention_heads, 8);
  EXPECT_EQ(c.intermediate_size, 96);
  test::expect_error(ErrorCode::kCorruptData, "5 heads do not divide a width of 64", [&] {
    Sizes4 odd{.num_attention_heads = 5};
    read_transformer(parse("{}").root(), odd);
  });
}

TEST(ReadSquareView, HoldsWholeTokens) {
  const auto read = [](const std::string& text) {
    const JsonDocument document = parse(text);
    return read_square_view(document.root(), {.side_px = 448, .patch_px = 14, .merge = 2});
  };
  EXPECT_EQ(read("{}").tokens(), 256);
  EXPECT_EQ(read(R"({"image_size": [336, 336], "patch_size": 28})").tokens(), 36);
  test::expect_error(ErrorCode::kUnsupported, "image_size: 350 is not a multiple of 28",
                     [&] { (void)read(R"({"image_size": 350})"); });
  test::expect_error(ErrorCode::kCorruptData, "image_size: expected a number in [1, 4096]",
                     [&] { (void)read(R"({"image_size": 8192})"); });
  test::expect_error(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1",
                     [&] { (void)read(R"({"num_channels": 1})"); });
}

TEST(ReadSquareView, LeavesOutPixelsBeyondTheLastPatchWhereATokenIsOne) {
  const auto read = [](const std::string& text) {
    const JsonDocument document = parse(text);
    return read_square_view(document.root(), {.side_px = 384, .patch_px = 14});
  };
  EXPECT_EQ(read("{}").patches(), 729);
  test::expect_error(ErrorCode::kCorruptData, "image_size: 384 pixels hold no patch of 385",
                     [&] { (void)read(R"({"patch_size": 385})"); });
}

double theta_of(const std::string& text) {
  const JsonDocument document = parse(text);
  return read_rope_theta(document.root(), 10000);
}

TEST(ReadRopeTheta, IsAmongTheParametersOrBesideThem) {
  EXPECT_EQ(theta_of("{}"), 10000);
  EXPECT_EQ(theta_of(R"({"rope_theta": 500})"), 500);
  EXPECT_EQ(theta_of(R"({"rope_theta": 500, "rope_parameters": null})"), 500);
  EXPECT_EQ(theta_of(R"({"rope_theta": 500, "rope_parameters": {"rope_type": "axial"}})"), 500);
  EXPECT_EQ(theta_of(R"({"rope_theta": 500, "rope_parameters": {"rope_theta": 300}})"), 300);
  EXPECT_EQ(theta_of(R"({"rope_scaling": {"type": "default", "rope_theta": 77}})"), 77);
}

TEST(ReadRopeTheta, RefusesOtherFormsOfPositions) {
  const auto expect_refused = [](const std::string& rope, const std::string& message) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)theta_of(rope); });
  };
  expect_refused(R"({"rope_parameters": {"rope_type": "linear", "factor": 2}})",
                 "config.json: rope_parameters.rope_type: axial and default are supported, got "
                 "linear");
  expect_refused(R"({"rope_scaling": {"type": "yarn"}})", "axial and default are supported");
  test::expect_error(ErrorCode::kCorruptData, "rope_theta",
                     [] { (void)theta_of(R"({"rope_theta": 0})"); });
}

using ops::Activation;

TEST(ParseActivation, KnowsEveryNameOfTheTable) {
  const auto parse = [](const char* name) { return parse_activation(name, "key"); };
  EXPECT_EQ(parse("gelu_pytorch_tanh"), Activation::kGeluTanh);
  EXPECT_EQ(parse("gelu_new"), Activation::kGeluTanh);
  EXPECT_EQ(parse("gelu"), Activation::kGeluErf);
  EXPECT_EQ(parse("quick_gelu"), Activation::kQuickGelu);
  EXPECT_EQ(parse("silu"), Activation::kSilu);
  EXPECT_EQ(parse("swish"), Activation::kSilu);
  EXPECT_EQ(parse("relu2"), Activation::kRelu2);
}

TEST(ParseActivation, RefusesOtherNamesWithTheList) {
  test::expect_error(ErrorCode::kUnsupported,
                     "config.json: hidden_act: expected gelu_pytorch_tanh, gelu_new, gelu, "
                     "quick_gelu, silu, swish or relu2, got relu",
                     [] { (void)parse_activation("relu", "config.json: hidden_act"); });
}

}  // namespace
}  // namespace fovea::common
