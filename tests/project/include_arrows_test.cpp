// Rooms include downwards only. This is what keeps the graph manager free of model names, the
// examples on the public interface, and CUDA headers inside the CUDA folders.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>

#include "project/tree.h"

namespace fovea::test {
namespace {

/// Public headers for authors of towers belong to the rooms of their folders.
const std::string kTower = "fovea/tower/";

/// Folder of the tree -> rooms, or single headers, that its files may include besides their own and
/// the public ones. Source: docs/architecture.md, "Which way includes point".
using Arrows = std::map<std::string, std::set<std::string>>;

/// How every folder of the server refuses a request.
const std::string kApiError = "serve/api_error.h";

const Arrows kAllowed{
    {"include/fovea", {}},
    {"src/core", {}},
    {"src/device", {"core"}},
    {"src/ops", {"core", "device"}},
    {"src/checkpoint", {"core"}},
    {"src/media", {"core"}},
    {"src/models", {"core", "device", "ops", "checkpoint", "media"}},
    {"src/graph",
     {"core", "device", "models/encoder_graph_model.h", "models/inputs.h",
      "models/item_processor.h", "ops/context.h", "ops/cost_kernels.h"}},
    {"src/cache", {"core"}},
    {"src/rows", {"core", "device", "checkpoint"}},
    {"src/engine",
     {"core", "device", "ops", "checkpoint", "media", "models", "graph", "cache", "rows"}},
    {"src/batcher", {"core"}},
    {"src/ranks", {"core", "engine/replicas/load_balance.h", "engine/row_gather.h"}},
    {"src/libcurl", {"core"}},
    {"src/hub", {"core", "libcurl", "checkpoint", "models"}},
    {"src/serve", {"core", "libcurl"}},
    {"apps/cli", {"core", "flags", "report", "vllm", "bench", "shards", "serve"}},
    {"examples", {}},
};

/// Folder of the tree -> its folders -> those of the same one, or single headers, that their files
/// may include besides their own. "." are files that are in no folder: where the table has no line
/// for them, they may include all. No folder includes them but those that name "." or the header.
/// Source: docs/architecture.md, "Which way includes point".
const std::map<std::string, Arrows> kAllowedInside{
    {"src/device", {{".", {}}, {"cpu", {"."}}, {"cuda", {"."}}}},
    {"src/ops", {{".", {}}, {"cpu", {"."}}, {"cuda", {"."}}}},
    {"src/ops/cpu",
     {{"simd", {}},
      {"rowwise", {"simd"}},
      {"gemm", {"simd", "rowwise"}},
      {"attention", {"simd", "rowwise"}},
      {"isa", {"simd", "rowwise", "gemm", "attention"}}}},
    {"src/ops/cuda",
     {{"common", {}},
      {"ptx", {"common"}},
      {"rowwise", {"common", "ptx"}},
      {"gemm", {"common", "ptx", "rowwise"}},
      {"attention", {"common", "ptx", "rowwise", "gemm"}},
      {"grid_attention", {"common", "ptx", "attention"}},
      {"tower", {"common", "ptx", "rowwise"}}}},
    {"src/engine",
     {{"prepare", {}},
      {"cached", {"prepare"}},
      {"replicas", {}},
      {"pruning", {}},
      {".", {"prepare", "cached", "replicas", "pruning"}},
      {"diagnostics", {".", "replicas"}}}},
    {"src/ranks", {{"transport", {}}, {"group", {"transport"}}, {".", {"group", "transport"}}}},
    {"src/serve",
     {{"text", {kApiError}},
      {"tracing", {"text"}},
      {"http", {kApiError, "text", "tracing"}},
      {"rows", {kApiError, "text", "http"}},
      {"service", {kApiError, "text", "http"}},
      {"media", {kApiError, "text", "http", "service"}},
      {"metrics", {kApiError, "http", "rows", "service", "media"}},
      {"upstream", {kApiError, "text", "tracing", "http", "metrics", "serve/media/host_lookup.h"}},
      {"routes",
       {kApiError, "text", "tracing", "http", "rows", "service", "media", "metrics", "upstream"}}}},
    // What protocols share stands beside their folders, which do not know each other.
    {"src/serve/routes",
     {{".", {}},
      {"admin", {"."}},
      {"cohere", {"."}},
      {"fovea", {"."}},
      {"kserve", {"."}},
      {"llm", {"."}},
      {"openai", {"."}},
      {"vllm", {"."}}}},
    {"apps/cli",
     {{"report", {}},
      {"flags", {"report", "console.h", "errors.h", "output_file.h"}},
      {"vllm", {"report", "flags", "errors.h"}},
      {"shards",
       {"report", "flags", "console.h", "errors.h", "inputs.h", "listed_item.h", "output_file.h",
        "progress.h", "program.h"}},
      {"bench",
       {"report", "flags", "errors.h", "inputs.h", "output_file.h", "program.h", "progress.h"}}}},
};

/// The first `count` parts of a path, or nothing if it has no more parts than that.
std::optional<std::string> leading_folders(const std::string& path, int count) {
  const std::filesystem::path parts(path);
  if (std::distance(parts.begin(), parts.end()) <= count) return std::nullopt;
  std::filesystem::path folders;
  for (auto part = parts.begin(); part != std::next(parts.begin(), count); ++part) folders /= *part;
  return folders.generic_string();
}

/// The entry of kAllowed that a file of the tree falls under.
std::string room_folder(const std::string& file) {
  if (file.starts_with("include/" + kTower)) {
    return "src/" + leading_folders(file.substr(("include/" + kTower).size()), 1).value_or("");
  }
  return leading_folders(file, file.starts_with("examples/") ? 1 : 2).value_or("");
}

bool in_cuda_folder(const std::string& path) { return path.find("/cuda/") != std::string::npos; }

/// "models/qwen3_vl" for the headers of that folder; nothing for what all families share.
std::optional<std::string> family_of(const std::string& header) {
  const auto folder = leading_folders(header, 2);
  const bool is_family = folder && folder->starts_with("models/") && *folder != "models/common";
  return is_family ? folder : std::nullopt;
}

/// What is wrong with an arrow between two folders of `parent`, or "".
std::string objection_inside(const std::string& parent, const Arrows& allowed,
                             const std::string& file, const std::string& header) {
  const auto folder_of = [](const std::string& path, const std::string& above) {
    if (!path.starts_with(above)) return std::optional<std::string>();
    return std::optional(leading_folders(path.substr(above.size()), 1).value_or("."));
  };
  const auto from = folder_of(file, parent + "/");
  // Headers are named from the folder src on, those of a program from its own.
  const bool is_program = parent.starts_with("apps/");
  const auto to = folder_of(header, is_program ? "" : parent.substr(parent.find('/') + 1) + "/");
  if (!from || !to || *from == *to) return "";
  const bool is_room = is_program && *to != "." && !allowed.contains(*to);
  if (is_room) return "";
  const auto entry = allowed.find(*from);
  if (entry == allowed.end() && *from == ".") return "";
  if (entry == allowed.end())
    return "the folder " + *from + " of " + parent + " is not in the table";
  if (entry->second.contains(*to) || entry->second.contains(header)) return "";
  return "the folder " + *from + " must not know " + header;
}

/// What is wrong with `#include "named"` in a file of the tree, or "".
std::string arrow_objection(const std::string& file, const std::string& named) {
  const bool is_public = named.starts_with("fovea/");
  if (file.starts_with("include/") && !is_public) return "public headers include public ones";
  const std::string folder = room_folder(file);
  if (named == "fovea/tower.h" && folder != "examples") return "it is for towers elsewhere";
  // The header that includes all others, and the one that all may include.
  if (file == "include/fovea/tower.h" || named == kTower + "version.h") return "";
  if (named.starts_with(kTower) && (folder.starts_with("apps/") || folder == "src/serve"))
    return "it is for towers";
  const std::string header = named.starts_with(kTower) ? named.substr(kTower.size()) : named;
  const auto allowed = kAllowed.find(folder);
  if (allowed == kAllowed.end()) return "the folder is not in the table";
  const auto room = leading_folders(header, 1);
  if (room == "fovea") return "";
  // A program's own headers stand beside its sources.
  const bool is_program = folder.starts_with("apps/") || folder == "examples";
  if (!room && !is_program) return "the header is named without its room";
  if (room && folder != "src/" + *room && !allowed->second.contains(*room) &&
      !allowed->second.contains(header))
    return folder + " must not know " + header;
  if (in_cuda_folder(header) && !in_cuda_folder(file))
    return "only files in a cuda folder may know CUDA headers";
  for (const auto& [parent, arrows] : kAllowedInside) {
    std::string found = objection_inside(parent, arrows, file, header);
    if (!found.empty()) return found;
  }
  const auto family = family_of(header);
  if (family && !file.starts_with("src/" + *family + "/") && file != "src/models/registry.cpp")
    return "only its own folder and the registry may know " + *family;
  return "";
}

/// Calls use(file, line, header) for every include of the files below `folder`.
void for_each_include(const std::string& folder, const std::regex& include,
                      const std::function<void(const std::string& file, const std::string& line,
                                               const std::string& header)>& use) {
  for (const std::string& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
    for (const std::string& line : read_lines(file)) {
      if (std::smatch match; std::regex_search(line, match, include)) use(file, line, match[1]);
    }
  }
}

const std::regex kQuoted(R"re(^\s*#\s*include\s*"([^"]+)")re");
const std::regex kAngled(R"re(^\s*#\s*include\s*<([^>]+)>)re");

TEST(IncludeArrows, PointDownwards) {
  for (const std::string folder : {"src", "include", "apps", "examples"}) {
    int num_includes = 0;
    for_each_include(folder, kQuoted, [&](const auto& file, const auto& line, const auto& header) {
      EXPECT_EQ(arrow_objection(file, header), "") << file << ": " << line;
      ++num_includes;
    });
    if (folder == "src" || folder == "include") {
      EXPECT_GT(num_includes, 0) << folder;
    }
  }
}

/// A reader of the public headers needs nothing that Fovea does not install.
TEST(IncludeArrows, OfPublicHeadersEndInTheStandardLibrary) {
  for_each_include("include", kAngled, [](const auto& file, const auto& line, const auto& header) {
    EXPECT_EQ(header.find_first_of("./"), std::string::npos) << file << ": " << line;
  });
}

/// Tests compare with it; the product reads and writes JSON by core/json.h and core/json_writer.h.
TEST(IncludeArrows, OfTheProductNeverReachTheJsonLibrary) {
  for (const char* folder : {"src", "apps", "python/bindings"}) {
    for_each_include(folder, kAngled, [](const auto& file, const auto& line, const auto& header) {
      EXPECT_FALSE(header.starts_with("nlohmann/")) << file << ": " << line;
    });
  }
}

struct Arrow {
  const char* file;
  const char* header;
};

TEST(IncludeArrowsTable, AllowsWhatTheHouseAllows) {
  const Arrow arrows[] = {{"src/core/json.cpp", "core/json.h"},
                          {"src/core/check.h", "fovea/error.h"},
                          {"src/device/device.h", "core/check.h"},
                          {"src/ops/norm.cpp", "device/device.h"},
                          {"src/models/qwen3_vl/forward.cpp", "ops/norm.h"},
                          {"src/models/qwen3_vl/forward.cpp", "models/qwen3_vl/model.h"},
                          {"src/models/qwen3_vl/forward.cpp", "models/common/weight_loader.h"},
                          {"src/models/registry.cpp", "models/qwen3_vl/model.h"},
                          {"src/graph/packing.h", "models/encoder_graph_model.h"},
                          {"src/graph/packing.h", "models/item_processor.h"},
                          {"src/graph/input_block.h", "models/inputs.h"},
                          {"src/ops/cpu/cpu_kernels.cpp", "ops/steps.h"},
                          {"src/ops/cpu/isa/avx2.cpp", "ops/cpu/attention/int16/body.h"},
                          {"src/ops/cpu/gemm/gemm.cpp", "ops/cpu/rowwise/row_loop.h"},
                          {"src/ops/cuda/rowwise/norm.cu", "device/cuda/handles.h"},
                          {"src/rows/row_cache.h", "device/device.h"},
                          {"src/ops/cuda/cuda_kernels.cpp", "ops/cuda/attention/attention.h"},
                          {"src/ops/cuda/cuda_kernels.cpp", "ops/cuda/kernel_sets.h"},
                          {"src/ops/cuda/gemm/hopper/heads.cuh", "ops/cuda/gemm/gemm.h"},
                          {"src/ops/cuda/attention/attention.h", "ops/cuda/gemm/gemm.h"},
                          {"src/ops/cuda/ptx/ring.cuh", "ops/cuda/common/lanes.cuh"},
                          {"src/engine/engine.cpp", "graph/graph_manager.h"},
                          {"src/engine/engine.cpp", "rows/row_cache.h"},
                          {"src/engine/item.h", "engine/cached/item_key.h"},
                          {"src/engine/diagnostics/verify.cpp", "engine/engine_impl.h"},
                          {"src/engine/cached/item_key.cpp", "engine/prepare/check_item.h"},
                          {"src/serve/serve.cpp", "serve/routes/routes.h"},
                          {"src/serve/routes/fovea/plan.cpp", "serve/routes/encode_call.h"},
                          {"src/serve/http/session.cpp", "serve/text/url.h"},
                          {"src/serve/text/query.cpp", "serve/api_error.h"},
                          {"src/serve/media/fetcher.h", "serve/service/workers.h"},
                          {"src/ranks/rank_call.cpp", "engine/replicas/load_balance.h"},
                          {"src/ranks/group/hub.cpp", "ranks/transport/shared_memory.h"},
                          {"src/ranks/encode_on_ranks.cpp", "engine/row_gather.h"},
                          {"include/fovea/engine.h", "fovea/error.h"},
                          {"include/fovea/tower.h", "fovea/tower/ops/norm.h"},
                          {"include/fovea/tower/ops/norm.h", "fovea/tower/core/shape.h"},
                          {"include/fovea/tower/graph/graph_manager.h", "fovea/tower/version.h"},
                          {"src/graph/packing.h", "fovea/tower/models/item_processor.h"},
                          {"apps/cli/main.cpp", "fovea/fovea.h"},
                          {"apps/cli/main.cpp", "text.h"},
                          {"apps/cli/program.cpp", "vllm/translation.h"},
                          {"apps/cli/vllm/translation.cpp", "flags/parse.h"},
                          {"apps/cli/bench/latency.cpp", "program.h"},
                          {"apps/cli/bench/cache/verb.cpp", "bench/random.h"},
                          {"apps/cli/report/report_json.h", "core/json_writer.h"},
                          {"apps/cli/serve.cpp", "serve/serve.h"},
                          {"src/serve/text/json.h", "core/json.h"},
                          {"apps/cli/output_file.cpp", "core/file_descriptor.h"},
                          {"examples/own_tower/main.cpp", "fovea/tower.h"},
                          {"examples/own_tower/main.cpp", "vit.h"}};
  for (const auto& [file, header] : arrows) EXPECT_EQ(arrow_objection(file, header), "") << file;
}

TEST(IncludeArrowsTable, RefusesWhatTheHouseRefuses) {
  const Arrow arrows[] = {{"src/core/json.cpp", "device/device.h"},
                          {"src/device/memory.cpp", "ops/kernels.h"},
                          {"src/media/resize/resize.cpp", "checkpoint/hf_config.h"},
                          {"src/checkpoint/hf_config.cpp", "media/image.h"},
                          {"src/ops/norm.cpp", "models/encoder_graph_model.h"},
                          {"src/models/registry.cpp", "graph/packing.h"},
                          {"src/graph/packing.cpp", "models/registry.h"},
                          {"src/graph/packing.cpp", "ops/norm.h"},
                          {"src/graph/packing.cpp", "media/image.h"},
                          {"src/rows/row_cache.h", "engine/engine_impl.h"},
                          {"src/rows/row_cache.h", "cache/merge_copies.h"},
                          {"src/engine/backend.cpp", "device/cuda/handles.h"},
                          {"src/device/memory.cpp", "device/cpu/cpu_device.h"},
                          {"src/ops/norm.cpp", "ops/cpu/cpu_kernels.h"},
                          {"src/ops/cpu/rowwise/norm.cpp", "ops/cpu/isa/isa_kernels.h"},
                          {"src/ops/cpu/attention/attention.cpp", "ops/cpu/gemm/task_shape.h"},
                          {"src/ops/cpu/isa/avx2.cpp", "ops/cpu/cpu_kernels.h"},
                          {"src/ops/cuda/common/launch.cuh", "ops/cuda/kernel_sets.h"},
                          {"src/ops/cuda/common/launch.cuh", "ops/cuda/ptx/ptx.cuh"},
                          {"src/ops/cuda/gemm/hopper/heads.cuh", "ops/cuda/attention/work.h"},
                          {"src/ops/cuda/rowwise/gated.cu", "ops/cuda/gemm/unfused.h"},
                          {"src/ops/cuda/attic/old.cu", "ops/cuda/common/launch.cuh"},
                          {"src/engine/prepare/check_item.h", "engine/cached/item_key.h"},
                          {"src/engine/replicas/replica_group.h", "engine/engine_impl.h"},
                          {"src/engine/cached/item_key.h", "engine/item.h"},
                          {"src/engine/engine.cpp", "engine/diagnostics/compare.h"},
                          {"src/serve/text/headers.h", "serve/http/message.h"},
                          {"src/serve/service/service.h", "serve/media/fetcher.h"},
                          {"src/serve/http/session.h", "serve/service/workers.h"},
                          {"src/serve/http/session.h", "serve/log.h"},
                          {"src/serve/routes/openai/embeddings.cpp", "serve/routes/vllm/routes.h"},
                          {"src/serve/routes/encode_call.cpp", "serve/routes/vllm/routes.h"},
                          {"src/serve/attic/old.cpp", "serve/http/message.h"},
                          {"src/engine/engine.cpp", "models/qwen3_vl/model.h"},
                          {"src/engine/engine.cpp", "ranks/transport/message.h"},
                          {"src/ranks/transport/address.cpp", "ranks/group/hub.h"},
                          {"src/ranks/group/communicator.cpp", "ranks/description.h"},
                          {"src/ranks/encode_on_ranks.cpp", "engine/engine_impl.h"},
                          {"src/batcher/batcher.cpp", "engine/engine_impl.h"},
                          {"src/models/glm4v/forward.cpp", "models/qwen3_vl/model.h"},
                          {"src/models/common/mlp.cpp", "models/qwen3_vl/config.h"},
                          {"include/fovea/engine.h", "core/shape.h"},
                          {"include/fovea/engine.h", "fovea/tower/core/shape.h"},
                          {"include/fovea/tower/ops/norm.h", "core/check.h"},
                          {"include/fovea/tower/ops/norm.h", "fovea/tower/models/inputs.h"},
                          {"src/device/memory.cpp", "fovea/tower/ops/norm.h"},
                          {"apps/cli/main.cpp", "fovea/tower/core/shape.h"},
                          {"apps/cli/main.cpp", "fovea/tower.h"},
                          {"src/graph/packing.cpp", "fovea/tower.h"},
                          {"apps/cli/main.cpp", "engine/engine_impl.h"},
                          {"apps/cli/report/text.cpp", "errors.h"},
                          {"apps/cli/flags/flags.cpp", "bench/bench.h"},
                          {"apps/cli/flags/flags.cpp", "program.h"},
                          {"apps/cli/shards/lines.cpp", "bench/samples.h"},
                          {"apps/cli/bench/latency.cpp", "vllm/translation.h"},
                          {"apps/cli/attic/old.cpp", "flags/flags.h"},
                          {"src/serve/serve.cpp", "device/device.h"},
                          {"src/serve/serve.cpp", "fovea/tower/core/shape.h"},
                          {"src/serve/serve.cpp", "flags/flags.h"},
                          {"examples/embed.cpp", "core/shape.h"},
                          {"src/core/json.cpp", "json.h"},
                          {"src/attic/old.cpp", "core/json.h"}};
  for (const auto& [file, header] : arrows) EXPECT_NE(arrow_objection(file, header), "") << file;
}

TEST(IncludeArrowsTable, ListsTheRoomsThatExist) {
  for (const auto& entry : std::filesystem::directory_iterator(source_root() / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(kAllowed.contains("src/" + entry.path().filename().string())) << entry.path();
  }
  for (const auto& [folder, rooms] : kAllowed) {
    EXPECT_TRUE(std::filesystem::is_directory(source_root() / folder)) << folder;
  }
  for (const auto& [parent, arrows] : kAllowedInside) {
    for (const auto& [folder, others] : arrows)
      EXPECT_TRUE(std::filesystem::is_directory(source_root() / parent / folder)) << folder;
  }
}

}  // namespace
}  // namespace fovea::test
