#include "core/plugin/plugin.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "support/temporary_directory.h"

namespace fovea {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The build that sample_plugin.cpp names in its note.
constexpr PluginBuild kSample{.kind = {'s', 'a', 'm', 'p', 'l', 'e'}, .interface_number = 7};

/// FOVEA_PLUGIN_DIR for one test.
class ChosenFolder {
 public:
  explicit ChosenFolder(const std::string& folder) {
    setenv("FOVEA_PLUGIN_DIR", folder.c_str(), /*replace=*/1);
  }
  ~ChosenFolder() { unsetenv("FOVEA_PLUGIN_DIR"); }
  ChosenFolder(const ChosenFolder&) = delete;
  ChosenFolder& operator=(const ChosenFolder&) = delete;
};

TEST(FindPlugin, SaysWhereItLooked) {
  const PluginFile found = find_plugin("libno_such.so");
  EXPECT_EQ(found.path, "");
  EXPECT_THAT(found.reason, StartsWith("libno_such.so is not in /"));
  EXPECT_THAT(found.reason, EndsWith("/lib/fovea"));
}

TEST(FindPlugin, LooksInTheChosenFolderAlone) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "libsome.so", "");
  const ChosenFolder chosen(folder.path());
  EXPECT_EQ(find_plugin("libsome.so").path, folder / "libsome.so");
  EXPECT_EQ(find_plugin("libother.so").reason, "libother.so is not in " + folder.path());
}

TEST(FindPlugin, RefusesARelativeFolder) {
  for (const char* folder : {"", "plugins", "./plugins", "../plugins"}) {
    const ChosenFolder chosen(folder);
    EXPECT_EQ(find_plugin("libsome.so").reason,
              "FOVEA_PLUGIN_DIR: expected an absolute path, got \"" + std::string(folder) + "\"");
  }
}

/// A copy of the sample plugin in a folder of its own, as no code of it has run yet.
class SamplePlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("FOVEA_TEST_PLUGIN_RAN");
    std::filesystem::copy_file(FOVEA_TEST_SAMPLE_PLUGIN, path_);
    allow(folder_.path(), 0755);
    allow(path_, 0755);
  }
  static void allow(const std::string& path, mode_t mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  /// Expects a refusal for `reason` before any code of the plugin has run.
  void expect_refusal(const std::string& reason, const PluginBuild& build = kSample) const {
    const PluginEntry entry = load_plugin_entry(path_, "answer", build);
    EXPECT_EQ(entry.function, nullptr);
    EXPECT_EQ(entry.reason, reason);
    EXPECT_EQ(std::getenv("FOVEA_TEST_PLUGIN_RAN"), nullptr) << "code of the plugin has run";
  }

  const test::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "sample.so";
};

TEST_F(SamplePlugin, GivesAFunctionThatCanBeCalled) {
  const PluginEntry entry = load_plugin_entry(path_, "answer", kSample);
  ASSERT_NE(entry.function, nullptr) << entry.reason;
  EXPECT_EQ(entry.reason, "");
  EXPECT_EQ(reinterpret_cast<int (*)()>(entry.function)(), 42);
  EXPECT_STREQ(std::getenv("FOVEA_TEST_PLUGIN_RAN"), "1");
}

TEST_F(SamplePlugin, OfAnotherInterfaceIsNotRun) {
  PluginBuild build = kSample;
  build.interface_number = 8;
  expect_refusal(path_ +
                     " was built for another Fovea: expected version 0.1.0 with interface 8, "
                     "got version 0.1.0 with interface 7",
                 build);
}

TEST_F(SamplePlugin, OfAnotherVersionIsNotRun) {
  PluginBuild build = kSample;
  build.version = {0, 1, 1};
  expect_refusal(path_ +
                     " was built for another Fovea: expected version 0.1.1 with interface 7, "
                     "got version 0.1.0 with interface 7",
                 build);
}

TEST_F(SamplePlugin, OfAnotherKindIsNotRun) {
  PluginBuild build = kSample;
  build.kind = {'v', 'i', 'd', 'e', 'o'};
  expect_refusal(path_ + " is not the plugin \"video\" of Fovea", build);
}

TEST_F(SamplePlugin, ThatOthersCanWriteIsNotRun) {
  allow(path_, 0757);
  expect_refusal(path_ + " is not trusted: other users can write to it");
}

TEST_F(SamplePlugin, InAFolderThatOthersCanWriteIsNotRun) {
  allow(folder_.path(), 01777);
  expect_refusal(folder_.path() + " is not trusted: other users can write to it");
}

TEST_F(SamplePlugin, OfAnotherUserIsNotRun) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(path_.c_str(), kNobody, 0), 0);
  expect_refusal(path_ +
                 " is not trusted: it belongs to user 65534, who does not own this program");
}

TEST_F(SamplePlugin, WithoutTheSymbolIsAReason) {
  const PluginEntry entry = load_plugin_entry(path_, "fovea_no_such_entry", kSample);
  EXPECT_EQ(entry.function, nullptr);
  EXPECT_THAT(entry.reason, StartsWith("cannot be used: "));
  EXPECT_THAT(entry.reason, HasSubstr("fovea_no_such_entry"));
}

TEST(LoadPluginEntry, SaysThatAFileIsAbsent) {
  const PluginEntry entry = load_plugin_entry("/nowhere/absent.so", "answer", kSample);
  EXPECT_EQ(entry.function, nullptr);
  EXPECT_EQ(entry.reason, "cannot be loaded: /nowhere/absent.so: no such file");
}

TEST(LoadPluginEntry, RefusesWhatIsNoPlugin) {
  Dl_info library{};  // the C library has notes, but not ours
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &library), 0);
  const test::TemporaryDirectory folder;
  test::write_text(folder / "text.so", "not a shared object");
  for (const std::string& path : {folder / "text.so", std::string(library.dli_fname)}) {
    EXPECT_EQ(load_plugin_entry(path, "malloc", kSample).reason,
              path + " is not the plugin \"sample\" of Fovea");
  }
}

}  // namespace
}  // namespace fovea
