// One test per way in which a header can be wrong, and one per thing that looks wrong and is legal.
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "core/check.h"
#include "support/allocations.h"
#include "support/expect_error.h"

namespace fovea::checkpoint {
namespace {

using test::bytes_of;
using test::safetensors_bytes;

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors_header(bytes_of(file), file.size(), "x.safetensors");
}

SafetensorsHeader parse(std::string_view header, std::size_t data_bytes) {
  return parse(safetensors_bytes(header, data_bytes));
}

/// Expects that a file is refused with "x.safetensors: " and `message`.
void expect_corrupt(std::string_view file, const std::string& message) {
  test::expect_error(ErrorCode::kCorruptData, cat("x.safetensors: ", message),
                     [&] { (void)parse(file); });
}

void expect_corrupt(std::string_view header, std::size_t data_bytes, const std::string& message) {
  SCOPED_TRACE(header);
  expect_corrupt(safetensors_bytes(header, data_bytes), message);
}

TEST(SafetensorsHeader, ListsTensorsByPlaceAndMetadata) {
  const std::string text = R"({"b": {"dtype": "F32", "shape": [2, 1], "data_offsets": [3, 11]},)"
                           R"( "__metadata__": {"format": "pt"},)"
                           R"( "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}}   )";
  const SafetensorsHeader header = parse(text, 11);
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "b");
  EXPECT_EQ(header.tensors[1].dtype, "F32");
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(header.tensors[1].begin, 3u);
  EXPECT_EQ(header.tensors[1].end, 11u);
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(header.data_offset, 8 + text.size());
}

TEST(SafetensorsHeader, MayListNothing) {
  const SafetensorsHeader header = parse("{}", 0);
  EXPECT_TRUE(header.tensors.empty());
  EXPECT_TRUE(header.metadata.empty());
}

TEST(SafetensorsHeader, TakesAScalar) {
  EXPECT_TRUE(parse(R"({"a": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}})", 8)
                  .tensors[0]
                  .shape.empty());
}

TEST(SafetensorsHeader, TakesTensorsWithoutElements) {
  const SafetensorsHeader header =
      parse(R"({"a": {"dtype": "F32", "shape": [0, 5], "data_offsets": [2, 2]},)"
            R"( "b": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},)"
            R"( "c": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}})",
            2);
  EXPECT_EQ(header.tensors.size(), 3u);
}

TEST(SafetensorsHeader, TakesEveryDTypeOfTheFormat) {
  const std::vector<std::pair<std::string, int>> bits{
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
      {"U16", 16},    {"F16", 16}, {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32},    {"I64", 64}, {"U64", 64},    {"F64", 64},    {"C64", 64}};
  for (const auto& [dtype, size] : bits) {
    const std::string header =
        cat(R"({"a": {"dtype": ")", dtype, R"(", "shape": [8], "data_offsets": [0, )", size, "]}}");
    EXPECT_EQ(parse(header, static_cast<std::size_t>(size)).tensors[0].dtype, dtype);
  }
}

TEST(SafetensorsHeader, IsFoundInAPrefixOfTheFile) {
  const std::string header = R"({"a": {"dtype": "U8", "shape": [5], "data_offsets": [0, 5]}})";
  const std::string prefix = safetensors_bytes(header, 0);
  EXPECT_EQ(parse_safetensors_header(bytes_of(prefix), prefix.size() + 5, "x").tensors.size(), 1u);
}

TEST(SafetensorsHeader, RefusesAPrefixWithoutTheWholeHeader) {
  const std::string file = safetensors_bytes("{}      ", 0);
  const auto given = bytes_of(file);
  test::expect_error(ErrorCode::kInvalidArgument, "x: header of 8 bytes, only 7 given",
                     [&] { (void)parse_safetensors_header(given.first(15), given.size(), "x"); });
  test::expect_error(ErrorCode::kInvalidArgument, "x: header given without length",
                     [&] { (void)parse_safetensors_header(given.first(7), given.size(), "x"); });
}

TEST(SafetensorsHeader, RefusesAFileWithoutLength) {
  expect_corrupt("", "file has 0 bytes, a safetensors file at least 8");
  expect_corrupt("\x02\0\0\0\0\0\0", "file has");
}

TEST(SafetensorsHeader, RefusesAHeaderLongerThanTheLimit) {
  const std::string file = safetensors_bytes(std::string(kMaxHeaderBytes + 1, '{'), 0);
  expect_corrupt(file, "header of 100000001 bytes, at most 100000000");
}

TEST(SafetensorsHeader, RefusesAHeaderLongerThanTheFile) {
  std::string file = safetensors_bytes("{}", 0);
  file[0] = 3;
  expect_corrupt(file, "header of 3 bytes in a file of 10");
}

TEST(SafetensorsHeader, RefusesALengthThatWouldOverflow) {
  expect_corrupt(std::string(8, '\xff') + "{}", "header of 18446744073709551615 bytes");
}

TEST(SafetensorsHeader, TellsOtherFilesFromDamagedOnes) {
  expect_corrupt(
      "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
      "not the file itself but what git-lfs keeps in its place; `git lfs pull` fetches it");
  expect_corrupt("\xff\xd8\xff\xe0\x10JFIF, an image",
                 "not a safetensors file, its header does not begin with '{'");
}

TEST(SafetensorsHeader, RefusesAnEmptyHeader) {
  expect_corrupt("", 0, "header does not begin with '{'");
}

TEST(SafetensorsHeader, RefusesAHeaderThatDoesNotBeginWithABrace) {
  expect_corrupt(" {}", 0, "not a safetensors file, its header does not begin with '{'");
  expect_corrupt("[]", 0, "not a safetensors file, its header does not begin with '{'");
  expect_corrupt("\xef\xbb\xbf{}", 0, "not a safetensors file, its header does not begin with '{'");
}

TEST(SafetensorsHeader, RefusesWhatIsNotJson) {
  expect_corrupt("{\"a\": ", 0, "line 1, column 7: ");
  expect_corrupt("{} {}", 0, "line 1, column 4: ");
}

TEST(SafetensorsHeader, RefusesPaddingWithZeroBytes) {
  expect_corrupt(std::string_view("{}\0\0", 4), 0, "line 1, column 3: zero byte");
}

TEST(SafetensorsHeader, RefusesTextThatIsNotUtf8) {
  expect_corrupt("{\"\xff\": 1}", 0, "line 1, column 3: ");
}

TEST(SafetensorsHeader, RefusesDeepNesting) {
  expect_corrupt("{\"a\": " + std::string(1000, '['), 0, "nested deeper than");
}

TEST(SafetensorsHeader, RefusesDuplicateTensors) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},)"
                 R"( "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
                 1, "key \"a\" occurs twice");
}

TEST(SafetensorsHeader, RefusesDuplicateMembersOfATensor) {
  expect_corrupt(R"({"a": {"dtype": "U8", "dtype": "I8", "shape": [1], "data_offsets": [0, 1]}})",
                 1, "key \"dtype\" occurs twice");
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNoObject) {
  expect_corrupt(R"({"__metadata__": []})", 0, "__metadata__: expected an object, got an array");
  expect_corrupt(R"({"__metadata__": null})", 0, "__metadata__: expected a value, got none");
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNotText) {
  expect_corrupt(R"({"__metadata__": {"a": 1}})", 0, "__metadata__.a: expected a string, got 1");
}

TEST(SafetensorsHeader, RefusesATensorThatIsNoObject) {
  expect_corrupt(R"({"a": 3})", 0, "a: expected an object, got 3");
  expect_corrupt(R"({"a": null})", 0, "a: expected a value, got none");
}

TEST(SafetensorsHeader, RefusesATensorWithoutDType) {
  expect_corrupt(R"({"a": {"shape": [1], "data_offsets": [0, 1]}})", 1,
                 "a.dtype: expected a value");
}

TEST(SafetensorsHeader, RefusesATensorWithoutShape) {
  expect_corrupt(R"({"a": {"dtype": "U8", "data_offsets": [0, 1]}})", 1,
                 "a.shape: expected a value");
}

TEST(SafetensorsHeader, RefusesATensorWithoutOffsets) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1]}})", 1, "a.data_offsets: expected a value");
}

TEST(SafetensorsHeader, RefusesADTypeThatIsNoText) {
  expect_corrupt(R"({"a": {"dtype": 8, "shape": [1], "data_offsets": [0, 1]}})", 1,
                 "a.dtype: expected a string, got 8");
}

TEST(SafetensorsHeader, RefusesADTypeOfUnknownSizeByName) {
  const std::string file =
      safetensors_bytes(R"({"a": {"dtype": "F12", "shape": [2], "data_offsets": [0, 3]}})", 3);
  test::expect_error(ErrorCode::kUnsupported, "x.safetensors: a: dtype \"F12\" is not known",
                     [&] { (void)parse(file); });
}

TEST(SafetensorsHeader, RefusesANegativeSize) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})", 1,
                 "a.shape[0]: expected an integer >= 0");
}

TEST(SafetensorsHeader, RefusesASizeThatIsNoInteger) {
  for (const char* size : {"1.0", "\"1\"", "null", "true", "[1]"}) {
    expect_corrupt(
        cat(R"({"a": {"dtype": "U8", "shape": [)", size, R"(], "data_offsets": [0, 1]}})"), 1,
        "a.shape[0]: expected an integer >= 0");
  }
}

TEST(SafetensorsHeader, RefusesASizeBeyond63Bits) {
  expect_corrupt(
      R"({"a": {"dtype": "U8", "shape": [9223372036854775808], "data_offsets": [0, 1]}})", 1,
      "a.shape[0]: expected an integer of at most 63 bits");
}

TEST(SafetensorsHeader, RefusesAShapeWhoseProductOverflows) {
  expect_corrupt(
      R"({"a": {"dtype": "U8", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})", 0,
      "a: shape has more bits than 63 bits can count");
}

TEST(SafetensorsHeader, RefusesAShapeWhoseByteCountOverflows) {
  // 2^60 elements fit, 2^60 * 64 bits would be 0 modulo 2^64.
  expect_corrupt(
      R"({"a": {"dtype": "F64", "shape": [1152921504606846976], "data_offsets": [0, 0]}})", 0,
      "a: shape has more bits than 63 bits can count");
}

TEST(SafetensorsHeader, RefusesARankAboveTheLimit) {
  std::string ones = "1";
  for (std::size_t i = 0; i < kMaxEntryRank; ++i) ones += ",1";
  expect_corrupt(cat(R"({"a": {"dtype": "U8", "shape": [)", ones, R"(], "data_offsets": [0, 1]}})"),
                 1, "a: rank 65, at most 64");
}

/// Expects that a header is refused with `message` in little memory beyond its text.
void expect_refused_cheaply(const std::string& header, const std::string& message) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const std::string file = safetensors_bytes(header);
  test::begin_peak();
  expect_corrupt(file, message);
  EXPECT_LT(test::peak_bytes(), kMost + 4 * static_cast<std::int64_t>(file.size()));
}

TEST(SafetensorsHeader, RefusesLongNamesInLittleMemory) {
  const std::string entry = R"(": {"dtype": "F32", "shape": [0)";
  std::string zeros;
  for (int i = 0; i < 2000; ++i) zeros += ",0";
  const std::string rest = zeros + R"(], "data_offsets": [0, 0]}})";
  expect_refused_cheaply(R"({")" + std::string(1'000'000, 'n') + entry + rest,
                         "key of more than 1000 bytes");
  expect_refused_cheaply(R"({")" + std::string(1000, 'n') + entry + rest,
                         std::string(128, 'n') + "...: rank 2001, at most 64 is read");
}

TEST(SafetensorsHeader, RefusesALongListInLittleMemory) {
  std::string zeros = "0";
  for (int i = 0; i < 1'000'000; ++i) zeros += ",0";
  const std::string file = safetensors_bytes(R"({"a": {"dtype": "F32", "shape": [)" + zeros +
                                             R"(], "data_offsets": [0, 0]}})");
  test::begin_peak();
  expect_corrupt(file, "a: rank 1000001, at most 64 is read");
  EXPECT_LT(test::peak_bytes(), std::int64_t{64} << 20) << "24 bytes for each number";
}

TEST(SafetensorsHeader, RefusesPartsOfBytes) {
  expect_corrupt(R"({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}})", 1,
                 "a: 12 bits are not whole bytes");
}

TEST(SafetensorsHeader, RefusesOffsetsThatAreNotTwo) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0]}})", 1,
                 "a: expected 2 data_offsets, got 1");
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}})", 1,
                 "a: expected 2 data_offsets, got 3");
}

TEST(SafetensorsHeader, RefusesNegativeOffsets) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [-1, 0]}})", 1,
                 "a.data_offsets[0]: expected an integer >= 0");
}

TEST(SafetensorsHeader, RefusesATensorThatEndsBeforeItBegins) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}})", 1,
                 "a: begins at 1 after its end at 0");
}

TEST(SafetensorsHeader, RefusesATensorThatEndsBehindTheData) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})", 1,
                 "a: spans bytes 0..2 of 1");
}

TEST(SafetensorsHeader, RefusesATensorWhoseShapeDoesNotFillItsSpan) {
  expect_corrupt(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 4,
                 "a: shape and dtype need 8 bytes, data_offsets span 4");
}

TEST(SafetensorsHeader, RefusesTensorsThatOverlap) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},)"
                 R"( "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                 3, "\"b\" begins at byte 1 inside another tensor that ends at 2");
}

TEST(SafetensorsHeader, RefusesTwoTensorsInOnePlace) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},)"
                 R"( "b": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
                 2, "\"b\" begins at byte 0 inside another tensor that ends at 2");
}

TEST(SafetensorsHeader, RefusesAHoleBetweenTensors) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},)"
                 R"( "b": {"dtype": "U8", "shape": [1], "data_offsets": [2, 3]}})",
                 3, "bytes 1..2 before \"b\" belong to no tensor");
}

TEST(SafetensorsHeader, RefusesAHoleBeforeTheFirstTensor) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})", 2,
                 "bytes 0..1 before \"a\" belong to no tensor");
}

TEST(SafetensorsHeader, RefusesTrailingBytes) {
  expect_corrupt(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", 3,
                 "2 bytes follow the last tensor");
  expect_corrupt("{}", 1, "1 bytes follow the last tensor");
}

/// A flipped byte gives an error or another header that tiles the same data, never a crash.
TEST(SafetensorsHeader, SurvivesEveryFlippedByteProperty) {
  const std::string file = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})",
      14);
  int accepted = 0;
  for (std::size_t place = 0; place + 14 < file.size(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string broken = file;
      broken[place] = static_cast<char>(broken[place] ^ (1 << bit));
      try {
        const SafetensorsHeader header = parse(broken);
        EXPECT_EQ(header.tensors.size(), 2u);
        EXPECT_EQ(header.tensors.back().end, 14u);
        ++accepted;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GT(accepted, 0);  // for example in the text of the metadata
}

TEST(SafetensorsHeader, SurvivesEveryTruncationProperty) {
  const std::string file =
      safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8);
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_THROW((void)parse(file.substr(0, length)), Error) << length << " bytes";
}

}  // namespace
}  // namespace fovea::checkpoint
