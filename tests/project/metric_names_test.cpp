// The dashboard and the page read metrics that the server writes: a name that changed shows
// nothing.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <utility>

#include "project/tree.h"

namespace fovea::test {
namespace {

/// Texts of a file that look like names of metrics, without what histograms add to them.
std::set<std::string> metrics_of(const std::string& file, const std::string& before) {
  const std::regex name(before + "(fovea_[a-z_]+)");
  static const std::regex of_histogram("_(bucket|sum|count)$");
  const std::string text = read_text(file);
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    names.insert(std::regex_replace((*it)[1].str(), of_histogram, ""));
  }
  return names;
}

TEST(MetricNames, OfDashboardAndPageAreThoseOfTheServer) {
  std::set<std::string> written;
  for (const std::string& file : files_below("src/serve", {".cpp"}))
    written.merge(metrics_of(file, "\""));
  for (const auto& [file, before] : {std::pair("packaging/grafana.json", "\\b"),
                                     std::pair("src/serve/routes/admin/page.html", "'")}) {
    const std::set<std::string> read = metrics_of(file, before);
    EXPECT_FALSE(read.empty()) << file;
    for (const std::string& name : read)
      EXPECT_TRUE(written.contains(name)) << file << ": " << name;
  }
}

}  // namespace
}  // namespace fovea::test
