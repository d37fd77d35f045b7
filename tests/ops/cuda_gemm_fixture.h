#pragma once

// Tests of GEMM kernels that a file of choices names.

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "device/cuda_plugin.h"
#include "ops/cuda_gemm_cases.h"
#include "support/temporary_directory.h"

namespace fovea::test {

/// A kernel, by its name in src/ops/cuda/gemm/hopper/*.cu, and the numbers of CTAs that
/// share a sum to try: even and odd parts of a tile, and the most.
struct Kernel {
  std::string name;
  std::vector<int> splits = {1};
};

/// Skipped where there is no GPU that runs our kernels.
class CudaGemmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu_with(CudaAttention::kHopper)) GTEST_SKIP() << "no GPU that runs our kernels";
    // A first GEMM makes the library write a file, which tells how this GPU is named in it.
    {
      OpFixture f(case_with_choices(folder()));
      check(f, cases().front(), operands_of(0));
    }
    const std::vector<std::string> files = list_directory(folder());
    ASSERT_EQ(files.size(), 1u);
    path_ = folder() + "/" + files.front();
    std::istringstream file(read_text(path()));
    for (std::string line; header_lines_ < 2 && std::getline(file, line); ++header_lines_)
      header_ += line + '\n';
    ASSERT_EQ(header_lines_, 2) << "no choices were kept";
  }

  [[nodiscard]] std::string folder() const { return folder_ / "made/when/needed"; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The lines of a file of choices before the first of them.
  [[nodiscard]] const std::string& header() const { return header_; }

 private:
  TemporaryDirectory folder_;
  std::string path_;  // of the file
  std::string header_;
  int header_lines_ = 0;
};

}  // namespace fovea::test
