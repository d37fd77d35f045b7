// What docs/architecture.md says about the seams: functions are virtual there and nowhere else.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "project/tree.h"

namespace fovea::test {
namespace {

/// The headers that may declare virtual functions.
/// Source: docs/architecture.md, "The seams".
const std::set<std::string> kSeams{"include/fovea/communicator.h",
                                   "include/fovea/log.h",
                                   "include/fovea/tower/device/device.h",
                                   "include/fovea/tower/models/encoder_graph_model.h",
                                   "include/fovea/tower/models/item_processor.h",
                                   "src/ops/kernels.h",
                                   "src/rows/shared/row_place.h"};

TEST(Seams, AloneDeclareVirtualFunctions) {
  static const std::regex declaration(R"(^\s*(\[\[nodiscard\]\]\s*)?virtual\s)");
  for (const std::string folder : {"include", "src", "apps"}) {
    for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      for (const std::string& line : read_lines(file)) {
        if (!std::regex_search(line, declaration)) continue;
        EXPECT_TRUE(kSeams.contains(file)) << file << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace fovea::test
