#include "flags/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/temporary_directory.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// An empty hub cache for the time of a test.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) unsetenv(name);
    setenv("HF_HUB_CACHE", folder_.path().c_str(), 1);
  }
  ~HubCache() override { unsetenv("HF_HUB_CACHE"); }

  /// Adds a snapshot as the libraries of the hub lay it out, and returns its directory.
  std::string add(const std::string& repository, const std::string& commit) {
    const fs::path snapshot = fs::path(folder_.path()) / repository / "snapshots" / commit;
    fs::create_directories(snapshot);
    fs::create_directories(folder_ / (repository + "/refs"));
    test::write_text(folder_ / (repository + "/refs/main"), commit);
    return snapshot.string();
  }

  /// What a name becomes. @throws nothing; a complaint is a failure.
  static std::string resolved(std::string model) {
    EXPECT_EQ(resolve_hub_name(model), "");
    return model;
  }
  static std::string complaint(std::string model) { return resolve_hub_name(model); }

  test::TemporaryDirectory folder_;
};

TEST_F(HubCache, ANameBecomesTheSnapshotOfItsMainBranch) {
  const std::string snapshot = add("models--Qwen--Qwen3-VL-8B-Instruct", "0123abc");
  add("models--Qwen--Qwen2-VL-2B-Instruct", "4567def");
  EXPECT_EQ(resolved("Qwen/Qwen3-VL-8B-Instruct"), snapshot);
}

TEST_F(HubCache, PathsStayAsTheyAre) {
  for (const char* path : {"model", "./Qwen/model", "/models/Qwen/model", "a/b/c", "../model", "",
                           "/", "a/", "Qwen/mo del"}) {
    EXPECT_EQ(resolved(path), path);
  }
}

TEST_F(HubCache, ADirectoryOfThisMachineWins) {
  add("models--Qwen--model", "0123abc");
  const fs::path before = fs::current_path();
  fs::create_directories(fs::path(folder_.path()) / "Qwen" / "model");
  fs::current_path(folder_.path());
  EXPECT_EQ(resolved("Qwen/model"), "Qwen/model");
  fs::current_path(before);
}

TEST_F(HubCache, SaysHowToGetAModelThatIsNotThere) {
  EXPECT_EQ(
      complaint("Qwen/Qwen3-VL-8B-Instruct"),
      "expected a directory, or a model in the hub cache " + folder_.path() +
          ", got \"Qwen/Qwen3-VL-8B-Instruct\"; `hf download Qwen/Qwen3-VL-8B-Instruct` puts it "
          "there");
}

TEST_F(HubCache, AReferenceThatIsNoCommitIsNotFollowed) {
  add("models--Qwen--model", "0123abc");
  const std::string reference = folder_ / "models--Qwen--model/refs/main";
  for (const char* text : {"../snapshots/0123abc", ".", "", "0123abc/."}) {
    test::write_text(reference, text);
    EXPECT_THAT(complaint("Qwen/model"), HasSubstr("hf download Qwen/model")) << text;
  }
  fs::remove(reference);
  fs::create_symlink("/dev/zero", reference);
  EXPECT_THAT(complaint("Qwen/model"), HasSubstr("hf download Qwen/model"));
}

TEST_F(HubCache, ACacheThatIsNotCompleteHasNoModel) {
  fs::remove_all(add("models--Qwen--model", "0123abc"));
  EXPECT_THAT(complaint("Qwen/model"), HasSubstr("hf download Qwen/model"));
}

TEST_F(HubCache, FollowsTheVariablesOfItsLibraries) {
  EXPECT_EQ(hub_cache_dir(), folder_.path());
  unsetenv("HF_HUB_CACHE");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(hub_cache_dir(), "/caches/huggingface/hub");
  setenv("HF_HOME", "/hf", 1);
  EXPECT_EQ(hub_cache_dir(), "/hf/hub");
  unsetenv("HF_HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_THAT(hub_cache_dir(), StartsWith(std::getenv("HOME")));
}

}  // namespace
}  // namespace fovea::cli
