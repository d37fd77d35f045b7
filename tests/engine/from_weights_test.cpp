// Engines made of tensors that another loader has: the rows and the keys of the checkpoint itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "checkpoint/safetensors.h"
#include "fovea/fovea.h"
#include "fovea/tower/core/dtype.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

/// The tensors of a golden checkpoint as a caller hands them over, and a folder without them.
class EngineFromWeights : public ::testing::Test {
 protected:
  EngineFromWeights() {
    for (const char* name : {"config.json", "preprocessor_config.json",
                             "video_preprocessor_config.json", "processor_config.json"}) {
      if (fs::exists(golden_ + "/" + name)) fs::copy(golden_ + "/" + name, folder_ / name);
    }
    for (const checkpoint::TensorEntry& entry : file_.header().tensors) {
      tensors_.listings.push_back({entry.name, entry.dtype, entry.shape});
    }
    tensors_.read = [this](std::size_t index, std::span<std::byte> out) {
      reads_.insert(index);
      file_.read(names_in_file_ ? original(index) : tensors_.listings[index].name, 0, out);
    };
  }

  [[nodiscard]] const std::string& original(std::size_t index) const {
    return file_.header().tensors[index].name;
  }
  [[nodiscard]] Engine make(EngineOptions options = {}) const {
    return Engine::from_weights(folder_.path(), tensors_, with_cpu(std::move(options)));
  }
  [[nodiscard]] static EngineOptions with_cpu(EngineOptions options) {
    options.device = "cpu";
    options.num_threads = 2;
    return options;
  }
  [[nodiscard]] std::vector<MediaItem> items() const {
    return {image_file(golden_ + "/images/noise_101x61.png"),
            video_path(golden_ + "/video_frames")};
  }
  void expect_the_rows_of_the_checkpoint(Engine& engine) const {
    Engine stored = Engine::load(golden_, with_cpu({}));
    const std::vector<Embedding> expected = stored.encode(items());
    const std::vector<Embedding> rows = engine.encode(items());
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].data, expected[i].data) << i;
  }

  const std::string golden_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  const checkpoint::SafetensorsFile file_{golden_ + "/model.safetensors"};
  const test::TemporaryDirectory folder_;
  WeightTensors tensors_;
  bool names_in_file_ = false;  // whatever the listings say
  std::multiset<std::size_t> reads_;
};

TEST_F(EngineFromWeights, HasTheRowsOfTheCheckpoint) {
  Engine engine = make();
  expect_the_rows_of_the_checkpoint(engine);
  EXPECT_EQ(std::set(reads_.begin(), reads_.end()).size(), reads_.size()) << "each is read once";
}

TEST_F(EngineFromWeights, KeepsNothingOfTheCaller) {
  Engine engine = make();
  tensors_ = {};
  expect_the_rows_of_the_checkpoint(engine);
}

TEST_F(EngineFromWeights, FindsTheTowerBehindAnyPrefix) {
  names_in_file_ = true;
  for (auto& listing : tensors_.listings) listing.name = "wrapper." + listing.name;
  Engine engine = make();
  expect_the_rows_of_the_checkpoint(engine);
}

TEST_F(EngineFromWeights, ReadsOnlyTheTower) {
  tensors_.listings.push_back({"audio.weight", "int4", {-1, 7}});
  Engine engine = make({.encoder_cache_bytes = 1 << 20});
  expect_the_rows_of_the_checkpoint(engine);
  EXPECT_FALSE(reads_.contains(tensors_.listings.size() - 1));
}

TEST_F(EngineFromWeights, SharesThemAmongReplicas) {
  Engine engine = make({.data_parallel_size = 2});
  expect_the_rows_of_the_checkpoint(engine);
  EXPECT_EQ(std::set(reads_.begin(), reads_.end()).size(), reads_.size());
}

TEST_F(EngineFromWeights, HasTheKeysOfTheBitsOfAllWeights) {
  const auto key = [&](Engine engine) { return engine.encode(items()).front().key; };
  const EngineOptions cached = with_cpu({.encoder_cache_bytes = 1 << 20});
  const std::string expected = key(Engine::load(golden_, cached));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(key(make(cached)), expected);
  const auto read = tensors_.read;
  const std::size_t last = *reads_.rbegin();
  tensors_.read = [&](std::size_t index, std::span<std::byte> out) {
    read(index, out);
    if (index == last) out[0] ^= std::byte{1};
  };
  EXPECT_NE(key(make(cached)), expected);
}

/// A matrix in E4M3, and what it stands for.
struct ScaledMatrix {
  std::string suffix;  ///< of the name of its scales
  std::vector<std::int64_t> scale_shape;
  std::vector<float> scales;
  std::vector<std::uint8_t> bits;
  std::vector<float> values;
};

enum class ScaleFor : std::uint8_t { kRow, kBlock, kAll };

/// Rounds a matrix to E4M3 with scales that say nothing about its numbers.
ScaledMatrix round_to_e4m3(std::vector<float> values, std::int64_t cols, ScaleFor what) {
  const std::int64_t rows = std::ssize(values) / cols;
  const std::int64_t height = what == ScaleFor::kRow ? 1 : what == ScaleFor::kBlock ? 128 : rows;
  const std::int64_t width = what == ScaleFor::kBlock ? 128 : cols;
  const std::int64_t across = (cols + width - 1) / width;
  const std::int64_t down = (rows + height - 1) / height;
  ScaledMatrix m{.suffix = what == ScaleFor::kBlock ? "_scale_inv" : "_scale",
                 .scale_shape = {down, across},
                 .values = std::move(values)};
  if (what == ScaleFor::kAll) m.scale_shape = {};
  for (std::int64_t i = 0; i < down * across; ++i)
    m.scales.push_back(0.001f * static_cast<float>(i + 3));
  for (std::int64_t at = 0; at < rows * cols; ++at) {
    const std::int64_t block = at / cols / height * across + at % cols / width;
    const float scale = m.scales[static_cast<std::size_t>(block)];
    float& value = m.values[static_cast<std::size_t>(at)];
    m.bits.push_back(f32_to_e4m3(value / scale));
    value = e4m3_to_f32(m.bits.back()) * scale;
  }
  return m;
}

/// Tensors in memory, as a caller has them or in a file.
class TensorsInMemory {
 public:
  template <class Number>
  void add(const std::string& name, const std::string& dtype,
           const std::vector<std::int64_t>& shape, const std::vector<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    tensors_.listings.push_back({name, dtype, shape});
    data_.emplace_back(bytes.begin(), bytes.end());
  }
  /// As long as this object lives.
  [[nodiscard]] WeightTensors handed_over() const {
    WeightTensors tensors = tensors_;
    tensors.read = [this](std::size_t index, std::span<std::byte> out) {
      std::ranges::copy(data_.at(index), out.begin());
    };
    return tensors;
  }
  void write(const std::string& path) const {
    std::vector<checkpoint::OutputTensor> stored;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const auto& [name, dtype, shape] = tensors_.listings[i];
      const auto layout = checkpoint::layout_of(path, name, dtype, shape);
      stored.push_back({name, {data_[i].data(), layout.dtype, layout.shape}});
    }
    checkpoint::write_safetensors(path, stored, {});
  }

 private:
  WeightTensors tensors_;
  std::vector<std::vector<std::byte>> data_;
};

TEST_F(EngineFromWeights, MultipliesMatricesOfE4M3ByTheirScales) {
  TensorsInMemory scaled;
  TensorsInMemory multiplied;
  int matrices = 0;
  for (std::size_t i = 0; i < tensors_.listings.size(); ++i) {
    const auto& [name, dtype, shape] = tensors_.listings[i];
    const checkpoint::TensorLayout layout = file_.layout(name);
    std::vector<std::byte> bytes(layout.bytes());
    tensors_.read(i, bytes);
    if (shape.size() != 2 || name.find("blocks.") == std::string::npos) {
      for (TensorsInMemory* const all : {&scaled, &multiplied}) all->add(name, dtype, shape, bytes);
      continue;
    }
    std::vector<float> values(static_cast<std::size_t>(layout.shape.elements()));
    widen_to_f32(layout.dtype, bytes.data(), values.data(), values.size());
    const auto what = static_cast<ScaleFor>(matrices++ % 3);
    const ScaledMatrix m = round_to_e4m3(std::move(values), shape[1], what);
    scaled.add(name, "F8_E4M3", shape, m.bits);
    scaled.add(name + m.suffix, "F32", m.scale_shape, m.scales);
    multiplied.add(name, "F32", shape, m.values);
  }
  ASSERT_GE(matrices, 6);
  const auto rows_of = [&](const TensorsInMemory& tensors) {
    tensors_ = tensors.handed_over();
    return make().encode(items());
  };
  const std::vector<Embedding> expected = rows_of(multiplied);
  const std::vector<Embedding> of_caller = rows_of(scaled);
  scaled.write(folder_ / "model.safetensors");
  const std::vector<Embedding> of_file = Engine::load(folder_.path(), with_cpu({})).encode(items());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(of_caller[i].data, expected[i].data) << i;
    EXPECT_EQ(of_file[i].data, expected[i].data) << i;
  }
}

TEST_F(EngineFromWeights, NamesAllThatIsMissingOrMisshapenInOneError) {
  Engine engine = make();
  std::vector<std::size_t> used(reads_.begin(), reads_.end());
  ASSERT_GE(used.size(), 8);
  const std::string missing = tensors_.listings[used[5]].name;
  const std::string misshapen = tensors_.listings[used[6]].name;
  const std::string wrong_type = tensors_.listings[used[7]].name;
  tensors_.listings[used[5]].name = "gone";
  tensors_.listings[used[6]].shape.push_back(2);
  tensors_.listings[used[7]].dtype = "float8_e4m3fn";
  for (const std::string& part :
       {folder_.path() + ": checkpoint does not fit its config.json: 3 of ",
        missing + " missing, expected [", misshapen + " has shape [",
        wrong_type + " has dtype float8_e4m3fn in tensors handed over, supported are BF16"}) {
    test::expect_error(ErrorCode::kNotFound, part, [&] { (void)make(); });
  }
}

TEST_F(EngineFromWeights, SaysThatThereIsNoTower) {
  tensors_.listings = {{"lm_head.weight", "F32", {1}}};
  test::expect_error(ErrorCode::kNotFound,
                     "checkpoint holds no vision tower: none of the 1 tensors in tensors handed "
                     "over ends with",
                     [&] { (void)make(); });
}

TEST_F(EngineFromWeights, WhatTheCallerThrowsLeavesAsItIs) {
  const auto read = tensors_.read;
  for (const std::int64_t cache : {0, 1 << 20}) {
    // With a cache the last reads are those of its key, on several threads.
    reads_.clear();
    Engine engine = make({.encoder_cache_bytes = cache});
    const std::size_t all = reads_.size();
    std::size_t left = 0;
    tensors_.read = [&](std::size_t index, std::span<std::byte> out) {
      if (left-- == 0) throw std::domain_error("gone");
      read(index, out);
    };
    for (const std::size_t at : {std::size_t{0}, all / 2, all - 1}) {
      left = at;
      EXPECT_THROW((void)make({.encoder_cache_bytes = cache}), std::domain_error) << at;
    }
    tensors_.read = read;
  }
}

TEST_F(EngineFromWeights, RefusesDummyWeightsBesideThem) {
  test::expect_error(ErrorCode::kInvalidArgument, "expected either tensors or dummy weights",
                     [&] { (void)make({.dummy_weights = true}); });
}

}  // namespace
}  // namespace fovea
