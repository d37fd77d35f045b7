#include "serve/text/percent.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(PercentDecoded, ReplacesEscapes) {
  EXPECT_EQ(percent_decoded("a%2Fb%2f%00+"), std::string("a/b/\0+", 6));
  EXPECT_EQ(percent_decoded(""), "");
  EXPECT_EQ(percent_decoded("%61%C3%a9"), "a\xc3\xa9");
  for (const char* broken : {"%", "%4", "%4g", "%-1", "a%"})
    EXPECT_EQ(percent_decoded(broken), std::nullopt) << broken;
}

}  // namespace
}  // namespace fovea::serve
