#include "fovea/tower/checkpoint/weight_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "core/check.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::checkpoint {
namespace {

using test::TemporaryDirectory;

using Names = std::vector<std::string>;

/// Writes a file whose tensors are one I32 number each: 100, 101, ...
void write_numbers(const std::string& path, const Names& names) {
  std::vector<std::int32_t> numbers(names.size());
  std::vector<OutputTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    numbers[i] = 100 + static_cast<std::int32_t>(i);
    tensors.push_back(
        {names[i], {reinterpret_cast<const std::byte*>(&numbers[i]), DType::kI32, {1}}});
  }
  write_safetensors(path, tensors, {});
}

std::int32_t number(const WeightSource& source, const std::string& name) {
  const ConstTensorView view = source.tensor(name, {1});
  std::int32_t value = 0;
  std::copy_n(view.data, sizeof(value), reinterpret_cast<std::byte*>(&value));
  return value;
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST(WeightSource, ReadsTheSingleFile) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", {"b", "a"});
  const WeightSource source = WeightSource::open(folder.path());
  EXPECT_FALSE(source.is_dummy());
  EXPECT_EQ(source.names(), (Names{"a", "b"}));
  EXPECT_EQ(number(source, "b"), 100);
  EXPECT_EQ(number(source, "a"), 101);
}

TEST(WeightSource, ListsATensor) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", {"a"});
  const WeightSource source = WeightSource::open(folder.path());
  const auto listing = source.listing("a");
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->name, "a");
  EXPECT_EQ(listing->dtype, "I32");
  EXPECT_EQ(listing->shape, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(listing->file, "model.safetensors");
  EXPECT_FALSE(source.listing("b"));
}

TEST(WeightSource, NamesTheTensorThatIsAbsent) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", {"a"});
  const WeightSource source = WeightSource::open(folder.path());
  test::expect_error(ErrorCode::kNotFound, "no tensor \"b\"",
                     [&] { (void)source.tensor("b", {1}); });
}

TEST(WeightSource, TakesTheOnlyFileOfAnotherName) {
  const TemporaryDirectory folder;
  write_numbers(folder / "tower.safetensors", {"a"});
  const WeightSource source = WeightSource::open(folder.path());
  EXPECT_EQ(number(source, "a"), 100);
  EXPECT_EQ(source.listing("a")->file, "tower.safetensors");
}

/// Two numbers in memory of the caller, and how often they were read.
struct Numbers {
  WeightTensors tensors{.listings = {{"b", "I32", {1}}, {"a", "I32", {1}}, {"odd", "int3", {1}}}};
  std::vector<std::size_t> reads;

  Numbers() {
    tensors.read = [this](std::size_t index, std::span<std::byte> out) {
      reads.push_back(index);
      const std::int32_t value = 100 + static_cast<std::int32_t>(index);
      ASSERT_EQ(out.size(), sizeof(value));
      std::memcpy(out.data(), &value, sizeof(value));
    };
  }
};

TEST(WeightSource, TakesTensorsOfTheCallerOneByOne) {
  Numbers numbers;
  const WeightSource source = WeightSource::handed_over("folder", numbers.tensors);
  EXPECT_FALSE(source.is_dummy());
  EXPECT_FALSE(source.is_stored());
  EXPECT_EQ(source.names(), (Names{"a", "b", "odd"}));
  EXPECT_EQ(source.directory(), "folder");
  EXPECT_EQ(source.listing("a")->dtype, "I32");
  EXPECT_EQ(source.listing("a")->file, "tensors handed over");
  EXPECT_EQ(source.file_of("b"), "tensors handed over");
  EXPECT_FALSE(source.listing("c"));
  EXPECT_TRUE(numbers.reads.empty());
  EXPECT_EQ(number(source, "a"), 101);
  EXPECT_EQ(number(source, "b"), 100);
  EXPECT_EQ(numbers.reads, (std::vector<std::size_t>{1, 0}));
}

TEST(WeightSource, NamesTheTensorThatTheCallerLacks) {
  Numbers numbers;
  const WeightSource source = WeightSource::handed_over("folder", numbers.tensors);
  test::expect_error(ErrorCode::kNotFound, "folder: no tensor \"c\" in the tensors handed over",
                     [&] { (void)source.tensor("c", {1}); });
  test::expect_error(ErrorCode::kUnsupported,
                     "\"odd\" has dtype int3, which Fovea does not compute with",
                     [&] { (void)source.tensor("odd", {1}); });
}

TEST(WeightSource, ReadsTensorsOfTheCallerNeverTwiceAtOnce) {
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  const WeightTensors tensors{.listings = {{"a", "F32", {256}}},
                              .read = [&](std::size_t, std::span<std::byte> out) {
                                if (++inside > 1) met = true;
                                std::this_thread::yield();
                                std::ranges::fill(out, std::byte{1});
                                --inside;
                              }};
  const WeightSource source = WeightSource::handed_over("folder", tensors);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50; ++k) (void)source.tensor("a", {256});
      });
    }
  }
  EXPECT_FALSE(met);
}

TEST(WeightSource, RefusesTensorsThatAreNoSet) {
  Numbers numbers;
  numbers.tensors.listings[2].name = "a";
  test::expect_error(ErrorCode::kInvalidArgument,
                     "folder: two tensors handed over are called \"a\"",
                     [&] { (void)WeightSource::handed_over("folder", numbers.tensors); });
  test::expect_error(ErrorCode::kInvalidArgument, "without a function that reads them",
                     [] { (void)WeightSource::handed_over("folder", WeightTensors{}); });
}

TEST(WeightSource, RefusesAChoiceOfFilesWithoutIndex) {
  const TemporaryDirectory folder;
  write_numbers(folder / "one.safetensors", {"a"});
  write_numbers(folder / "two.safetensors", {"b"});
  test::expect_error(ErrorCode::kNotFound, "one other *.safetensors file, found 2 such files",
                     [&] { (void)WeightSource::open(folder.path()); });
}

TEST(WeightSource, TakesAllShardsOfASetWithoutAnIndex) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model-00001-of-00002.safetensors", {"a"});
  write_numbers(folder / "model-00002-of-00002.safetensors", {"c", "b"});
  const WeightSource source = WeightSource::open(folder.path());
  EXPECT_EQ(source.names(), (Names{"a", "b", "c"}));
  EXPECT_EQ(number(source, "b"), 101);
  EXPECT_EQ(source.listing("a")->file, "model-00001-of-00002.safetensors");
}

TEST(WeightSource, NamesTheShardThatASetLacks) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model-00001-of-00003.safetensors", {"a"});
  write_numbers(folder / "model-00002-of-00003.safetensors", {"b"});
  test::expect_error(ErrorCode::kNotFound, "shard 3 of 3 is missing, the last one is model-00002",
                     [&] { (void)WeightSource::open(folder.path()); });
  std::filesystem::rename(folder / "model-00002-of-00003.safetensors",
                          folder / "model-00003-of-00003.safetensors");
  test::expect_error(ErrorCode::kNotFound, "shard 2 of 3 is missing, the next one is model-00003",
                     [&] { (void)WeightSource::open(folder.path()); });
}

TEST(WeightSource, RefusesShardsThatHoldOneTensorTwice) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model-00001-of-00002.safetensors", {"a"});
  write_numbers(folder / "model-00002-of-00002.safetensors", {"a"});
  test::expect_error(ErrorCode::kCorruptData,
                     "tensor \"a\" is both in model-00001-of-00002.safetensors and in "
                     "model-00002-of-00002.safetensors",
                     [&] { (void)WeightSource::open(folder.path()); });
}

TEST(WeightSource, SaysThatALinkLeadsNowhere) {
  const TemporaryDirectory folder;
  std::filesystem::create_symlink("../blobs/absent", folder / "model.safetensors");
  test::expect_error(ErrorCode::kNotFound,
                     "model.safetensors: a link to a file that is not there; run the download",
                     [&] { (void)WeightSource::open(folder.path()); });
}

TEST(WeightSource, RefusesADirectoryWithoutWeights) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kNotFound, "found 0 such files",
                     [&] { (void)WeightSource::open(folder.path()); });
  test::write_text(folder / "pytorch_model.bin", "");
  test::expect_error(ErrorCode::kNotFound, "found another format: pytorch_model.bin",
                     [&] { (void)WeightSource::open(folder.path()); });
  test::expect_error(ErrorCode::kNotFound, "absent: expected the directory of a model",
                     [&] { (void)WeightSource::open(folder / "absent"); });
}

TEST(WeightSource, TakesATooLongNameForAbsent) {
  test::expect_error(ErrorCode::kNotFound, "expected the directory of a model",
                     [] { (void)WeightSource::open(std::string(5000, 'x')); });
}

TEST(WeightSource, PrefersTheSingleFileToAnIndex) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", {"a"});
  test::write_text(folder / kIndex, "not even JSON");
  EXPECT_EQ(WeightSource::open(folder.path()).names(), (Names{"a"}));
}

TEST(WeightSource, ReadsShardsThroughTheIndex) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model-1.safetensors", {"a", "c"});
  write_numbers(folder / "model-2.safetensors", {"b"});
  test::write_text(folder / kIndex,
                   R"({"metadata": {"total_size": 12}, "weight_map": {"c": "model-1.safetensors",)"
                   R"( "a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  const WeightSource source = WeightSource::open(folder.path());
  EXPECT_EQ(source.names(), (Names{"a", "b", "c"}));
  EXPECT_EQ(number(source, "a"), 100);
  EXPECT_EQ(number(source, "b"), 100);
  EXPECT_EQ(number(source, "c"), 101);
  EXPECT_EQ(source.listing("b")->file, "model-2.safetensors");
}

/// One good shard "model-1.safetensors" with tensor "a" and a second, named by the index for tensor
/// "b", which each test makes wrong in its way.
class ShardedSource : public ::testing::Test {
 protected:
  ShardedSource() {
    write_numbers(folder_ / "model-1.safetensors", {"a"});
    test::write_text(folder_ / kIndex, R"({"weight_map": {"a": "model-1.safetensors",)"
                                       R"( "b": "model-2.safetensors"}})");
  }
  [[nodiscard]] WeightSource open() const { return WeightSource::open(folder_.path()); }

  TemporaryDirectory folder_;
};

TEST_F(ShardedSource, OpensOnlyTheShardsThatAreAskedFor) {
  test::write_text(folder_ / "model-2.safetensors", "broken");
  const WeightSource source = open();
  EXPECT_EQ(source.names(), (Names{"a", "b"}));
  EXPECT_EQ(number(source, "a"), 100);
  EXPECT_TRUE(source.listing("a"));
  EXPECT_FALSE(source.listing("c"));
}

TEST_F(ShardedSource, NamesTheBrokenShard) {
  test::write_text(folder_ / "model-2.safetensors", "broken");
  const WeightSource source = open();
  test::expect_error(ErrorCode::kCorruptData, "model-2.safetensors: file has 6 bytes",
                     [&] { (void)source.listing("b"); });
}

TEST_F(ShardedSource, NamesTheMissingShardAndATensorOfIt) {
  const WeightSource source = open();
  const std::string message =
      "model-2.safetensors: no such file, but the index says that it holds \"b\"";
  test::expect_error(ErrorCode::kNotFound, message, [&] { (void)source.tensor("b", {1}); });
  test::expect_error(ErrorCode::kNotFound, message, [&] { (void)source.listing("b"); });
}

TEST_F(ShardedSource, NamesTheTensorThatItsShardDoesNotHold) {
  write_numbers(folder_ / "model-2.safetensors", {"c"});
  const WeightSource source = open();
  const std::string message = "model-2.safetensors: no tensor \"b\", but the index says";
  test::expect_error(ErrorCode::kCorruptData, message, [&] { (void)source.tensor("b", {1}); });
  test::expect_error(ErrorCode::kCorruptData, message, [&] { (void)source.listing("b"); });
}

TEST_F(ShardedSource, FindsAShardThatArrivesLater) {
  const WeightSource source = open();
  EXPECT_THROW((void)source.tensor("b", {1}), Error);
  write_numbers(folder_ / "model-2.safetensors", {"b"});
  EXPECT_EQ(number(source, "b"), 100);
}

TEST_F(ShardedSource, MayBeAskedByManyThreadsAtOnce) {
  write_numbers(folder_ / "model-2.safetensors", {"b"});
  const WeightSource source = open();
  std::vector<std::int32_t> sums(8);
  std::vector<std::jthread> threads;
  for (std::int32_t& sum : sums)
    threads.emplace_back([&] { sum = number(source, "a") + number(source, "b"); });
  threads.clear();
  for (const std::int32_t sum : sums) EXPECT_EQ(sum, 200);
}

TEST(ShardIndex, RefusesNamesThatLeadElsewhere) {
  const TemporaryDirectory folder;
  for (const char* name : {"../x.safetensors", "a/x.safetensors", "/x.safetensors", "..", ".", "",
                           "a\\\\x.safetensors", "x\\u0000.safetensors", "x..safetensors"}) {
    SCOPED_TRACE(name);
    test::write_text(folder / kIndex, cat(R"({"weight_map": {"a": ")", name, R"("}})"));
    test::expect_error(ErrorCode::kCorruptData, "is not a plain file name",
                       [&] { (void)WeightSource::open(folder.path()); });
  }
}

TEST(ShardIndex, RefusesWhatIsNoIndex) {
  const TemporaryDirectory folder;
  const std::vector<std::pair<std::string, std::string>> broken{
      {"{", "index.json: line 1, column 2: "},
      {"[]", "index.json: expected an object, got an array"},
      {"{}", "index.json: weight_map: expected a value, got none"},
      {R"({"weight_map": 1})", "index.json: weight_map: expected an object, got 1"},
      {R"({"weight_map": {"a": 1}})", "index.json: weight_map.a: expected a string, got 1"},
      {R"({"weight_map": {"a": null}})", "index.json: weight_map.a: expected a value, got none"}};
  for (const auto& [text, message] : broken) {
    SCOPED_TRACE(text);
    test::write_text(folder / kIndex, text);
    test::expect_error(ErrorCode::kCorruptData, message,
                       [&] { (void)WeightSource::open(folder.path()); });
  }
}

TEST(DummySource, HasEveryTensorOfAnyShape) {
  const WeightSource source = WeightSource::dummy(7);
  EXPECT_TRUE(source.is_dummy());
  EXPECT_TRUE(source.names().empty());
  EXPECT_FALSE(source.listing("a"));
  const ConstTensorView view = source.tensor("a", {3, 5});
  EXPECT_EQ(view.dtype, DType::kBF16);
  EXPECT_EQ(view.shape, (Shape{3, 5}));
  const ConstTensorView none = source.tensor("a", {0, 5});
  EXPECT_TRUE(none);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(DummySource, DependsOnSeedAndNameOnly) {
  const auto first_bits = [](const WeightSource& source, const std::string& name) {
    const auto* bits = source.tensor(name, {64, 64}).as<std::uint16_t>();
    return std::vector<std::uint16_t>(bits, bits + 64);
  };
  const WeightSource source = WeightSource::dummy(7);
  const auto a = first_bits(source, "a");
  EXPECT_NE(a, first_bits(source, "b"));
  EXPECT_EQ(a, first_bits(source, "a"));
  EXPECT_EQ(a, first_bits(WeightSource::dummy(7), "a"));
  EXPECT_NE(a, first_bits(WeightSource::dummy(8), "a"));
}

TEST(DummySource, KeepsNormWeightsNearOne) {
  const WeightSource source = WeightSource::dummy(7);
  const auto mean = [&](const std::string& name, const Shape& shape) {
    const ConstTensorView view = source.tensor(name, shape);
    float sum = 0;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      sum += bf16_to_f32(view.as<std::uint16_t>()[i]);
    return sum / static_cast<float>(shape.elements());
  };
  constexpr float kTolerance = 0.01f;  // 16 standard errors of a mean of 1024
  EXPECT_NEAR(mean("blocks.0.norm1.weight", {1024}), 1.0f, kTolerance);
  EXPECT_NEAR(mean("merger.ln_q.weight", {1024}), 1.0f, kTolerance);
  EXPECT_NEAR(mean("blocks.0.norm1.bias", {1024}), 0.0f, kTolerance);
  EXPECT_NEAR(mean("blocks.0.attn.proj.weight", {32, 32}), 0.0f, kTolerance);
}

TEST(DummySource, GivesEveryThreadMemoryOfItsOwn) {
  const WeightSource source = WeightSource::dummy(7);
  const ConstTensorView mine = source.tensor("a", {16});
  const std::vector<std::byte> before(mine.data, mine.data + mine.bytes());
  std::jthread([&] { (void)source.tensor("b", {16}); }).join();
  EXPECT_EQ(std::vector<std::byte>(mine.data, mine.data + mine.bytes()), before);
}

TEST(WeightSource, NamesTheFileThatShrinksWhileItIsLoaded) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", {"a", "b"});
  const WeightSource source = WeightSource::open(folder.path());
  EXPECT_EQ(number(source, "a"), 100);
  std::filesystem::resize_file(folder / "model.safetensors", 0);
  test::expect_error(ErrorCode::kIo, (folder / "model.safetensors") + ": file ends after ",
                     [&] { (void)source.tensor("b", {1}); });
}

/// find_prefix in a checkpoint with tensors of these names.
std::optional<std::string> prefix_among(const Names& names, std::string_view anchor,
                                        std::string_view suffix) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model.safetensors", names);
  return find_prefix(WeightSource::open(folder.path()), anchor, suffix);
}

TEST(FindPrefix, GivesTheTextBeforeTheSuffix) {
  const std::string suffix = "patch_embed.proj.weight";
  EXPECT_EQ(
      prefix_among({"lm_head.weight", "model.visual.patch_embed.proj.weight"}, "visual.", suffix),
      "model.visual.");
  EXPECT_EQ(prefix_among({"visual.patch_embed.proj.weight"}, "visual.", suffix), "visual.");
  EXPECT_EQ(prefix_among({"model.patch_embed.proj.weight"}, "", suffix), "model.");
}

TEST(FindPrefix, GivesNothingIfNoNameFits) {
  EXPECT_EQ(prefix_among({}, "visual.", "w"), std::nullopt);
  EXPECT_EQ(prefix_among({"visual.w.bias", "vision.w"}, "visual.", "w"), std::nullopt);
}

TEST(FindPrefix, WantsTheAnchorAtADot) {
  EXPECT_EQ(prefix_among({"nonvisual.w"}, "visual.", "w"), std::nullopt);
  EXPECT_EQ(prefix_among({"nonvisual.w", "a.visual.w"}, "visual.", "w"), "a.visual.");
}

TEST(FindPrefix, NamesTwoCandidatesAndTheirFiles) {
  const TemporaryDirectory folder;
  write_numbers(folder / "model-1.safetensors", {"a.visual.w"});
  write_numbers(folder / "model-2.safetensors", {"visual.w"});
  test::write_text(folder / kIndex, R"({"weight_map": {"a.visual.w": "model-1.safetensors",)"
                                    R"( "visual.w": "model-2.safetensors"}})");
  const WeightSource source = WeightSource::open(folder.path());
  test::expect_error(ErrorCode::kCorruptData,
                     folder.path() +
                         ": two tensors end with \"visual.w\": \"a.visual.w\" in "
                         "model-1.safetensors and \"visual.w\" in model-2.safetensors",
                     [&] { (void)find_prefix(source, "visual.", "w"); });
}

}  // namespace
}  // namespace fovea::checkpoint
