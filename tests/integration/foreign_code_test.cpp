// The program runs its own code, whatever lies in and above the folder that it is started in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "integration/run_program.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A program installed in bin, and a stranger's folder to start it in.
class ForeignCode : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "installed/bin");
    fs::copy_file(FOVEA_TEST_PROGRAM, program_);
    fs::create_directories(work_ + "/fovea");  // where an argv[0] of "fovea" would lead
  }
  /// Lays something that is no shared object where the program might look for one.
  void lay(const std::string& file) const {
    fs::create_directories(fs::path(folder_ / file).parent_path());
    write_text(folder_ / file, "not a shared object");
  }
  [[nodiscard]] std::string environment() const {
    const ProgramResult result = run_fovea({"env"}, work_, "", program_);
    expect_success(result);
    return result.out;
  }

  const TemporaryDirectory folder_;
  const std::string program_ = folder_ / "installed/bin/fovea";
  const std::string work_ = folder_ / "strange/work";
};

TEST_F(ForeignCode, LibrariesOfTheWorkingFolderAreNotLoaded) {
  for (const char* library : {"libpng16.so.16", "libturbojpeg.so.0", "libwebp.so.7", "libc.so.6"})
    lay(std::string("strange/work/") + library);
  expect_success(run_fovea({"version"}, work_));
  expect_success(run_fovea({"version"}, work_, "", program_));
}

TEST_F(ForeignCode, PluginsAboveTheWorkingFolderAreNotLoaded) {
  for (const char* place : {"strange/work/lib", "strange/lib", "lib"})
    lay(std::string(place) + "/fovea/libfovea_video.so");
  EXPECT_THAT(environment(), HasSubstr("not used: libfovea_video.so is not in " + folder_.path() +
                                       "/installed/lib/fovea"));
}

TEST_F(ForeignCode, PluginsAreThoseBesideTheProgram) {
  lay("installed/lib/fovea/libfovea_video.so");
  EXPECT_THAT(environment(),
              HasSubstr("not used: " + folder_.path() +
                        "/installed/lib/fovea/libfovea_video.so is not the plugin \"video\""));
}

TEST_F(ForeignCode, PluginsOfImagesAreTheirOwn) {
  EXPECT_THAT(environment(), HasSubstr("not used: libfovea_gif.so is not in " + folder_.path()));
  lay("installed/lib/fovea/libfovea_gif.so");
  EXPECT_THAT(environment(), HasSubstr("/libfovea_gif.so is not the plugin \"gif\""));
}

TEST_F(ForeignCode, PluginsComeFromTheFolderThatTheUserChose) {
  lay("installed/lib/fovea/libfovea_video.so");
  ASSERT_EQ(setenv("FOVEA_PLUGIN_DIR", work_.c_str(), 1), 0);
  const std::string chosen = environment();
  ASSERT_EQ(setenv("FOVEA_PLUGIN_DIR", "plugins", 1), 0);
  const std::string relative = environment();
  unsetenv("FOVEA_PLUGIN_DIR");
  EXPECT_THAT(chosen, HasSubstr("not used: libfovea_video.so is not in " + work_));
  EXPECT_THAT(relative, HasSubstr("FOVEA_PLUGIN_DIR: expected an absolute path, got \"plugins\""));
}

}  // namespace
}  // namespace fovea::test
