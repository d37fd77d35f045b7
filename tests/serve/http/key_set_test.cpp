#include "serve/http/key_set.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::serve {
namespace {

TEST(KeySet, HoldsTheKeysItWasMadeOf) {
  std::vector<std::string> keys;
  keys.reserve(1000);
  for (int i = 0; i < 1000; ++i) keys.push_back("key " + std::to_string(i));
  const KeySet set(keys);
  for (const std::string& key : keys) EXPECT_TRUE(set.contains(key)) << key;
  for (const char* key : {"", "key", "key 1000", "key 10 ", "KEY 1"}) {
    EXPECT_FALSE(set.contains(key)) << key;
  }
}

TEST(KeySet, IsEmptyWithoutKeys) {
  EXPECT_TRUE(KeySet().empty());
  EXPECT_TRUE(KeySet(std::vector<std::string>()).empty());
  EXPECT_FALSE(KeySet({"a"}).empty());
  EXPECT_FALSE(KeySet().contains(""));
}

TEST(KeySet, RefusesAnEmptyKey) {
  fovea::test::expect_error(ErrorCode::kInvalidArgument, "an API key is empty", [] {
    (void)KeySet({"a", ""});
  });
}

}  // namespace
}  // namespace fovea::serve
