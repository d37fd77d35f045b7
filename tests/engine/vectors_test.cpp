// Vectors of encoders for retrieval: where there are none.
#include <gtest/gtest.h>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

TEST(VectorOptions, AreRefusedWhereThereAreNoVectors) {
  const std::string qwen = test::golden_folder("qwen2_vl", "config.json");
  test::expect_error(ErrorCode::kUnsupported,
                     "vectors: family qwen2_vl makes rows for a language model, and no vector of "
                     "an image",
                     [&] { (void)plan(qwen, {}, {.device = "cpu", .vectors = true}); });
  test::expect_error(ErrorCode::kInvalidArgument, "normalize_vectors: expected vectors, too",
                     [&] { (void)inspect(qwen, {.device = "cpu", .normalize_vectors = true}); });
}

}  // namespace
}  // namespace fovea
