#include "serve/text/headers.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

TEST(FindHeader, LooksAtNoCase) {
  const Headers headers{{"Content-Type", "a"}, {"X-Other", "b"}, {"content-type", "c"}};
  ASSERT_NE(find_header(headers, "CONTENT-TYPE"), nullptr);
  EXPECT_EQ(*find_header(headers, "content-type"), "a");
  EXPECT_EQ(find_header(headers, "content-typ"), nullptr);
}

}  // namespace
}  // namespace fovea::serve
