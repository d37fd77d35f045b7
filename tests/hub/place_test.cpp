#include "hub/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "hub/fake_hub.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::hub {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using ::testing::StartsWith;

class HubPlace : public ::testing::Test {
 protected:
  /// Adds a snapshot as the libraries of the hub lay it out, and returns its directory.
  std::string add(const std::string& repository, const std::string& commit,
                  const std::string& revision = "main") {
    const fs::path folder = fs::path(environment_.cache()) / repository;
    fs::create_directories(folder / "snapshots" / commit);
    fs::create_directories((folder / "refs" / revision).parent_path());
    test::write_text(folder / "refs" / revision, commit);
    return folder / "snapshots" / commit;
  }

  test::HubEnvironment environment_;
};

TEST_F(HubPlace, ANameIsAnOrganisationAndAName) {
  for (const char* name : {"Qwen/Qwen3-VL-8B-Instruct", "a/b", "a.b/c_d"}) {
    EXPECT_TRUE(is_hub_name(name)) << name;
  }
  for (const char* path : {"model", "./Qwen/model", "/models/Qwen/model", "a/b/c", "../model", "",
                           "/", "a/", "a/..", "a/.b", "Qwen/mo del"}) {
    EXPECT_FALSE(is_hub_name(path)) << path;
    EXPECT_EQ(find_on_disk(path), std::nullopt) << path;
  }
}

TEST_F(HubPlace, ANameBecomesTheSnapshotOfItsMainBranch) {
  const std::string snapshot = add("models--Qwen--Qwen3-VL-8B-Instruct", "0123abc");
  add("models--Qwen--Qwen2-VL-2B-Instruct", "4567def");
  EXPECT_EQ(find_on_disk("Qwen/Qwen3-VL-8B-Instruct"), snapshot);
  EXPECT_EQ(find_on_disk("Qwen/Qwen3-VL"), std::nullopt);
}

TEST_F(HubPlace, OtherRevisionsAreBranchesTagsAndCommits) {
  const std::string snapshot = add("models--Qwen--model", "0123abc", "refs/pr/1");
  EXPECT_EQ(find_on_disk("Qwen/model"), std::nullopt);
  EXPECT_EQ(find_on_disk("Qwen/model", "refs/pr/1"), snapshot);
  EXPECT_EQ(find_on_disk("Qwen/model", "0123abc"), snapshot);
  for (const char* revision : {"../refs/pr/1", "refs//pr", "/refs", "", "refs/pr/2"}) {
    EXPECT_EQ(find_on_disk("Qwen/model", revision), std::nullopt) << revision;
  }
}

TEST_F(HubPlace, DatasetsLieBesideModels) {
  const std::string snapshot = add("datasets--Qwen--data", "0123abc");
  EXPECT_EQ(find_on_disk("Qwen/data"), std::nullopt);
  EXPECT_EQ(find_on_disk("Qwen/data", kMainRevision, HubKind::kDataset), snapshot);
}

TEST_F(HubPlace, AReferenceThatIsNoCommitIsNotFollowed) {
  const std::string snapshot = add("models--Qwen--model", "0123abc");
  const fs::path reference = fs::path(snapshot).parent_path().parent_path() / "refs/main";
  for (const char* text : {"../snapshots/0123abc", ".", "", "0123abc/."}) {
    test::write_text(reference, text);
    EXPECT_EQ(find_on_disk("Qwen/model"), std::nullopt) << text;
  }
  fs::remove(reference);
  fs::create_symlink("/dev/zero", reference);
  EXPECT_EQ(find_on_disk("Qwen/model"), std::nullopt);
}

TEST_F(HubPlace, ACacheThatIsNotCompleteHasNoModel) {
  fs::remove_all(add("models--Qwen--model", "0123abc"));
  EXPECT_EQ(find_on_disk("Qwen/model"), std::nullopt);
}

TEST_F(HubPlace, FollowsTheVariablesOfItsLibraries) {
  EXPECT_EQ(hub_cache_dir(), environment_.cache());
  setenv("HF_HUB_CACHE", "/caches/of/the/hub", 1);
  EXPECT_EQ(hub_cache_dir(), "/caches/of/the/hub");
  unsetenv("HF_HUB_CACHE");
  unsetenv("HF_HOME");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(hub_cache_dir(), "/caches/huggingface/hub");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(hub_cache_dir(), StartsWith(std::getenv("HOME")));
}

TEST_F(HubPlace, ATildeInFrontOfAPathIsTheHome) {
  const std::string home = std::getenv("HOME");
  setenv("HF_HUB_CACHE", "~/caches/hub", 1);
  EXPECT_EQ(hub_cache_dir(), home + "/caches/hub");
  unsetenv("HF_HUB_CACHE");
  setenv("HF_HOME", "~/caches", 1);
  EXPECT_EQ(hub_cache_dir(), home + "/caches/hub");
  EXPECT_EQ(place_of_environment().token_file, home + "/caches/token");
  setenv("HF_TOKEN_PATH", "~/token", 1);
  EXPECT_EQ(place_of_environment().token_file, home + "/token");
  unsetenv("HF_TOKEN_PATH");
  for (const char* other : {"~other/hub", "/caches/~/hub", "caches~"}) {
    setenv("HF_HUB_CACHE", other, 1);
    EXPECT_EQ(hub_cache_dir(), other);
  }
  unsetenv("HF_HUB_CACHE");
}

TEST_F(HubPlace, TheHubIsTheOneOfHuggingFaceOrOfTheVariable) {
  EXPECT_EQ(place_of_environment().endpoint, "https://huggingface.co");
  setenv("HF_ENDPOINT", "http://127.0.0.1:8080/hub/", 1);
  EXPECT_EQ(place_of_environment().endpoint, "http://127.0.0.1:8080/hub");
  setenv("HF_ENDPOINT", "file:///etc", 1);
  expect_error(ErrorCode::kInvalidArgument, "HF_ENDPOINT: expected a URL",
               [] { (void)place_of_environment(); });
}

TEST_F(HubPlace, ATokenIsThatOfTheVariableOrOfTheFile) {
  EXPECT_EQ(place_of_environment().token, "");
  EXPECT_EQ(place_of_environment().token_file, environment_.home() + "/token");
  test::write_text(environment_.home() + "/token", "hf_file\n");
  EXPECT_EQ(place_of_environment().token, "hf_file");
  setenv("HF_TOKEN", " hf_variable\n", 1);
  EXPECT_EQ(place_of_environment().token, "hf_variable");
  unsetenv("HF_TOKEN");
  setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  EXPECT_EQ(place_of_environment().token, "");
  unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
}

TEST_F(HubPlace, ATokenThatIsNoHeaderIsRefusedWithoutItsText) {
  setenv("HF_TOKEN", "hf_secret\r\nX-Other: 1", 1);
  try {
    (void)place_of_environment();
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("expected visible characters"));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace fovea::hub
