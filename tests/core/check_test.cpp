#include "core/check.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/expect_error.h"
#include "support/grouped_locale.h"

namespace fovea {
namespace {

TEST(Check, JoinsThePartsOfTheMessage) {
  test::expect_error(ErrorCode::kCorruptData, "row 3 of 2.5",
                     [] { FOVEA_CHECK(1 > 2, kCorruptData, "row ", 3, " of ", 2.5); });
}

TEST(Check, EvaluatesThePartsOnFailureOnly) {
  int evaluated = 0;
  FOVEA_CHECK(true, kInternal, ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Check, NamesTheSourceLineOfInternalErrorsOnly) {
  test::expect_error(ErrorCode::kInternal,
                     "check_test.cpp:", [] { FOVEA_CHECK(false, kInternal, "broken"); });
  try {
    FOVEA_CHECK(false, kIo, "disk");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "disk");
  }
}

TEST(Check, WritesNumbersAlikeInEveryLocale) {
  const test::GroupedLocale locale;
  EXPECT_EQ(cat(1234567, " of ", 2.5, " at /proc/self/fd/", 1000),
            "1234567 of 2.5 at /proc/self/fd/1000");
}

TEST(Shortened, KeepsBothEndsOfALongText) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("abcdefghij", 7), "ab...ij");
  EXPECT_EQ(shortened("abcdefghij", 8), "abc...ij");
  EXPECT_EQ(shortened("abcdefghij", 3), "...");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("aöööööööööz", 8), "aö...z");
  EXPECT_EQ(shortened(std::string(100, '\x80'), 9).size(), 3u) << "no start of a character";
}

TEST(Error, KeepsBothEndsOfALongMessage) {
  const std::string name(20'000'000, 'n');
  try {
    FOVEA_CHECK(false, kCorruptData, "model: tensor ", name, ": expected F32");
  } catch (const Error& error) {
    const std::string_view message = error.what();
    EXPECT_EQ(message.size(), kMaxMessageBytes);
    EXPECT_TRUE(message.starts_with("model: tensor nnn"));
    EXPECT_TRUE(message.ends_with("nnn: expected F32"));
  }
}

TEST(ErrorCodes, HaveDistinctNames) {
  const auto last = static_cast<int>(ErrorCode::kInternal);
  std::set<std::string> names;
  for (int code = 0; code <= last; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last + 1));
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace fovea
