#include "serve/server_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using test::expect_error;
using test::write_text;

TEST(KeysIn, AreLines) {
  const test::TemporaryDirectory folder;
  write_text(folder / "keys", "# a comment\n\none\r\ntwo  \nth ree");
  EXPECT_EQ(keys_in(folder / "keys"), (std::vector<std::string>{"one", "two", "th ree"}));
}

TEST(KeysIn, AreMissedWhereThereAreNone) {
  const test::TemporaryDirectory folder;
  for (const char* text : {"", "\n\n", "# one\n#two", "  \r\n"}) {
    write_text(folder / "keys", text);
    expect_error(ErrorCode::kInvalidArgument, "keys: expected an API key",
                 [&] { (void)keys_in(folder / "keys"); });
  }
}

TEST(KeysIn, ComeFromARegularFileOfBoundedSize) {
  const test::TemporaryDirectory folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder / "pipe", std::string("/dev/zero")}) {
    expect_error(ErrorCode::kIo, "not a regular file", [&] { (void)keys_in(path); });
  }
  write_text(folder / "large", std::string((std::size_t{4} << 20) + 1, 'k'));
  expect_error(ErrorCode::kInvalidArgument, "at most 4194304 are read",
               [&] { (void)keys_in(folder / "large"); });
}

TEST(ReadFiles, ReadsThoseThatAreNamed) {
  const test::TemporaryDirectory folder;
  EXPECT_TRUE(read_files({}).api_keys.empty());
  EXPECT_FALSE(read_files({}).tls);
  for (const char* name : {"keys", "cert", "key"}) write_text(folder / name, name);
  const ServerFiles files = read_files(
      {.api_keys = folder / "keys",
       .tls = TlsFiles{.certificate = folder / "cert", .key = folder / "key", .client_ca = {}}});
  EXPECT_EQ(files.api_keys, std::vector<std::string>{"keys"});
  ASSERT_TRUE(files.tls);
  EXPECT_EQ(files.tls->certificate, "cert");
  EXPECT_EQ(files.tls->key, "key");
  EXPECT_EQ(files.tls->client_ca, "");
}

}  // namespace
}  // namespace fovea::serve
