// Rows as torch, npy and safetensors files in memory: the bytes of the reference, and back.
#include "fovea/row_formats.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "core/file.h"
#include "fovea/media.h"
#include "support/expect_error.h"
#include "support/property.h"
#include "support/sha256.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using Bytes = std::vector<std::byte>;
using Sizes = std::vector<std::int64_t>;

template <class Element>
Bytes bytes_of(const std::vector<Element>& values) {
  Bytes bytes(values.size() * sizeof(Element));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const Bytes kCounting = bytes_of<float>({0, 1, 2, 3, 4, 5});

StoredTensor tensor(StoredType type, Sizes shape, std::span<const std::byte> data) {
  return {.name = "rows", .type = type, .shape = std::move(shape), .data = data};
}

using Writer = void (*)(const StoredTensor&, const ByteSink&);
using ReaderOf = StoredTensor (*)(std::span<const std::byte>, const std::string&);

Bytes written(Writer writer, const StoredTensor& tensor) {
  return in_memory([&](const ByteSink& sink) { writer(tensor, sink); });
}
std::string hash(std::span<const std::byte> bytes) {
  return test::sha256_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}
Bytes corpus(const std::string& name) {
  std::ifstream file(FOVEA_TEST_SOURCE_DIR "/tests/fuzz/corpus/" + name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(text.empty()) << name;
  return bytes_of(std::vector<char>(text.begin(), text.end()));
}
void expect_equal(const StoredTensor& got, const StoredTensor& expected) {
  EXPECT_EQ(got.type, expected.type);
  EXPECT_EQ(got.shape, expected.shape);
  EXPECT_TRUE(std::ranges::equal(got.data, expected.data));
}

// Sizes and hashes of what the reference writer of the serving contract makes.
TEST(TorchArchive, HasTheBytesOfTheReference) {
  const Bytes zeros(300'000);
  const auto check = [&](const StoredTensor& tensor, std::size_t size, const char* expected) {
    const Bytes bytes = written(write_torch, tensor);
    EXPECT_EQ(bytes.size(), size);
    EXPECT_EQ(hash(bytes), expected) << size;
  };
  check(tensor(StoredType::kBFloat16, {2, 3}, std::span(zeros).first(12)), 654,
        "d5d71fd9c496900e6e1a2e6f3d55f7790f6ebe6a2fa39f4a14dcaaa6cf52ae15");
  check(stored_grid({1, 52, 92}), 718,
        "3c33cb3d5a3efc9ad9fd4572f83e6e530a8ddc3196dfc673f7a9cf14e025d015");
  check(tensor(StoredType::kFloat32, {2, 3}, kCounting), 718,
        "ea6fdf5517dbe5a4ac367a9fe29091fe59d706354490e462ead8f1ad58773963");
  check(tensor(StoredType::kFloat16, {300, 256}, std::span(zeros).first(153'600)), 154'254,
        "1db349db2209e6c917d72410b1c0d8535e790c9996c53ffd88b424c7876d7052");
  check(tensor(StoredType::kFloat32, {70'000, 1}, std::span(zeros).first(280'000)), 280'654,
        "86a97392d3191d88790cce246131359a37fedccd1266b02fef8298c63126cc4e");
}

TEST(Npy, HasTheBytesOfTheReference) {
  const Bytes zeros(153'600);
  const auto check = [&](const StoredTensor& tensor, const char* expected) {
    EXPECT_EQ(hash(written(write_npy, tensor)), expected);
  };
  check(tensor(StoredType::kFloat32, {2, 3}, kCounting),
        "038de500e2e6135238bd6e384d38cc9f8e64a0360f634fb6e032e9f52081061b");
  check(tensor(StoredType::kFloat16, {300, 256}, zeros),
        "9b140dc7f2d6179afc879b29c1b51c1199996e02062b5857312466953f4146f3");
  check(stored_grid({1, 52, 92}),
        "dc77deeafebf22c7969df812bf6931989f32d2c79703706bf2cfe9762f95c7d2");
}

TEST(SafetensorsInMemory, HasTheBytesOfTheReference) {
  const auto check = [](const StoredTensor& tensor, const auto& metadata, const char* expected) {
    EXPECT_EQ(hash(in_memory([&](const ByteSink& sink) {
                write_safetensors({&tensor, 1}, metadata, sink);
              })),
              expected);
  };
  const Bytes zeros(12);
  StoredTensor cache = tensor(StoredType::kBFloat16, {2, 3}, zeros);
  cache.name = "ec_cache";
  using Metadata = std::map<std::string, std::string>;
  check(cache, Metadata{}, "60a845e1358746f645d7d5b6ebc7f8f4899dce7dcf69cb957edc2d5a0607782f");
  check(tensor(StoredType::kFloat32, {2, 3}, kCounting), Metadata{{"format", "pt"}},
        "4bf450444e94da4b17c3eb5b4c219e61c66977cce86891762e9eba4dbf3126a3");
}

TEST(SafetensorsInMemory, HasTheBytesOfTheFile) {
  Embedding item;
  item.rows = 2;
  item.width = 3;
  item.data = RowBytes(kCounting);
  item.grid_thw = {1, 4, 2};
  Embedding failed;
  failed.error = Error(ErrorCode::kCorruptData, "broken");
  const std::vector<Embedding> items{item, failed};
  const test::TemporaryDirectory folder;
  save_safetensors(folder / "rows.st", items, {{"a", "b"}});
  const std::vector<std::uint8_t> file = read_file(folder / "rows.st", 1 << 20);
  const Bytes bytes = in_memory([&](const ByteSink& sink) {
    write_safetensors(items, {{"a", "b"}}, sink);
  });
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(file))));
  const std::vector<StoredTensor> tensors = read_safetensors(bytes, "rows");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "item_0.grid_thw");
  EXPECT_EQ(tensors[1].name, "item_0");
  expect_equal(tensors[1], stored_rows(item));
}

struct Format {
  Writer writer;
  ReaderOf reader;
};

TEST(RowFormats, ReadWhatTheyWrite) {
  for (const Format format : {Format{write_torch, read_torch}, Format{write_npy, read_npy}}) {
    test::for_all(100, [&](std::mt19937_64& random) {
      constexpr StoredType kTypes[] = {StoredType::kFloat32, StoredType::kFloat16,
                                       StoredType::kInt64, StoredType::kBFloat16};
      const auto last = format.writer == write_npy ? 2 : 3;
      const StoredType type = kTypes[test::uniform(random, 0, last)];
      Sizes shape(static_cast<std::size_t>(test::uniform(random, 0, 5)));
      for (std::int64_t& size : shape) size = test::uniform(random, 0, 9);
      const std::int64_t count =
          std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
      constexpr std::size_t kElementBytes[] = {4, 2, 2, 8};  // by StoredType
      Bytes data(static_cast<std::size_t>(count) * kElementBytes[static_cast<int>(type)]);
      for (std::byte& byte : data) byte = static_cast<std::byte>(random());
      const StoredTensor stored = tensor(type, shape, data);
      const Bytes file = written(format.writer, stored);
      expect_equal(format.reader(file, "file"), stored);
    });
  }
}

TEST(RowFormats, ReadWhatPyTorchAndNumpyWrite) {
  const Bytes torch = corpus("torch_archive/of_pytorch");
  expect_equal(read_torch(torch, "t"), tensor(StoredType::kFloat32, {2, 3}, kCounting));
  const Bytes part = corpus("torch_archive/of_pytorch_with_offset");
  const Bytes expected = bytes_of<float>({2, 3, 4, 5, 6, 7});
  expect_equal(read_torch(part, "t"), tensor(StoredType::kFloat32, {6}, expected));
  const Bytes numpy = corpus("npy/of_numpy");
  expect_equal(read_npy(numpy, "n"), tensor(StoredType::kFloat32, {2, 3}, kCounting));
  const Bytes line = corpus("npy/of_numpy_one_dimension");
  const Bytes three = bytes_of<std::int64_t>({0, 1, 2});
  expect_equal(read_npy(line, "n"), tensor(StoredType::kInt64, {3}, three));
  const Bytes newer = corpus("npy/version_2");
  EXPECT_EQ(read_npy(newer, "n").shape, Sizes{2});
}

TEST(RowFormats, RefuseWhatIsNoTensorOfTheirs) {
  struct Case {
    const char* file;
    ErrorCode code;
    const char* message;
  };
  const Case cases[] = {
      {"torch_archive/transposed", ErrorCode::kUnsupported, "one after the other"},
      {"torch_archive/dictionary", ErrorCode::kUnsupported, "something else than one tensor"},
      {"torch_archive/float64", ErrorCode::kUnsupported, "another element type"},
      {"torch_archive/compressed", ErrorCode::kUnsupported, "compressed"},
      {"torch_archive/truncated", ErrorCode::kCorruptData, "its end is missing"},
      {"torch_archive/wrong_checksum", ErrorCode::kCorruptData, "checksum"},
      {"torch_archive/huge_shape", ErrorCode::kCorruptData, "beyond its 24 bytes"},
      {"torch_archive/no_elements", ErrorCode::kCorruptData, "without data/0"},
      {"npy/fortran", ErrorCode::kUnsupported, "Fortran"},
      {"npy/big_endian", ErrorCode::kUnsupported, "got >f4"},
      {"npy/objects", ErrorCode::kUnsupported, "got |O"},
      {"npy/truncated", ErrorCode::kCorruptData, "does not have the 23 bytes"},
      {"npy/huge_shape", ErrorCode::kCorruptData, "does not have the 24 bytes"},
      {"npy/long_header", ErrorCode::kCorruptData, "ends in its header"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.file);
    const Bytes file = corpus(one.file);
    const bool is_npy = std::string_view(one.file).starts_with("npy");
    test::expect_error(one.code, one.message, [&] {
      (void)(is_npy ? read_npy(file, "upload") : read_torch(file, "upload"));
    });
  }
}

TEST(RowFormats, RefuseToWriteWhatTheyCannotHold) {
  const Bytes two(2);
  test::expect_error(ErrorCode::kUnsupported, "numpy has no bfloat16",
                     [&] { (void)written(write_npy, tensor(StoredType::kBFloat16, {1}, two)); });
  for (const Writer writer : {Writer{write_npy}, Writer{write_torch}}) {
    test::expect_error(ErrorCode::kInvalidArgument, "does not have 2 bytes",
                       [&] { (void)written(writer, tensor(StoredType::kFloat32, {1}, two)); });
  }
  Embedding failed;
  failed.error = Error(ErrorCode::kCorruptData, "broken");
  test::expect_error(ErrorCode::kInvalidArgument, "failed", [&] { (void)stored_rows(failed); });
}

TEST(RowFormats, LeaveWhatASinkThrowsAsItIs) {
  const ByteSink full = [](std::span<const std::byte>) { throw std::out_of_range("full"); };
  EXPECT_THROW(write_torch(stored_grid({1, 2, 3}), full), std::out_of_range);
  EXPECT_THROW(write_npy(stored_grid({1, 2, 3}), full), std::out_of_range);
  EXPECT_THROW(write_safetensors(std::span<const Embedding>{}, {}, full), std::out_of_range);
}

}  // namespace
}  // namespace fovea
