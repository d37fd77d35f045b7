#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/safetensors_bytes.h"
#include "core/check.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"
#include "support/temporary_directory.h"

namespace fovea::checkpoint {
namespace {

using test::safetensors_bytes;
using test::TemporaryDirectory;

ConstTensorView view_of(const std::vector<std::byte>& bytes, DType dtype, const Shape& shape) {
  return {bytes.data(), dtype, shape};
}

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

/// Bytes 0, 1, 2, ... as a tensor of a file with one tensor.
std::string counting_file(const std::string& dtype, const std::string& shape, std::size_t count) {
  std::string data;
  for (const std::byte byte : counting_bytes(count)) data += static_cast<char>(byte);
  return safetensors_bytes(cat(R"({"a":{"dtype":")", dtype, R"(","shape":)", shape,
                               R"(,"data_offsets":[0,)", count, "]}}"),
                           data);
}

TEST(SafetensorsFile, ReadsAPartOfATensor) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("U8", "[10]", 10));
  const SafetensorsFile file(folder / "x");
  std::vector<std::byte> part(3);
  file.read("a", 7, part);
  EXPECT_EQ(part, (std::vector{std::byte{7}, std::byte{8}, std::byte{9}}));
  test::expect_error(ErrorCode::kInvalidArgument, "x: \"a\" has 10 bytes, not 3 from 8 on",
                     [&] { file.read("a", 8, part); });
  test::expect_error(ErrorCode::kInvalidArgument, "not 3 from 18446744073709551615 on",
                     [&] { file.read("a", SIZE_MAX, part); });
}

TEST(SafetensorsFile, SaysThatItShrank) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x.safetensors", counting_file("F32", "[3,2]", 24));
  const SafetensorsFile file(folder / "x.safetensors");
  const std::size_t size = std::filesystem::file_size(folder / "x.safetensors");
  std::filesystem::resize_file(folder / "x.safetensors", size - 10);
  test::expect_error(ErrorCode::kIo,
                     cat("x.safetensors: file ends after ", size - 10, " of ", size,
                         " bytes: it shrank while it was read"),
                     [&] { (void)file.tensor("a"); });
}

TEST(SafetensorsFile, GivesViewsOfItsTensors) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x.safetensors", counting_file("F32", "[3,2]", 24));
  const SafetensorsFile file(folder / "x.safetensors");
  const ConstTensorView view = file.tensor("a");
  EXPECT_EQ(view.dtype, DType::kF32);
  EXPECT_EQ(view.shape, (Shape{3, 2}));
  EXPECT_EQ(std::memcmp(view.data, counting_bytes(24).data(), 24), 0);
}

TEST(SafetensorsFile, ReadsEveryDTypeThatFoveaComputesWith) {
  const std::vector<std::pair<std::string, DType>> dtypes{
      {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16},     {"U8", DType::kU8},
      {"I32", DType::kI32}, {"I64", DType::kI64}, {"F8_E4M3", DType::kF8E4M3}};
  const TemporaryDirectory folder;
  for (const auto& [name, dtype] : dtypes) {
    test::write_text(folder / "x", counting_file(name, "[3]", 3 * size_of(dtype)));
    EXPECT_EQ(SafetensorsFile(folder / "x").tensor("a").dtype, dtype) << name;
  }
}

TEST(SafetensorsFile, ListsButDoesNotGiveADTypeFoveaDoesNotComputeWith) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("F8_E5M2", "[3]", 3));
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.find("a")->dtype, "F8_E5M2");
  test::expect_error(ErrorCode::kUnsupported, "x: \"a\" has dtype F8_E5M2",
                     [&] { (void)file.tensor("a"); });
}

TEST(SafetensorsFile, ListsButDoesNotGiveARankAboveOurs) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("U8", "[1,1,1,1,1,1,1,1,3]", 3));
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.find("a")->shape.size(), 9u);
  test::expect_error(ErrorCode::kUnsupported, "x: \"a\" has rank 9, at most 8",
                     [&] { (void)file.tensor("a"); });
}

TEST(SafetensorsFile, NamesTheTensorThatIsAbsent) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("U8", "[3]", 3));
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.find("b"), nullptr);
  EXPECT_EQ(file.find(""), nullptr);
  test::expect_error(ErrorCode::kNotFound, "x: no tensor \"b\"", [&] { (void)file.tensor("b"); });
}

TEST(SafetensorsFile, GivesATensorWithoutElements) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("F32", "[0,4]", 0));
  const SafetensorsFile file(folder / "x");
  const ConstTensorView view = file.tensor("a");
  EXPECT_TRUE(view);
  EXPECT_EQ(view.shape, (Shape{0, 4}));
}

TEST(SafetensorsFile, RefusesABrokenFileByItsPath) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", "short");
  test::expect_error(ErrorCode::kCorruptData, folder.path() + "/x: file has 5 bytes",
                     [&] { SafetensorsFile file(folder / "x"); });
  test::write_text(folder / "x", "");
  test::expect_error(ErrorCode::kCorruptData, "x: file has 0 bytes",
                     [&] { SafetensorsFile file(folder / "x"); });
  test::expect_error(ErrorCode::kNotFound, "absent: no such file",
                     [&] { SafetensorsFile file(folder / "absent"); });
}

TEST(SafetensorsFile, KeepsViewsValidWhenMoved) {
  const TemporaryDirectory folder;
  test::write_text(folder / "x", counting_file("U8", "[3]", 3));
  SafetensorsFile file(folder / "x");
  const ConstTensorView view = file.tensor("a");
  const SafetensorsFile moved(std::move(file));
  EXPECT_EQ(moved.tensor("a").data, view.data);
  EXPECT_EQ(view.data[2], std::byte{2});
}

TEST(SafetensorsFile, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "model.safetensors")) {
    const SafetensorsFile file(folder + "/model.safetensors");
    EXPECT_EQ(file.header().tensors.size(), 89u);
    const ConstTensorView view = file.tensor("model.visual.patch_embed.proj.weight");
    EXPECT_EQ(view.dtype, DType::kBF16);
    EXPECT_EQ(view.shape, (Shape{144, 3, 2, 16, 16}));
  }
}

/// What the safetensors package writes for the same tensor and metadata.
TEST(WriteSafetensors, WritesTheReferenceBytes) {
  const TemporaryDirectory folder;
  const std::vector<std::byte> zeros(12);
  const std::vector<OutputTensor> tensors{{"ec_cache", view_of(zeros, DType::kBF16, {2, 3})}};
  write_safetensors(folder / "x", tensors, {{"format", "pt"}});
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("ec_cache":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})";
  const std::string expected = std::string("\x60\0\0\0\0\0\0\0", 8) + header +
                               std::string(96 - header.size(), ' ') + std::string(12, '\0');
  EXPECT_EQ(expected.size(), 116u);
  EXPECT_EQ(test::read_text(folder / "x"), expected);
}

TEST(WriteSafetensors, WritesAFileWithoutTensors) {
  const TemporaryDirectory folder;
  write_safetensors(folder / "x", {}, {});
  EXPECT_EQ(test::read_text(folder / "x"), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(SafetensorsFile(folder / "x").header().tensors.empty());
}

TEST(WriteSafetensors, AlignsEveryTensorToItsElements) {
  const TemporaryDirectory folder;
  const std::vector<std::byte> bytes = counting_bytes(24);
  const std::vector<OutputTensor> tensors{{"bytes", view_of(bytes, DType::kU8, {3})},
                                          {"rows", view_of(bytes, DType::kBF16, {3, 1})},
                                          {"floats", view_of(bytes, DType::kF32, {1})},
                                          {"grid", view_of(bytes, DType::kI64, {3})}};
  write_safetensors(folder / "x", tensors, {});
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.header().data_offset % 8, 0u);
  for (const OutputTensor& tensor : tensors)
    EXPECT_EQ(file.find(tensor.name)->begin % size_of(tensor.view.dtype), 0u) << tensor.name;
}

TEST(WriteSafetensors, EscapesNamesAndMetadata) {
  const TemporaryDirectory folder;
  const std::vector<std::byte> byte(1);
  const std::string name = "quote \" line \n umlaut \u00e4";
  const std::vector<OutputTensor> tensors{{name, view_of(byte, DType::kU8, {1})}};
  const std::map<std::string, std::string> metadata{{"items", R"([{"a":"b\\c"}])"}, {name, name}};
  write_safetensors(folder / "x", tensors, metadata);
  const SafetensorsFile file(folder / "x");
  EXPECT_NE(file.find(name), nullptr);
  EXPECT_EQ(file.header().metadata, metadata);
}

TEST(WriteSafetensors, RefusesDuplicateNames) {
  const TemporaryDirectory folder;
  const std::vector<std::byte> byte(1);
  const ConstTensorView view = view_of(byte, DType::kU8, {1});
  const std::vector<OutputTensor> tensors{{"a", view}, {"a", view}};
  test::expect_error(ErrorCode::kInvalidArgument, "\"a\" is given twice",
                     [&] { write_safetensors(folder / "x", tensors, {}); });
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(WriteSafetensors, RefusesTheNameOfTheMetadata) {
  const TemporaryDirectory folder;
  const std::vector<std::byte> byte(1);
  const std::vector<OutputTensor> tensors{{"__metadata__", view_of(byte, DType::kU8, {1})}};
  test::expect_error(ErrorCode::kInvalidArgument, "\"__metadata__\" is given twice or reserved",
                     [&] { write_safetensors(folder / "x", tensors, {}); });
}

TEST(WriteSafetensors, GivesTheSystemsReason) {
  const TemporaryDirectory folder;
  test::expect_error(ErrorCode::kIo, "absent/x: the directory ",
                     [&] { write_safetensors(folder / "absent/x", {}, {}); });
}

TEST(WriteSafetensors, ThenReadingIsTheIdentityProperty) {
  const TemporaryDirectory folder;
  constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16,
                               DType::kU8,  DType::kI32, DType::kI64};
  const std::vector<std::byte> bytes = counting_bytes(8 * 4 * 4 * 4);
  test::for_all(100, [&](auto& generator) {
    std::vector<OutputTensor> tensors;
    for (std::int64_t i = test::uniform(generator, 0, 6); i > 0; --i) {
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(test::uniform(generator, 0, 3)));
      for (std::int64_t& size : sizes) size = test::uniform(generator, 0, 4);
      const DType dtype = kDTypes[test::uniform(generator, 0, 5)];
      tensors.push_back({cat("tensor ", i), view_of(bytes, dtype, Shape(sizes))});
    }
    write_safetensors(folder / "x", tensors, {});
    const SafetensorsFile file(folder / "x");
    ASSERT_EQ(file.header().tensors.size(), tensors.size());
    for (const OutputTensor& expected : tensors) {
      const ConstTensorView actual = file.tensor(expected.name);
      EXPECT_EQ(actual.dtype, expected.view.dtype);
      EXPECT_EQ(actual.shape, expected.view.shape);
      EXPECT_EQ(std::memcmp(actual.data, expected.view.data, actual.bytes()), 0);
    }
  });
}

}  // namespace
}  // namespace fovea::checkpoint
