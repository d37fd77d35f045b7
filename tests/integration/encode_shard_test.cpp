// fovea encode --shard and fovea manifest: whatever ends a run, the next one completes it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "checkpoint/safetensors.h"
#include "integration/fovea_process.h"
#include "integration/run_program.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFile;
using ::testing::HasSubstr;

/// The bytes of the rows of every path.
using Rows = std::map<std::string, std::string>;

class EncodeShard : public ::testing::Test {
 protected:
  /// Writes a list of `count` images, each a file of its own, and returns it as an INPUT.
  std::string list(int count) {
    fs::create_directory(folder_ / "images");
    const std::vector<std::string> sources{model_ + "/images/gradient_64x200.png",
                                           model_ + "/images/noise_101x61.png",
                                           model_ + "/images/shapes_120x90.png"};
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const std::string name = "images/" + std::to_string(i) + ".png";
      fs::copy_file(sources[static_cast<std::size_t>(i) % sources.size()], folder_ / name,
                    fs::copy_options::skip_existing);
      lines += name + "\n";
    }
    write_text(folder_ / "list", lines);
    return "@" + (folder_ / "list");
  }

  [[nodiscard]] std::vector<std::string> arguments(const std::string& input,
                                                   const std::string& output) const {
    return {"encode",       model_,      input,      "--shard",    "0/1",
            "--shard-size", part_bytes_, "--output", output,       "--device",
            "cpu",          "--threads", "2",        "--no-table", "--resume"};
  }
  [[nodiscard]] ProgramResult encode(const std::string& input, const std::string& output) const {
    return run_fovea(arguments(input, output));
  }

  /// The rows that the manifests of a folder name. Nothing is there twice, and no other file.
  static Rows rows_in(const std::string& output) {
    Rows rows;
    std::set<std::string> files;
    std::set<std::pair<std::string, std::string>> tensors;  // file and name
    for (const fs::directory_entry& entry : fs::directory_iterator(output)) {
      if (entry.path().extension() != ".jsonl") continue;
      files.insert(entry.path().filename());
      std::istringstream lines(read_text(entry.path()));
      for (std::string text; std::getline(lines, text);) {
        const Json line = Json::parse(text);
        if (line.contains("part") && line["part"].is_string()) files.insert(line["part"]);
        if (!line.contains("path") || !line["error"].is_null()) continue;
        const std::string file = line["file"];
        const std::string tensor = line["tensor"];
        EXPECT_TRUE(tensors.emplace(file, tensor).second) << text;
        const SafetensorsFile part(fs::path(output) / file);
        const ConstTensorView view = part.tensor(tensor);
        const auto [at, is_new] = rows.emplace(
            line["path"], std::string(reinterpret_cast<const char*>(view.data), view.bytes()));
        EXPECT_TRUE(is_new) << text;
      }
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(output)) {
      EXPECT_TRUE(files.contains(entry.path().filename())) << entry.path();
    }
    return rows;
  }

  [[nodiscard]] static ProgramResult check(const std::string& output) {
    return run_fovea({"manifest", "check", output});
  }

  const std::string model_ = golden_folder("qwen3_vl", "model.safetensors");
  std::string part_bytes_ = "20Ki";
  TemporaryDirectory folder_;
};

TEST_F(EncodeShard, RowsAreThoseOfARunWithoutShards) {
  const std::string input = list(9);
  expect_success(run_fovea({"encode", model_, input, "--output", folder_ / "rows", "--no-table"}));
  const SafetensorsFile whole(folder_ / "rows");
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    expect_success(run_fovea(
        {"encode", model_, input, "--shard", shard, "--output", folder_ / "out", "--no-table"}));
  }
  const Rows rows = rows_in(folder_ / "out");
  ASSERT_EQ(rows.size(), 9U);
  for (int i = 0; i < 9; ++i) {
    const ConstTensorView view = whole.tensor("item_" + std::to_string(i));
    const std::string expected(reinterpret_cast<const char*>(view.data), view.bytes());
    EXPECT_EQ(rows.at(folder_ / ("images/" + std::to_string(i) + ".png")), expected) << i;
  }
}

TEST_F(EncodeShard, KilledAtFiftyMomentsItStillCompletes) {
  constexpr int kKills = 50;
  const std::string input = list(150);
  const auto begin = std::chrono::steady_clock::now();
  expect_success(encode(input, folder_ / "single"));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Rows expected = rows_in(folder_ / "single");
  ASSERT_EQ(expected.size(), 150U);

  std::mt19937 random(20);
  std::uniform_real_distribution<double> moment(0, seconds);
  int folders = 0;
  for (int kills = 0; kills < kKills; ++folders) {
    const std::string output = folder_ / ("out" + std::to_string(folders));
    // A run that is always killed early never ends, so at most so many in one folder.
    for (int in_folder = 0; in_folder < kKills / 5 && kills < kKills; ++in_folder) {
      FoveaProcess process(arguments(input, output), folder_ / "messages");
      std::this_thread::sleep_for(std::chrono::duration<double>(moment(random)));
      process.signal(SIGKILL);
      if (process.wait() == 0) break;  // it was done
      ++kills;
    }
    expect_success(encode(input, output));
    EXPECT_EQ(rows_in(output), expected) << output;
    EXPECT_EQ(check(output).exit_code, 0) << check(output).err;
    fs::remove_all(output);
  }
}

TEST_F(EncodeShard, LinesMayBeVideosAndHaveOptionsOfTheirOwn) {
  fs::copy(model_ + "/video_frames", folder_ / "frames");
  const std::string image = model_ + "/images/photo_180x180.jpg";
  std::string lines = image + "\n{\"image\": \"" + image +
                      "\", \"mm_processor_kwargs\": {\"max_pixels\": 16384}}\n"
                      "{\"video\": \"frames\"}\n{\"video\": \"frames\", \"fps\": 1}\n";
  std::int64_t count = 4;
  if (run_fovea({"env"}).out.find("libfovea_video.so)") != std::string::npos) {
    const std::string clip = FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4";
    lines += "{\"video\": \"" + clip + "\"}\n{\"video\": \"" + clip + "\", \"fps\": 8}\n";
    count += 2;
  }
  write_text(folder_ / "list", lines);
  const std::string input = "@" + (folder_ / "list");
  const std::string all = std::to_string(count);
  expect_success(run_fovea({"encode", model_, input, "--output", folder_ / "rows", "--no-table"}));
  const SafetensorsFile whole(folder_ / "rows");
  std::vector<std::string> expected;
  for (std::int64_t i = 0; i < count; ++i) {
    const ConstTensorView view = whole.tensor("item_" + std::to_string(i));
    expected.emplace_back(reinterpret_cast<const char*>(view.data), view.bytes());
  }
  EXPECT_GT(expected[0].size(), expected[1].size()) << "max_pixels";

  std::vector<std::string> run = arguments(input, folder_ / "out");
  std::erase(run, "--no-table");
  EXPECT_THAT(run_fovea(run).out, HasSubstr("items   " + all + " encoded, 0 were there"));
  std::istringstream manifest(read_text(folder_ / "out/manifest-0-of-1.jsonl"));
  std::vector<std::string> rows;
  for (std::string text; std::getline(manifest, text);) {
    const Json line = Json::parse(text);
    if (!line.contains("path")) continue;
    const SafetensorsFile part(folder_ / "out/" + std::string(line["file"]));
    const std::string tensor = line["tensor"];
    const ConstTensorView view = part.tensor(tensor);
    rows.emplace_back(reinterpret_cast<const char*>(view.data), view.bytes());
    EXPECT_EQ(line["type"], rows.size() < 3 ? "image" : "video");
    EXPECT_EQ(line["options"].is_null(), rows.size() % 2 == 1) << text;
  }
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(check(folder_ / "out").exit_code, 0) << check(folder_ / "out").err;

  EXPECT_THAT(run_fovea(run).out, HasSubstr("items   0 encoded, " + all + " were there"));
  fs::copy_file(model_ + "/video_frames/" +
                    fs::directory_iterator(model_ + "/video_frames")->path().filename().string(),
                folder_ / "frames/zz.png");
  EXPECT_THAT(run_fovea(run).out, HasSubstr("items   2 encoded")) << "a folder with another frame";
  run.insert(run.end(), {"--fps", "4"});
  const ProgramResult other = run_fovea(run);
  EXPECT_THAT(other.err, HasSubstr("made with fps 2, this run has 4"));
}

TEST_F(EncodeShard, AVideoThatIsNotThereIsAnItemThatFails) {
  write_text(folder_ / "list", model_ + "/images/noise_101x61.png\n{\"video\": \"none.mp4\"}\n");
  const ProgramResult result = encode("@" + (folder_ / "list"), folder_ / "out");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("1 of 2 items failed"));
  EXPECT_THAT(read_text(folder_ / "out/manifest-0-of-1.jsonl"), HasSubstr("none.mp4: "));
}

TEST_F(EncodeShard, MoreVideosThatAreNotThereThanAPartHoldsAreSeveralParts) {
  constexpr int kMaxItemsOfPart = 65'536;
  std::string lines = model_ + "/images/noise_101x61.png\n";
  for (int i = 0; i < kMaxItemsOfPart; ++i) lines += "{\"video\": \"" + std::to_string(i) + "\"}\n";
  write_text(folder_ / "list", lines);
  EXPECT_EQ(encode("@" + (folder_ / "list"), folder_ / "out").exit_code, 0);
  EXPECT_EQ(check(folder_ / "out").exit_code, 0) << check(folder_ / "out").err;
  EXPECT_EQ(rows_in(folder_ / "out").size(), 1U);
}

TEST_F(EncodeShard, OptionsOfTheCommandLineAreOfAllItems) {
  const std::string input = list(2);
  std::vector<std::string> run = arguments(input, folder_ / "out");
  run.insert(run.end(), {"--mm-processor-kwargs", R"({"max_pixels": 4096})"});
  expect_success(run_fovea(run));
  const ProgramResult without = encode(input, folder_ / "out");
  EXPECT_NE(without.exit_code, 0);
  EXPECT_THAT(without.err, HasSubstr("made with mm_processor_kwargs"));
  run.back() = R"({"max_pixels":4096})";
  expect_success(run_fovea(run));
  run.back() = R"({"crop": 1})";
  std::ranges::replace(run, folder_ / "out", folder_ / "other");
  expect_failure(run_fovea(run), 2, "mm_processor_kwargs: crop: no option");
}

TEST_F(EncodeShard, GoesOnWithTheSameOptionsAlone) {
  const std::string input = list(1);
  expect_success(encode(input, folder_ / "out"));
  std::vector<std::string> scaled = arguments(input, folder_ / "out");
  scaled.emplace_back("--jpeg-scaling");
  const ProgramResult result = run_fovea(scaled);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("jpeg_scaling"));
}

TEST_F(EncodeShard, RemovesTemporaryFilesOfKilledRuns) {
  const std::string input = list(1);
  fs::create_directory(folder_ / "out");
  // Process numbers end at 2^22: nobody has this one.
  write_text(folder_ / "out/.fovea-4194305-0.tmp", "half a part");
  expect_success(encode(input, folder_ / "out"));
  EXPECT_EQ(rows_in(folder_ / "out").size(), 1U);
}

TEST_F(EncodeShard, ASecondProcessLeavesTheShardToTheFirst) {
  const std::string input = list(3);
  fs::create_directory(folder_ / "out");
  const std::string manifest = folder_ / "out/manifest-0-of-1.jsonl";
  const int first = ::open(manifest.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(first, LOCK_EX), 0);
  expect_failure(encode(input, folder_ / "out"), 1,
                 manifest + ": another process encodes this shard into this folder");
  ::close(first);
  expect_success(encode(input, folder_ / "out"));
}

TEST_F(EncodeShard, AFileThatChangesIsEncodedAgain) {
  const std::string input = list(3);
  expect_success(encode(input, folder_ / "out"));
  fs::copy_file(model_ + "/images/photo_180x180.jpg", folder_ / "images/1.png",
                fs::copy_options::overwrite_existing);
  std::vector<std::string> again = arguments(input, folder_ / "out");
  std::erase(again, "--no-table");
  EXPECT_THAT(run_fovea(again).out, HasSubstr("items   1 encoded, 2 were there, 0 failed\n"));
  EXPECT_THAT(run_fovea(again).out, HasSubstr("items   0 encoded, 3 were there, 0 failed\n"));
  EXPECT_EQ(check(folder_ / "out").exit_code, 0);
}

TEST_F(EncodeShard, FramesWithAnOlderFrameInTheirMiddleAreEncodedAgain) {
  fs::copy(model_ + "/video_frames", folder_ / "frames");
  write_text(folder_ / "list", "{\"video\": \"frames\"}\n");
  std::vector<std::string> run = arguments("@" + (folder_ / "list"), folder_ / "out");
  std::erase(run, "--no-table");
  expect_success(run_fovea(run));
  EXPECT_THAT(run_fovea(run).out, HasSubstr("items   0 encoded, 1 were there"));
  const fs::path frame = fs::directory_iterator(folder_ / "frames")->path();
  fs::last_write_time(frame, fs::last_write_time(frame) - std::chrono::hours(1));
  EXPECT_THAT(run_fovea(run).out, HasSubstr("items   1 encoded, 0 were there"));
}

TEST_F(EncodeShard, RowsOfAFileThatIsGoneStay) {
  const std::string input = list(3);
  expect_success(encode(input, folder_ / "out"));
  const Rows before = rows_in(folder_ / "out");
  fs::remove(folder_ / "images/1.png");
  std::vector<std::string> again = arguments(input, folder_ / "out");
  std::erase(again, "--no-table");
  EXPECT_THAT(run_fovea(again).out, HasSubstr("items   0 encoded, 3 were there, 0 failed\n"));
  EXPECT_EQ(rows_in(folder_ / "out"), before);
  EXPECT_EQ(check(folder_ / "out").exit_code, 0);
}

TEST_F(EncodeShard, ItemsThatFailAreRecordedAndTriedAgain) {
  const std::string input = list(3);
  write_text(folder_ / "images/2.png", "no image");
  const ProgramResult first = encode(input, folder_ / "out");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.err, HasSubstr("fovea: warning: 1 of 3 items failed; manifest-0-of-1.jsonl "
                                   "says why, and --resume tries them again\n"));
  EXPECT_THAT(read_text(folder_ / "out/manifest-0-of-1.jsonl"), HasSubstr("images/2.png: "));
  fs::copy_file(model_ + "/images/noise_101x61.png", folder_ / "images/2.png",
                fs::copy_options::overwrite_existing);
  expect_success(encode(input, folder_ / "out"));
  EXPECT_EQ(rows_in(folder_ / "out").size(), 3U);
  EXPECT_EQ(check(folder_ / "out").exit_code, 0);
}

TEST_F(EncodeShard, FailsIfNothingCanBeEncoded) {
  write_text(folder_ / "list", "none.png\n");
  const ProgramResult result = encode("@" + (folder_ / "list"), folder_ / "out");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("fovea: error: none of 1 item could be encoded; the first: "));
}

/// Limits how large a file of a child can be, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(EncodeShard, AFullDiskLeavesWhatIsWritten) {
  const std::string input = list(96);
  expect_success(encode(input, folder_ / "single"));
  const Rows expected = rows_in(folder_ / "single");
  struct Case {
    rlim_t bytes;
    const char* part_bytes;  // the larger file is the one that fails
    const char* message;
  };
  for (const Case& full :
       {Case{20'000, "1Mi", "part-0-of-1-00000.safetensors: cannot write: "},
        Case{16'000, "1K", "manifest-0-of-1.jsonl: cannot write the manifest"}}) {
    const std::string output = folder_ / full.part_bytes;
    part_bytes_ = full.part_bytes;
    {
      const FileSizeLimit limit(full.bytes);
      expect_failure(encode(input, output), 1, full.message);
    }
    EXPECT_EQ(check(output).exit_code, 1);
    expect_success(encode(input, output));
    EXPECT_EQ(rows_in(output), expected);
    EXPECT_EQ(check(output).exit_code, 0) << check(output).err;
  }
}

TEST_F(EncodeShard, CtrlCWritesWhatIsEncodedAndSaysHowToGoOn) {
  const std::string manifest = folder_ / "out/manifest-0-of-1.jsonl";
  FoveaProcess process(arguments(list(3000), folder_ / "out"), folder_ / "messages");
  while (read_text(manifest).find('\n') == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(), 1);
  const std::string messages = read_text(folder_ / "messages");
  EXPECT_THAT(messages, HasSubstr("fovea: error: stopped: "));
  EXPECT_THAT(messages, HasSubstr("--resume goes on\n"));
  const ProgramResult unfinished = check(folder_ / "out");
  EXPECT_EQ(unfinished.exit_code, 1);
  EXPECT_THAT(unfinished.err, HasSubstr("the list was not worked off; --resume goes on"));
  expect_success(encode(list(9), folder_ / "out"));
  EXPECT_EQ(check(folder_ / "out").exit_code, 0) << check(folder_ / "out").err;
}

TEST_F(EncodeShard, MergesManifestsSortedByPath) {
  const std::string input = list(12);
  const std::string merged = folder_ / "all.jsonl";
  const auto encode_shard = [&](const char* shard) {
    expect_success(run_fovea(
        {"encode", model_, input, "--shard", shard, "--output", folder_ / "out", "--no-table"}));
  };
  const auto merge = [&] {
    return run_fovea({"manifest", "merge", folder_ / "out", "--output", merged});
  };
  encode_shard("1/2");
  expect_failure(merge(), 1, "1 problem, the first: 1 shard of 2 missing: 0");
  EXPECT_FALSE(fs::exists(merged));
  encode_shard("0/2");
  const ProgramResult result = merge();
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("12 items of 2 shards"));

  std::istringstream lines(read_text(merged));
  std::string text;
  ASSERT_TRUE(std::getline(lines, text));
  EXPECT_EQ(Json::parse(text)["shards"], 2);
  std::vector<std::string> paths;
  while (std::getline(lines, text)) paths.push_back(Json::parse(text)["path"]);
  EXPECT_EQ(paths.size(), 12U);
  EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()));

  for (const char* name : {"out/manifest-0-of-2.jsonl", "out/part-1-of-2-00000.safetensors"}) {
    expect_failure(run_fovea({"manifest", "merge", folder_ / "out", "--output", folder_ / name}), 2,
                   "expected a file of its own for the output");
  }
  EXPECT_EQ(check(folder_ / "out").exit_code, 0);
}

TEST_F(EncodeShard, RefusesFlagsOfASingleFile) {
  expect_failure(run_fovea({"encode", model_, list(1), "--shard", "0/1", "-o", folder_ / "out",
                            "--stats", folder_ / "stats"}),
                 2, "--stats excludes --shard");
  expect_failure(run_fovea({"encode", model_, list(1), "--resume", "-o", folder_ / "out"}), 2,
                 "--resume requires --shard");
  expect_failure(run_fovea({"encode", model_, "--pixel-values", "values.safetensors", "--shard",
                            "0/1", "-o", folder_ / "out"}),
                 2, "--shard: expected images, videos and lists of them alone, got --pixel-values");
}

}  // namespace
}  // namespace fovea::test
