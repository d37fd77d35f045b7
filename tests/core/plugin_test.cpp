#include "core/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace fovea {
namespace {

// Any shared object serves as a plugin here; the C library's mathematics is always there.
constexpr const char* kLibrary = "libm.so.6";

TEST(FindPlugin, GivesNothingForAnUnknownFile) { EXPECT_EQ(find_plugin("libno_such.so"), ""); }

TEST(LoadPluginEntry, GivesAFunctionThatCanBeCalled) {
  const PluginEntry entry = load_plugin_entry(kLibrary, "floor");
  ASSERT_NE(entry.function, nullptr) << entry.reason;
  EXPECT_EQ(entry.reason, "");
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(entry.function)(2.5), 2.0);
}

TEST(LoadPluginEntry, SaysThatAFileCannotBeLoaded) {
  const test::TemporaryDirectory folder;
  const PluginEntry absent = load_plugin_entry(folder / "absent.so", "entry");
  EXPECT_EQ(absent.function, nullptr);
  EXPECT_THAT(absent.reason, ::testing::StartsWith("cannot be loaded: "));
  test::write_text(folder / "text.so", "not a shared object");
  EXPECT_THAT(load_plugin_entry(folder / "text.so", "entry").reason,
              ::testing::StartsWith("cannot be loaded: "));
}

TEST(LoadPluginEntry, SaysThatALibraryIsNoPlugin) {
  const PluginEntry entry = load_plugin_entry(kLibrary, "fovea_no_such_entry");
  EXPECT_EQ(entry.function, nullptr);
  EXPECT_THAT(entry.reason, ::testing::StartsWith("libm.so.6 is not a Fovea plugin: "));
}

}  // namespace
}  // namespace fovea
