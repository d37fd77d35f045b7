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

/// The file that a first GEMM makes the library write, and the lines of it before the choices,
/// which tell how a GPU with so many SMs is named in it.
struct ChoicesFile {
  std::string path;
  std::string header;
};
inline ChoicesFile first_choices(const std::string& folder, int sm_budget = 0) {
  {
    OpFixture f(case_with_choices(folder, sm_budget));
    check(f, cases().front(), operands_of(0));
  }
  const std::vector<std::string> files = list_directory(folder);
  ChoicesFile first;
  EXPECT_EQ(files.size(), 1u);
  if (files.empty()) return first;
  first.path = folder + "/" + files.front();
  std::istringstream file(read_text(first.path));
  int lines = 0;
  for (std::string line; lines < 2 && std::getline(file, line); ++lines)
    first.header += line + '\n';
  EXPECT_EQ(lines, 2) << "no choices were kept";
  return first;
}

/// Skipped where there is no GPU that runs our kernels.
class CudaGemmTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu_with(CudaAttention::kHopper)) GTEST_SKIP() << "no GPU that runs our kernels";
    file_ = first_choices(folder());
    ASSERT_FALSE(HasFailure());
  }

  [[nodiscard]] std::string folder() const { return folder_ / "made/when/needed"; }
  [[nodiscard]] const std::string& path() const { return file_.path; }
  [[nodiscard]] const std::string& header() const { return file_.header; }

 private:
  TemporaryDirectory folder_;
  ChoicesFile file_;
};

}  // namespace fovea::test
