// Reads every #include of the product and fails where an arrow points up or sideways.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>

namespace {

namespace fs = std::filesystem;

/// What a room may include beside itself and the public headers: whole rooms, or single headers.
const std::map<std::string, std::set<std::string>> kArrows{
    {"include", {}},
    {"core", {}},
    {"device", {"core"}},
    {"ops", {"core", "device"}},
    {"checkpoint", {"core"}},
    {"media", {"core"}},
    {"models", {"core", "device", "ops", "checkpoint", "media"}},
    // The manager calls a model it does not know through the protocol, with the context of the ops.
    {"graph",
     {"core", "device", "models/encoder_graph_model.h", "ops/context.h", "ops/cost_kernels.h"}},
    {"cache", {"core", "device", "ops"}},
    {"engine", {"core", "device", "ops", "checkpoint", "media", "models", "graph", "cache"}},
    {"apps", {}},
};

bool is_public(std::string_view header) { return header.starts_with("fovea/"); }

bool is_cuda(std::string_view path) { return path.find("/cuda/") != std::string_view::npos; }

std::string first_folder(const std::string& path) { return path.substr(0, path.find('/')); }

/// "qwen3_vl" of "models/qwen3_vl/config.h"; nothing for what all families share.
std::optional<std::string> family_of(const std::string& path) {
  const fs::path parts(path);
  if (first_folder(path) != "models" || std::distance(parts.begin(), parts.end()) < 3)
    return std::nullopt;
  const std::string folder = std::next(parts.begin())->string();
  return folder == "blocks" ? std::nullopt : std::optional(folder);
}

/// What is wrong with an include, or "". `file` is relative to src/, except for files under
/// include/ and apps/, which keep these names; `header` is the text between the quotes.
std::string objection(const std::string& file, const std::string& header) {
  const std::string room = first_folder(file);
  const auto allowed = kArrows.find(room);
  if (allowed == kArrows.end()) return "the room is not in the table of arrows";
  if (is_public(header)) return "";
  if (header.find('/') == std::string::npos)
    return room == "apps" ? "" : "the header is named without its room";
  const std::string target = first_folder(header);
  if (target != room && !allowed->second.contains(target) && !allowed->second.contains(header))
    return room + " must not know " + header;
  if (is_cuda(header) && !is_cuda(file)) return "only files in a cuda folder may know CUDA headers";
  const auto family = family_of(header);
  if (family && family_of(file) != family && file != "models/registry.cpp")
    return "only its own folder and the registry may know the family " + *family;
  return "";
}

bool is_source(const fs::path& path) {
  static const std::set<std::string> kExtensions{".h", ".cpp", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

/// Calls use(file, line number, header) for every `#include "header"` under `root`. File names are
/// relative to `base`.
template <class Use>
int for_each_include(const fs::path& root, const fs::path& base, const char* pattern, Use&& use) {
  const std::regex include(pattern);
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    ++num_files;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      if (std::smatch match; std::regex_search(line, match, include))
        use(fs::relative(entry.path(), base).generic_string(), number, match[1].str());
    }
  }
  return num_files;
}

constexpr const char* kQuoted = R"re(^\s*#\s*include\s*"([^"]+)")re";
constexpr const char* kAngled = R"re(^\s*#\s*include\s*<([^>]+)>)re";

const fs::path kSource = FOVEA_TEST_SOURCE_DIR;

TEST(IncludeArrows, PointDownwards) {
  const auto check = [](const std::string& file, int line, const std::string& header) {
    EXPECT_EQ(objection(file, header), "") << file << ":" << line << " includes " << header;
  };
  const auto check_src = [&](const fs::path& folder, const fs::path& base) {
    EXPECT_GT(for_each_include(kSource / folder, kSource / base, kQuoted, check), 0) << folder;
  };
  check_src("src", "src");
  check_src("include", "");
  check_src("apps", "");
}

/// A reader of the public headers needs nothing that Fovea does not install.
TEST(IncludeArrows, OfPublicHeadersEndInTheStandardLibrary) {
  for_each_include(kSource / "include", kSource, kAngled,
                   [](const std::string& file, int line, const std::string& header) {
                     EXPECT_EQ(header.find_first_of("./"), std::string::npos)
                         << file << ":" << line << " includes <" << header << ">";
                   });
}

/// Every file that included a JSON header would take seconds longer to compile.
TEST(IncludeArrows, FromHeadersNeverReachTheJsonLibrary) {
  const auto check = [](const std::string& file, int line, const std::string& header) {
    if (file.ends_with(".h")) {
      EXPECT_FALSE(header.starts_with("nlohmann/")) << file << ":" << line;
    }
  };
  for_each_include(kSource / "src", kSource, kAngled, check);
}

struct Case {
  const char* file;
  const char* header;
};

TEST(IncludeArrowsTable, AllowsWhatTheHouseAllows) {
  const Case cases[] = {{"core/json.cpp", "core/json.h"},
                        {"core/check.h", "fovea/error.h"},
                        {"device/device.h", "core/check.h"},
                        {"ops/norm.cpp", "device/device.h"},
                        {"models/qwen3_vl/forward.cpp", "ops/norm.h"},
                        {"models/qwen3_vl/forward.cpp", "models/qwen3_vl/forward.h"},
                        {"models/qwen3_vl/forward.cpp", "models/blocks/weight_loader.h"},
                        {"models/registry.cpp", "models/qwen3_vl/adapter.h"},
                        {"graph/packing.h", "models/encoder_graph_model.h"},
                        {"ops/cuda/norm.cu", "device/cuda/handles.h"},
                        {"cache/encoder_cache.h", "ops/context.h"},
                        {"engine/engine.cpp", "graph/graph_manager.h"},
                        {"include/fovea/engine.h", "fovea/error.h"},
                        {"apps/cli/main.cpp", "fovea/fovea.h"},
                        {"apps/cli/main.cpp", "text.h"}};
  for (const auto& [file, header] : cases) EXPECT_EQ(objection(file, header), "") << file;
}

TEST(IncludeArrowsTable, RefusesWhatTheHouseRefuses) {
  const Case cases[] = {{"core/json.cpp", "device/device.h"},
                        {"device/device.cpp", "ops/kernels.h"},
                        {"media/resize.cpp", "checkpoint/hf_config.h"},
                        {"checkpoint/hf_config.cpp", "media/image.h"},
                        {"ops/norm.cpp", "models/encoder_graph_model.h"},
                        {"models/registry.cpp", "graph/packing.h"},
                        {"graph/packing.cpp", "models/registry.h"},
                        {"graph/packing.cpp", "ops/norm.h"},
                        {"graph/packing.cpp", "media/image.h"},
                        {"cache/encoder_cache.cpp", "graph/packing.h"},
                        {"include/fovea/engine.h", "core/shape.h"},
                        {"apps/cli/main.cpp", "engine/engine_impl.h"},
                        {"engine/backend.cpp", "device/cuda/handles.h"},
                        {"models/glm4v/forward.cpp", "models/qwen3_vl/forward.h"},
                        {"engine/engine.cpp", "models/qwen3_vl/adapter.h"},
                        {"models/blocks/mlp.cpp", "models/qwen3_vl/config.h"},
                        {"core/json.cpp", "json.h"},
                        {"attic/old.cpp", "core/json.h"}};
  for (const auto& [file, header] : cases) EXPECT_NE(objection(file, header), "") << file;
}

}  // namespace
