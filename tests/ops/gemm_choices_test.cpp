// The file of measured GEMM choices, without a GPU: kernels are stand-ins of this test.
#include "ops/cuda/gemm/choice_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cuda/gemm/hopper/hopper_gemm.h"
#include "support/temporary_directory.h"

namespace fovea::cuda {

namespace {

constexpr HopperGemmKernel kKernel{.name = "128x64 by 2x1 split", .split = true};

}  // namespace

// The plugin's own kernels need a GPU to be compiled for.
const HopperGemmKernel* HopperGemm::find_kernel(const std::string& name) {
  return name == kKernel.name ? &kKernel : nullptr;
}
bool HopperGemm::is_possible(const HopperGemmPlan& plan, const GemmKey& key) {
  return plan.kernel != nullptr && plan.splits <= 4 && key.head_dim == 0;
}

namespace {

using Way = GemmChoice::Way;

const std::string kIdentity = "a GPU, software of some version";

GemmKey key_of_rows(std::int64_t rows) {
  return {.in_features = 1152,
          .out_features = 4304,
          .out_stride = 4400,
          .activation = 1,
          .bias = true,
          .residual = false,
          .head_dim = 0,
          .format = 0,
          .alignment = 16,
          .rows = rows};
}

class GemmChoicesTest : public ::testing::Test {
 protected:
  void save(const std::map<GemmKey, GemmChoice>& choices) const {
    save_gemm_choices(path(), kIdentity, choices);
  }
  [[nodiscard]] std::map<GemmKey, GemmChoice> load() const {
    return load_gemm_choices(path(), kIdentity);
  }
  /// A choice by kKernel with so many splits.
  [[nodiscard]] static GemmChoice own(int splits) {
    return {.way = Way::kOwn, .own = {&kKernel, splits}};
  }
  [[nodiscard]] std::string path() const { return folder_ / "made/when/needed.txt"; }

  test::TemporaryDirectory folder_;
};

TEST_F(GemmChoicesTest, AKernelOfOursComesBackWithItsSplits) {
  save({{key_of_rows(64), own(3)}, {key_of_rows(640), own(2)}});
  const auto choices = load();
  ASSERT_EQ(choices.size(), 2u);
  const GemmChoice& choice = choices.at(key_of_rows(64));
  EXPECT_EQ(choice.way, Way::kOwn);
  EXPECT_EQ(choice.own.kernel, &kKernel);
  EXPECT_EQ(choice.own.splits, 3);
  EXPECT_EQ(choices.at(key_of_rows(640)).own.splits, 2);
}

TEST_F(GemmChoicesTest, AnAlgorithmOfTheLibraryComesBackWordForWordAndOfNoRows) {
  GemmChoice choice{.way = Way::kLibrary, .rows = 4096};
  std::uint64_t word = 0x0123456789abcdef;
  for (auto& data : choice.algorithm.data) data = word++;
  save({{key_of_rows(4096), choice}});
  const GemmChoice loaded = load().at(key_of_rows(4096));
  EXPECT_EQ(loaded.way, Way::kLibrary);
  EXPECT_EQ(loaded.rows, 0) << "the library is asked before it is used";
  EXPECT_TRUE(std::ranges::equal(loaded.algorithm.data, choice.algorithm.data));
}

TEST_F(GemmChoicesTest, AnUnfusedGemmComesBack) {
  save({{key_of_rows(7), {.way = Way::kUnfused}}});
  EXPECT_EQ(load().at(key_of_rows(7)).way, Way::kUnfused);
}

TEST_F(GemmChoicesTest, AGuessIsNotKept) {
  GemmChoice guess = own(1);
  guess.is_measured = false;
  save({{key_of_rows(64), guess}});
  EXPECT_TRUE(load().empty());
}

TEST_F(GemmChoicesTest, ChoicesOfAnotherGpuOrSoftwareAreNotRead) {
  save({{key_of_rows(64), own(1)}});
  EXPECT_TRUE(load_gemm_choices(path(), kIdentity + " two").empty());
}

TEST_F(GemmChoicesTest, AFileOfAnotherFormatIsNotRead) {
  save({{key_of_rows(64), own(1)}});
  std::string text = test::read_text(path());
  const std::size_t number = text.find('\n') - 1;
  text[number] = static_cast<char>(text[number] - 1);
  test::write_text(path(), text);
  EXPECT_TRUE(load().empty());
}

TEST_F(GemmChoicesTest, DamagedLinesAreLeftOutAndTheOthersRead) {
  save({{key_of_rows(64), own(1)}});
  const std::string text = test::read_text(path());
  const std::string line = text.substr(text.rfind('\n', text.size() - 2) + 1);
  const std::string numbers = line.substr(0, line.find("own"));
  test::write_text(path(), text + "65" + numbers.substr(2) + "own 1 no such kernel\n" + "66" +
                               numbers.substr(2) + "own 5 128x64 by 2x1 split\n" + "67" +
                               numbers.substr(2) + "library 1 2 3\n" + "68 1152\n" + "69" +
                               numbers.substr(2) + "own 2 128x64 by 2x1 split\n");
  const auto choices = load();
  EXPECT_EQ(choices.size(), 2u);
  EXPECT_TRUE(choices.contains(key_of_rows(64)));
  EXPECT_TRUE(choices.contains(key_of_rows(69)));
}

TEST_F(GemmChoicesTest, WithoutAPathNothingIsKept) {
  save_gemm_choices("", kIdentity, {{key_of_rows(64), own(1)}});
  EXPECT_TRUE(load_gemm_choices("", kIdentity).empty());
  EXPECT_EQ(folder_.entries(), 0u);
}

}  // namespace
}  // namespace fovea::cuda
