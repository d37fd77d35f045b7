// Every field of every published configuration with values that nobody publishes: inspect and plan
// answer or refuse with a fovea::Error, within bounds of time and memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "fovea/engine.h"
#include "fovea/error.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kCpuSeconds = 2;
constexpr std::int64_t kMemoryMb = 512;

std::vector<json> hostile_values() {
  json deep = 1;
  for (int i = 0; i < 100; ++i) deep = json::array({std::move(deep)});
  return {0,
          -1,
          1,
          4096,
          100'000,
          1'000'000,
          INT64_C(1) << 31,
          INT64_C(1) << 40,
          INT64_MAX,
          1e308,
          1e-30,
          "",
          "x",
          "auto",
          json::array(),
          json::object(),
          json::array({0, INT64_MAX, -1}),
          nullptr,
          true,
          deep};
}

/// CPU time of this process in seconds.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A line of /proc/self/status in MiB.
std::int64_t memory_mb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) / 1024;
  }
  throw std::runtime_error("no " + key);
}

/// From now on VmHWM is the peak since now.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// What is wrong with how `action` ended, or "".
std::string objection(const std::function<void()>& action) {
  const std::int64_t memory_before = memory_mb("VmRSS");
  const double before = cpu_seconds();
  forget_peak();
  try {
    action();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal || error.code() == ErrorCode::kOutOfMemory)
      return std::string(to_string(error.code())) + ": " + error.what();
    const std::string text = error.what();
    if (text.size() > 2048) return "a message of " + std::to_string(text.size()) + " bytes";
  } catch (const std::exception& other) {
    return std::string("not a fovea::Error: ") + other.what();
  }
  const double seconds = cpu_seconds() - before;
  const std::int64_t memory = memory_mb("VmHWM") - memory_before;
  if (seconds > kCpuSeconds) return std::to_string(seconds) + " s of CPU time";
  if (memory > kMemoryMb) return std::to_string(memory) + " MiB";
  return "";
}

/// The configuration files of a model directory by their names.
std::map<std::string, json> json_files(const fs::path& directory) {
  std::map<std::string, json> files;
  if (!fs::is_directory(directory)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with("config.json")) continue;
    std::ifstream file(entry.path());
    files[name] = json::parse(file);
  }
  return files;
}

/// The JSON files of a model directory, changed one field at a time.
class Model {
 public:
  explicit Model(const fs::path& directory) : files_(json_files(directory)) {
    for (const auto& [name, content] : files_) write(name, content);
  }

  /// Calls action(description) for every field of every file and every hostile value.
  void for_each_change(const std::function<void(const std::string&)>& action) const {
    static const std::vector<json> values = hostile_values();
    for (const auto& [name, content] : files_) {
      const json flat = content.flatten();
      for (const auto& field : flat.items()) {
        change(name, json::json_pointer(field.key()), values, action);
      }
      for (const auto& field : content.items()) {
        if (!field.value().is_structured()) continue;
        change(name, json::json_pointer("/" + field.key()), values, action);
      }
      write(name, content);
    }
  }

  [[nodiscard]] std::string directory() const { return directory_.path(); }

 private:
  void write(const std::string& name, const json& content) const {
    std::ofstream(directory_ / name) << content;
  }

  void change(const std::string& name, const json::json_pointer& field,
              const std::vector<json>& values,
              const std::function<void(const std::string&)>& action) const {
    for (const json& value : values) {
      json changed = files_.at(name);
      changed[field] = value;
      write(name, changed);
      action(name + field.to_string() + " = " + value.dump().substr(0, 40));
    }
    json without = files_.at(name);
    const json::json_pointer parent = field.parent_pointer();
    if (!without[parent].is_object()) return;
    without[parent].erase(field.back());
    write(name, without);
    action(name + field.to_string() + " is missing");
  }

  std::map<std::string, json> files_;
  TemporaryDirectory directory_;
};

/// Folders of the repository that hold a configuration, one for each set of fields.
std::vector<fs::path> model_folders() {
  std::map<std::string, fs::path> folders;
  for (const char* parent : {FOVEA_TEST_SOURCE_DIR "/tests/configs", FOVEA_TEST_GOLDEN_DIR}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(parent)) {
      std::string fields;
      for (const auto& [name, content] : json_files(entry.path())) {
        const json flat = content.flatten();
        for (const auto& field : flat.items()) fields += field.key() + '\n';
      }
      if (!fields.empty()) folders.emplace(fields, entry.path());
    }
  }
  std::vector<fs::path> result;
  result.reserve(folders.size());
  for (const auto& [fields, folder] : folders) result.push_back(folder);
  std::ranges::sort(result);
  return result;
}

class HostileConfigs : public ::testing::TestWithParam<fs::path> {};

TEST_P(HostileConfigs, AreRefusedOrTakenWithinBounds) {
  const Model model(GetParam());
  const EngineOptions options{.device = "cpu", .num_threads = 1, .dummy_weights = true};
  const std::vector<ItemSize> images{{640, 480}, {1, 200}, {65'535, 1}};
  const std::vector<ItemSize> videos{{.width_px = 64, .height_px = 64, .num_frames = 4}};
  model.for_each_change([&](const std::string& change) {
    SCOPED_TRACE(change);
    EXPECT_EQ(objection([&] { (void)inspect(model.directory(), options); }), "") << "inspect";
    EXPECT_EQ(objection([&] { (void)plan(model.directory(), images, options); }), "") << "plan";
    EXPECT_EQ(objection([&] { (void)plan(model.directory(), videos, options); }), "") << "videos";
  });
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name =
      info.param.parent_path().filename().string() + "_" + info.param.filename().string();
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Published, HostileConfigs, ::testing::ValuesIn(model_folders()), name_of);

}  // namespace
}  // namespace fovea::test
