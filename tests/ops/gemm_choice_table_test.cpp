// What GEMMs take for row counts that were measured and that were not, without a GPU.
#include "ops/cuda/gemm/choice_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "support/temporary_directory.h"

namespace fovea::cuda {
namespace {

constexpr std::int64_t kGuess = -1;

GemmKey key_of(std::int64_t rows, std::int64_t out_features = 4304) {
  return {.in_features = 1152,
          .out_features = out_features,
          .out_stride = out_features,
          .activation = 1,
          .bias = true,
          .residual = false,
          .head_dim = 0,
          .format = 0,
          .alignment = 16,
          .rows = rows};
}

/// A choice that can be told from others.
GemmChoice choice_of(std::int64_t number) {
  return {.way = GemmChoice::Way::kUnfused, .rows = number};
}

class GemmChoiceTableTest : public ::testing::Test {
 protected:
  void keep(std::initializer_list<std::int64_t> all_rows) {
    for (const std::int64_t rows : all_rows) table.keep(key_of(rows), choice_of(rows));
  }
  /// The row count whose choice is taken, or kGuess.
  std::int64_t take(const GemmKey& key, const std::function<bool(const GemmChoice&)>& fits) {
    const auto guess = [&] {
      ++guesses;
      return choice_of(kGuess);
    };
    return table.take(key, {.fits = fits, .cost = cost, .guess = guess}).rows;
  }
  std::int64_t take(std::int64_t rows) {
    return take(key_of(rows), [&](const GemmChoice&) {
      ++fits_asked;
      return true;
    });
  }

  GemmChoiceTable table{"", "some GPU"};
  /// Knows nothing, unless a test says so.
  std::function<std::optional<double>(const GemmChoice&)> cost = [](const GemmChoice&) {
    return std::nullopt;
  };
  int guesses = 0;
  int fits_asked = 0;
};

TEST_F(GemmChoiceTableTest, AMeasuredRowCountTakesItsOwnChoice) {
  keep({64, 128, 256});
  EXPECT_EQ(take(64), 64);
  EXPECT_EQ(take(128), 128);
  EXPECT_EQ(table.find(key_of(256))->rows, 256);
  EXPECT_FALSE(table.find(key_of(200)));
}

TEST_F(GemmChoiceTableTest, OthersTakeTheNearestByRatio) {
  keep({128, 256, 512});
  EXPECT_EQ(take(129), 128);
  EXPECT_EQ(take(181), 128);  // 181 / 128 = 1.414, 256 / 181 = 1.4144
  EXPECT_EQ(take(182), 256);
  EXPECT_EQ(take(300), 256);
  EXPECT_EQ(take(700), 512);
  EXPECT_EQ(take(100), 128);
  EXPECT_EQ(guesses, 0);
}

TEST_F(GemmChoiceTableTest, WhatIsTooFarOffIsAGuess) {
  EXPECT_EQ(take(100), kGuess);
  keep({128});
  EXPECT_EQ(take(64), 128);
  EXPECT_EQ(take(63), kGuess);
  EXPECT_EQ(take(256), 128);
  EXPECT_EQ(take(257), kGuess);
}

TEST_F(GemmChoiceTableTest, ManyRowsServeAllThatAreMore) {
  keep({4096});
  EXPECT_EQ(take(8192), 4096);
  EXPECT_EQ(take(1'000'000), 4096);
  EXPECT_EQ(take(2047), kGuess);
  keep({16384});
  EXPECT_EQ(take(1'000'000), 16384);
  EXPECT_EQ(take(7000), 4096);
}

TEST_F(GemmChoiceTableTest, ChoicesOfOtherGemmsDoNotCount) {
  table.keep(key_of(100, 1152), choice_of(1));
  table.keep(key_of(100, 8608), choice_of(2));
  EXPECT_EQ(take(100), kGuess);
  keep({200});
  EXPECT_EQ(take(100), 200);
}

TEST_F(GemmChoiceTableTest, WhatDoesNotFitIsPassedOver) {
  keep({100, 120, 140, 200});
  const auto only = [](std::int64_t rows) {
    return [rows](const GemmChoice& choice) { return choice.rows == rows; };
  };
  EXPECT_EQ(take(key_of(130), only(200)), 200);
  EXPECT_EQ(take(key_of(131), only(100)), 100);
  EXPECT_EQ(take(key_of(120), only(140)), 140) << "its own choice need not fit either";
  EXPECT_EQ(take(key_of(132), only(-7)), kGuess);
}

TEST_F(GemmChoiceTableTest, AGuessForWantOfMemoryServesItsOwnRowsAlone) {
  GemmChoice guess = choice_of(100);
  guess.is_measured = false;
  table.keep(key_of(100), guess);
  EXPECT_EQ(take(100), 100);
  EXPECT_EQ(take(101), kGuess);
}

TEST_F(GemmChoiceTableTest, AnswersStayUntilSomethingIsMeasured) {
  keep({128});
  EXPECT_EQ(take(150), 128);
  EXPECT_EQ(take(1000), kGuess);
  const int asked = fits_asked;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(take(150), 128);
    EXPECT_EQ(take(1000), kGuess);
  }
  EXPECT_EQ(fits_asked, asked) << "a GEMM of every block would ask the library";
  EXPECT_EQ(guesses, 1);
  keep({160, 900});
  EXPECT_EQ(take(150), 160);
  EXPECT_EQ(take(1000), 900);
}

TEST_F(GemmChoiceTableTest, ManySizesDoNotPileUp) {
  keep({128});
  for (std::int64_t rows = 1; rows <= 10'000; ++rows) (void)take(rows);
  const int before = guesses;
  EXPECT_EQ(take(1), kGuess);
  EXPECT_EQ(guesses, before + 1) << "the first of them is still remembered";
  EXPECT_EQ(take(150), 128);
}

TEST_F(GemmChoiceTableTest, OfTwoNeighboursTheNearerIsTakenUnlessItCostsClearlyMore) {
  keep({128, 256});
  const auto costs = [&](double of_128, double of_256) {
    cost = [=](const GemmChoice& choice) { return choice.rows == 128 ? of_128 : of_256; };
    keep({128});  // forgets what was taken
  };
  costs(104, 100);
  EXPECT_EQ(take(140), 128);
  costs(106, 100);
  EXPECT_EQ(take(140), 256) << "a wave of tiles more";
  costs(100, 106);
  EXPECT_EQ(take(240), 128);
  costs(100, 104);
  EXPECT_EQ(take(240), 256);
  costs(1, 1000);
  EXPECT_EQ(take(256), 256) << "what was measured is not modelled";
  EXPECT_EQ(take(300), 256) << "the only neighbour";
  cost = [](const GemmChoice& choice) {
    return choice.rows == 128 ? std::optional(1.0) : std::nullopt;
  };
  keep({128});
  EXPECT_EQ(take(240), 256) << "the library has no model";
}

TEST_F(GemmChoiceTableTest, ALibraryThatRefusesToGuessLeavesNoAnswerBehind) {
  const auto fits = [](const GemmChoice&) { return true; };
  const auto refuse = []() -> GemmChoice { throw 1; };
  EXPECT_THROW((void)table.take(key_of(5), {.fits = fits, .cost = cost, .guess = refuse}), int);
  EXPECT_EQ(take(5), kGuess);
}

TEST(GemmChoiceFile, IsWrittenAtTheFirstChoiceAndAtTheEnd) {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "choices.txt";
  {
    GemmChoiceTable table(path, "some GPU");
    table.keep(key_of(64), choice_of(64));
    EXPECT_TRUE(GemmChoiceTable(path, "some GPU").find(key_of(64)));
    table.keep(key_of(128), choice_of(128));
  }
  const GemmChoiceTable next(path, "some GPU");
  EXPECT_TRUE(next.find(key_of(64)));
  EXPECT_TRUE(next.find(key_of(128)));
  EXPECT_FALSE(GemmChoiceTable(path, "another GPU").find(key_of(64)));
}

}  // namespace
}  // namespace fovea::cuda
