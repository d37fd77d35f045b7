#include "serve/media/local_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "fovea/error.h"
#include "serve/api_error.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = 1000;

/// A folder with files that may be read, beside one that may not.
class LocalFilesTest : public ::testing::Test {
 protected:
  LocalFilesTest() {
    fs::create_directories(base_ / "media/inner");
    test::write_text(base_ / "media/a.png", "picture");
    test::write_text(base_ / "media/inner/b c.png", "inner");
    test::write_text(base_ / "secret", "secret");
    fs::create_symlink("../secret", base_ / "media/out");
    fs::create_symlink("a.png", base_ / "media/link.png");
    fs::create_directory_symlink("..", base_ / "media/up");
    fs::create_directory_symlink("inner", base_ / "media/also_inner");
    mkfifo((base_ / "media/pipe").c_str(), 0600);
  }

  [[nodiscard]] std::string url(const std::string& path) const {
    return "file://" + (base_ / path);
  }

  /// What is read of a URL, or the code of its error.
  static std::string read(const LocalFiles& files, const std::string& url) {
    try {
      const auto bytes = files.read(url, kMaxBytes, "items[0].image");
      return {bytes.begin(), bytes.end()};
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 403);
      EXPECT_EQ(error.param(), "items[0].image");
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("/fovea-test")));
      return error.code();
    }
  }

  test::TemporaryDirectory base_;
};

TEST_F(LocalFilesTest, ReadsFilesBelowItsFolder) {
  const LocalFiles files(base_ / "media");
  EXPECT_EQ(read(files, url("media/a.png")), "picture");
  EXPECT_EQ(read(files, url("media/inner/b%20c.png")), "inner");
  EXPECT_EQ(read(files, "file:" + (base_ / "media/a.png")), "picture");
  EXPECT_EQ(read(files, "FILE://localhost" + (base_ / "media/a.png")), "picture");
}

TEST_F(LocalFilesTest, RefusesAllElseInTheSameWords) {
  const LocalFiles files(base_ / "media");
  for (const std::string& text :
       {url("secret"), url("media/../secret"), url("media/%2e%2e/secret"), url("media/out"),
        url("media/up/secret"), url("media/link.png"), url("media/none.png"), url("media/inner"),
        url("media/"), url("media"), url("media/pipe"), url("media//etc/passwd"),
        url("media/a.png%00"), url("media/%zz"), std::string("file:///proc/self/environ"),
        std::string("file:a.png"), std::string("file://elsewhere/a.png"), std::string("file:"),
        std::string("file://")}) {
    EXPECT_EQ(read(files, text), "local_media_forbidden") << text;
  }
}

TEST_F(LocalFilesTest, ReadsNothingWithoutAFolder) {
  EXPECT_EQ(read(LocalFiles(""), url("media/a.png")), "local_media_forbidden");
}

TEST_F(LocalFilesTest, TakesTheFolderByEitherOfItsNames) {
  fs::create_directory_symlink("media", base_ / "named");
  const LocalFiles files((base_ / "named") + "/");
  EXPECT_EQ(read(files, url("named/a.png")), "picture");
  EXPECT_EQ(read(files, url("media/a.png")), "picture");
}

TEST_F(LocalFilesTest, ReadsOneByteTooMany) {
  test::write_text(base_ / "media/large", std::string(3 * kMaxBytes, 'x'));
  EXPECT_EQ(read(LocalFiles(base_ / "media"), url("media/large")).size(), kMaxBytes + 1);
}

TEST_F(LocalFilesTest, WantAFolder) {
  for (const std::string& folder : {base_ / "media/a.png", base_ / "none"}) {
    test::expect_error(ErrorCode::kInvalidArgument, folder, [&] { LocalFiles{folder}; });
  }
}

TEST_F(LocalFilesTest, OpenTheSameWithAndWithoutOpenat2) {
  const FileDescriptor folder(open((base_ / "media").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const std::string path : {"a.png", "inner/b c.png", "./a.png", "inner//b c.png"}) {
    EXPECT_TRUE(open_beneath(folder, path).is_open()) << path;
    EXPECT_TRUE(open_by_components(folder, path).is_open()) << path;
  }
  for (const std::string path : {"", ".", "inner", "inner/", "out", "up/secret", "link.png", "pipe",
                                 "none/a.png", "a.png/b", "/etc/passwd", "inner/../a.png"}) {
    EXPECT_FALSE(open_beneath(folder, path).is_open()) << path;
    EXPECT_FALSE(open_by_components(folder, path).is_open()) << path;
  }
  EXPECT_FALSE(open_by_components(folder, "also_inner/b c.png").is_open());  // follows no link
}

}  // namespace
}  // namespace fovea::serve
