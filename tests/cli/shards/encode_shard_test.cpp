// What a manifest says of a run; tests/integration/encode_shard_test.cpp runs some.
#include "shards/encode_shard.h"

#include <gtest/gtest.h>

#include "support/options.h"

namespace fovea::cli {
namespace {

OptionTexts options_of(const EngineOptions& options, const std::string& dtype = "float32",
                       const ItemDefaults& items = {}) {
  EngineFlags engine;
  engine.model = "tower";
  engine.options = options;
  ShardFlags flags;
  flags.shard = Shard{.index = 0, .count = 1};
  return manifest_header({.engine = engine,
                          .inputs = {},
                          .items = items,
                          .folder = "",
                          .dtype = dtype,
                          .flags = flags})
      .options;
}

TEST(ManifestHeader, HoldsTheOptionsThatRowsDependOnAndNoOther) {
  const OptionTexts before = options_of({});
  fovea::test::for_each_change(
      EngineOptions{},
      [&](const std::string& name, const OptionFacts& facts, const EngineOptions& changed) {
        const OptionTexts after = options_of(changed);
        EXPECT_EQ(after != before, facts.effect != RowEffect::kNone) << name;
        EXPECT_EQ(after.contains(name), facts.effect != RowEffect::kNone) << name;
      });
  EXPECT_EQ(before.at("dtype"), "float32");
  EXPECT_EQ(options_of({}, "bfloat16").at("dtype"), "bfloat16");
  EXPECT_EQ(before.at("fps"), "2");
  const OptionTexts items =
      options_of({}, "float32", {.fps = 0.5, .mm_processor_kwargs = R"({"a":1})"});
  EXPECT_EQ(items.at("fps"), "0.5");
  EXPECT_EQ(items.at("mm_processor_kwargs"), R"({"a":1})");
}

}  // namespace
}  // namespace fovea::cli
