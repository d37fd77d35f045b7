#include "ranks/transport/secret.h"

#include <gtest/gtest.h>

namespace fovea::ranks {
namespace {

TEST(Proof, IsOfOneInputAndOneSecret) {
  const ProofInput input{
      .rank = 1, .size = 2, .hub_nonce = make_nonce(), .rank_nonce = make_nonce()};
  const Proof proof = prove("secret", input);
  EXPECT_TRUE(is_equal(proof, prove("secret", input)));
  EXPECT_FALSE(is_equal(proof, prove("Secret", input)));
  ProofInput other = input;
  other.prover = Prover::kHub;
  EXPECT_FALSE(is_equal(proof, prove("secret", other))) << "or a hub could answer with it";
  other = input;
  other.rank = 2;
  EXPECT_FALSE(is_equal(proof, prove("secret", other)));
  other = input;
  other.size = 3;
  EXPECT_FALSE(is_equal(proof, prove("secret", other)));
  other = input;
  std::swap(other.hub_nonce, other.rank_nonce);
  EXPECT_FALSE(is_equal(proof, prove("secret", other)));
}

TEST(Nonce, IsAnotherEveryTime) { EXPECT_NE(make_nonce(), make_nonce()); }

}  // namespace
}  // namespace fovea::ranks
