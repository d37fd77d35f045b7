#include "ranks/transport/secret.h"

#include <gtest/gtest.h>

namespace fovea::ranks {
namespace {

TEST(Proof, IsOfOneClaimAndOneSecret) {
  const Claim claim{.rank = 1, .size = 2, .of_hub = make_nonce(), .of_rank = make_nonce()};
  const Proof proof = prove("secret", claim);
  EXPECT_TRUE(is_same(proof, prove("secret", claim)));
  EXPECT_FALSE(is_same(proof, prove("Secret", claim)));
  Claim other = claim;
  other.side = Side::kHub;
  EXPECT_FALSE(is_same(proof, prove("secret", other))) << "or a hub could answer with it";
  other = claim;
  other.rank = 2;
  EXPECT_FALSE(is_same(proof, prove("secret", other)));
  other = claim;
  other.size = 3;
  EXPECT_FALSE(is_same(proof, prove("secret", other)));
  other = claim;
  std::swap(other.of_hub, other.of_rank);
  EXPECT_FALSE(is_same(proof, prove("secret", other)));
}

TEST(Nonce, IsAnotherEveryTime) { EXPECT_NE(make_nonce(), make_nonce()); }

}  // namespace
}  // namespace fovea::ranks
