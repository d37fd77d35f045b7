#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "fovea/hub.h"
#include "hub/fake_hub.h"
#include "hub/file_lock.h"
#include "support/expect_error.h"

namespace fovea::hub {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::FakeHub;
using test::http_reply;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// What `printf 'hello\n' | git hash-object --stdin` prints.
const std::string kGitDigest = "ce013625030ba8dba906f756967f9e9ca394464a";
const std::string kGolden = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";

class PullModel : public ::testing::Test {
 protected:
  PullModel() {
    for (const char* name : {"config.json", "preprocessor_config.json"}) {
      hub_.add(name, test::read_text(kGolden + "/" + name));
    }
    hub_.add("model.safetensors", std::string(50'000, 'w'));
    hub_.add("tokenizer.json", "{}");
    hub_.add("modules.json", "hello\n", kGitDigest);
    setenv("HF_ENDPOINT", hub_.url().c_str(), 1);
  }

  [[nodiscard]] std::string repository() const {
    return environment_.cache() + "/models--maker--model";
  }
  [[nodiscard]] std::string snapshot() const {
    return repository() + "/snapshots/" + FakeHub::kCommit;
  }
  std::vector<std::string> downloads() { return hub_.requests("GET /maker/model/resolve/"); }
  /// Has the hub answer requests that begin with a text so.
  void answer(const std::string& start, int status, const std::string& headers) {
    hub_.instead = [=](const std::string& head) -> std::optional<std::string> {
      if (!head.starts_with(start)) return std::nullopt;
      return http_reply(status, "", "Connection: close\r\n" + headers);
    };
  }

  test::HubEnvironment environment_;
  FakeHub hub_;
};

TEST_F(PullModel, TheCacheHasBlobsLinksAndTheBranch) {
  EXPECT_EQ(pull_model("maker/model"), snapshot());
  for (const char* name : {"config.json", "modules.json", "model.safetensors"}) {
    const fs::path link = fs::path(snapshot()) / name;
    EXPECT_EQ(fs::read_symlink(link), "../../blobs/" + hub_.etag(name)) << name;
    EXPECT_EQ(test::read_text(link), hub_.files.at(name).content) << name;
  }
  EXPECT_FALSE(fs::exists(snapshot() + "/tokenizer.json"));
  EXPECT_EQ(test::read_text(repository() + "/refs/main"), FakeHub::kCommit);
  EXPECT_TRUE(fs::exists(environment_.cache() + "/.locks/models--maker--model/" +
                         hub_.etag("config.json") + ".lock"));
  EXPECT_EQ(find_on_disk("maker/model"), snapshot());
}

TEST_F(PullModel, WhatIsThereIsNotDownloadedAgain) {
  (void)pull_model("maker/model");
  EXPECT_THAT(downloads(), SizeIs(4));
  (void)pull_model("maker/model");
  EXPECT_THAT(downloads(), SizeIs(4));
}

TEST_F(PullModel, AnotherRevisionGetsAnotherReference) {
  EXPECT_EQ(pull_model("maker/model", {.revision = "refs/pr/1"}), snapshot());
  EXPECT_THAT(hub_.requests("GET /api/models/maker/model/revision/refs%2Fpr%2F1 "), SizeIs(1));
  EXPECT_EQ(find_on_disk("maker/model", "refs/pr/1"), snapshot());
  EXPECT_EQ(find_on_disk("maker/model"), std::nullopt);
  EXPECT_EQ(pull_model("maker/model", {.revision = FakeHub::kCommit}), snapshot());
  EXPECT_FALSE(fs::exists(repository() + "/refs/" + FakeHub::kCommit));
}

TEST_F(PullModel, TheBranchMovesWhenAllFilesAreThere) {
  hub_.files.at("model.safetensors").etag = std::string(64, 'a');
  expect_error(ErrorCode::kCorruptData, "digest", [] { (void)pull_model("maker/model"); });
  EXPECT_TRUE(fs::exists(snapshot() + "/config.json"));
  EXPECT_FALSE(fs::exists(snapshot() + "/model.safetensors"));
  EXPECT_EQ(find_on_disk("maker/model"), std::nullopt);
}

/// Lets go of a lock when a pull says that it waits for one.
class LetsGo final : public LogSink {
 public:
  explicit LetsGo(std::optional<FileLock>& lock) : lock_(lock) {}
  void write(LogLevel, std::string_view line) override {
    if (!line.starts_with("hub.waits")) return;
    has_waited = true;
    lock_.reset();
  }
  bool has_waited = false;

 private:
  std::optional<FileLock>& lock_;
};

TEST_F(PullModel, PullsThatFindTheSameBlobMakeItsLinkOneAfterTheOther) {
  (void)pull_model("maker/model");
  fs::remove_all(snapshot());  // as for another commit with the same file
  std::optional<FileLock> lock(std::in_place,
                               environment_.cache() + "/.locks/models--maker--model/" +
                                   hub_.etag("model.safetensors") + ".lock",
                               nullptr);
  LetsGo log(lock);
  EXPECT_EQ(pull_model("maker/model", {.log = &log}), snapshot());
  EXPECT_TRUE(log.has_waited);
  EXPECT_EQ(test::read_text(snapshot() + "/model.safetensors"),
            hub_.files.at("model.safetensors").content);
}

TEST_F(PullModel, AFolderOfTheCallerGetsFiles) {
  const test::TemporaryDirectory folder;
  const std::string output = folder / "model";
  EXPECT_EQ(pull_model("maker/model", {.output = output}), output);
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(output + "/model.safetensors")));
  EXPECT_EQ(test::read_text(output + "/config.json"), hub_.files.at("config.json").content);
  EXPECT_FALSE(fs::exists(environment_.cache()));
  (void)pull_model("maker/model", {.output = output});
  EXPECT_THAT(downloads(), SizeIs(4));
}

TEST_F(PullModel, AFolderWithWeightsOfAnotherModelIsLeftAsItIs) {
  const test::TemporaryDirectory folder;
  const std::string output = folder / "model";
  (void)pull_model("maker/model", {.output = output});
  const std::string config = test::read_text(output + "/config.json");
  hub_.add("weights.safetensors", std::string(1000, 'v'));
  hub_.files.erase("model.safetensors");
  hub_.add("config.json", config + "\n");
  expect_error(ErrorCode::kInvalidArgument,
               output + ": holds model.safetensors, which maker/model at " + FakeHub::kCommit +
                   " does not have",
               [&] { (void)pull_model("maker/model", {.output = output}); });
  EXPECT_EQ(test::read_text(output + "/config.json"), config);
  EXPECT_FALSE(fs::exists(output + "/weights.safetensors"));
  fs::remove(output + "/model.safetensors");
  (void)pull_model("maker/model", {.output = output});
  EXPECT_TRUE(fs::exists(output + "/weights.safetensors"));
}

TEST_F(PullModel, ATokenGoesToTheHubAndToNobodyElse) {
  FakeHub storage;
  storage.name = "stored";
  storage.add("weights", hub_.files.at("model.safetensors").content);
  hub_.files.at("model.safetensors").location =
      "http://localhost:" + std::to_string(storage.port()) + "/stored/resolve/" + FakeHub::kCommit +
      "/weights";
  setenv("no_proxy", "127.0.0.1,localhost", 1);
  setenv("HF_TOKEN", "hf_secret", 1);
  (void)pull_model("maker/model");
  EXPECT_EQ(test::read_text(snapshot() + "/model.safetensors"),
            storage.files.at("weights").content);
  EXPECT_THAT(hub_.requests(""), Each(HasSubstr("Authorization: Bearer hf_secret\r\n")));
  EXPECT_THAT(storage.requests("GET"), SizeIs(1));
  EXPECT_THAT(storage.requests("GET"), Each(Not(HasSubstr("hf_secret"))));
}

TEST_F(PullModel, ProgressEndsWithAllBytes) {
  PullProgress last;
  std::vector<std::string> files;
  (void)pull_model("maker/model", {.progress = [&](const PullProgress& progress) {
                     if (files.empty() || files.back() != progress.file) {
                       files.push_back(progress.file);
                     }
                     EXPECT_GE(progress.done_bytes, last.done_bytes);
                     EXPECT_LE(progress.done_bytes, progress.total_bytes);
                     last = progress;
                   }});
  EXPECT_THAT(files, ::testing::ElementsAre("config.json", "preprocessor_config.json",
                                            "modules.json", "model.safetensors"));
  EXPECT_GE(last.total_bytes, hub_.files.at("model.safetensors").content.size());
}

TEST_F(PullModel, ARepositoryWithANewNameIsFollowed) {
  hub_.instead = [](const std::string& head) -> std::optional<std::string> {
    const std::size_t begin = head.find(' ') + 1;
    const std::string target = head.substr(begin, head.find(" HTTP") - begin);
    const std::size_t old = target.find("maker/old");
    if (old == std::string::npos) return std::nullopt;
    return http_reply(307, "",
                      "Connection: close\r\nLocation: " + target.substr(0, old) + "maker/model" +
                          target.substr(old + 9) + "\r\n");
  };
  EXPECT_EQ(pull_model("maker/old"),
            environment_.cache() + "/models--maker--old/snapshots/" + FakeHub::kCommit);
}

TEST_F(PullModel, AModelThatIsNotThereIsSaid) {
  answer("GET /api", 404, "X-Error-Code: RepoNotFound\r\n");
  expect_error(ErrorCode::kNotFound,
               "maker/model at main: there is no such model, or it is private",
               [] { (void)pull_model("maker/model"); });
  answer("GET /api", 404, "X-Error-Code: RevisionNotFound\r\n");
  expect_error(ErrorCode::kNotFound, "maker/model at v2: there is no such revision",
               [] { (void)pull_model("maker/model", {.revision = "v2"}); });
}

TEST_F(PullModel, AGatedModelSaysWhereItsTermsAre) {
  answer("HEAD", 403, "X-Error-Code: GatedRepo\r\n");
  expect_error(ErrorCode::kInvalidArgument,
               "the model is gated: accept its terms at " + hub_.url() + "/maker/model",
               [] { (void)pull_model("maker/model"); });
  EXPECT_THAT(downloads(), IsEmpty());
}

TEST_F(PullModel, AccessWithoutATokenAndWithAWrongOneAreTwoErrors) {
  answer("GET /api", 401, "X-Error-Message: Invalid username or password.\r\n");
  expect_error(ErrorCode::kInvalidArgument, "it is private and needs a token (HF_TOKEN, or ",
               [] { (void)pull_model("maker/model"); });
  setenv("HF_TOKEN", "hf_secret", 1);
  try {
    (void)pull_model("maker/model");
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("gives no access"), HasSubstr("Invalid username"),
                                    Not(HasSubstr("hf_secret"))));
  }
}

TEST_F(PullModel, AHubThatFailsOrIsNotThereIsUnavailable) {
  answer("GET /api", 503, "");
  expect_error(ErrorCode::kUnavailable, "the hub fails: status 503",
               [] { (void)pull_model("maker/model"); });
  answer("GET /api", 429, "");
  expect_error(ErrorCode::kUnavailable, "fewer requests", [] { (void)pull_model("maker/model"); });
  setenv("HF_ENDPOINT", "http://127.0.0.1:9", 1);
  expect_error(ErrorCode::kUnavailable, "http://127.0.0.1:9/api/models/maker/model/revision/main: ",
               [] { (void)pull_model("maker/model"); });
  setenv("HF_HUB_OFFLINE", "1", 1);
  expect_error(ErrorCode::kUnavailable, "HF_HUB_OFFLINE is set",
               [] { (void)pull_model("maker/model"); });
}

TEST_F(PullModel, AnswersThatLeadOutOfTheCacheAreRefused) {
  hub_.files.at("config.json").etag = "../../../etc/passwd";
  expect_error(ErrorCode::kCorruptData, "expected a digest as ETag, got \"../../../etc/passwd\"",
               [] { (void)pull_model("maker/model"); });
  hub_.instead = [](const std::string&) {
    return http_reply(200, R"({"sha": "../../elsewhere", "siblings": []})",
                      "Connection: close\r\n");
  };
  expect_error(ErrorCode::kCorruptData, "sha: expected 40 digits in base 16",
               [] { (void)pull_model("maker/model"); });
  hub_.instead = [](const std::string&) {
    return http_reply(200, "<html>", "Connection: close\r\n");
  };
  expect_error(ErrorCode::kCorruptData, "/revision/main", [] { (void)pull_model("maker/model"); });
}

TEST_F(PullModel, NamesAndRevisionsThatAreNoneAreRefused) {
  for (const char* name : {"model", "a/b/c", "a/..", "https://huggingface.co/a/b"}) {
    expect_error(ErrorCode::kInvalidArgument, "<organisation>/<name>",
                 [&] { (void)pull_model(name); });
  }
  for (const char* revision : {"", "../main", "a//b"}) {
    expect_error(ErrorCode::kInvalidArgument, "as revision, got",
                 [&] { (void)pull_model("maker/model", {.revision = revision}); });
  }
  EXPECT_THAT(hub_.requests(""), IsEmpty());
}

TEST_F(PullModel, ARepositoryWithoutAModelIsSaid) {
  hub_.files.erase("config.json");
  expect_error(ErrorCode::kNotFound, "expected a model with config.json, found none among 4 files",
               [] { (void)pull_model("maker/model"); });
}

TEST_F(PullModel, AStopEndsIt) {
  std::stop_source stop;
  expect_error(ErrorCode::kCancelled, "", [&] {
    (void)pull_model("maker/model", {.progress = [&](const PullProgress&) { stop.request_stop(); }},
                     {.stop = stop.get_token()});
  });
  EXPECT_EQ(find_on_disk("maker/model"), std::nullopt);
}

}  // namespace
}  // namespace fovea::hub
