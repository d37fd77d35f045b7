// A model from the hub to the disk: what it consists of, file by file into the hub cache or a
// folder, and last the name under which others find it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "core/boundary.h"
#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "fovea/hub.h"
#include "hub/download.h"
#include "hub/file_lock.h"
#include "hub/model_files.h"
#include "hub/place.h"
#include "hub/repository.h"

namespace fovea::hub {
namespace {

namespace fs = std::filesystem;

/// Where a folder keeps what huggingface_hub keeps there, too, while it downloads into one.
constexpr const char* kWorkFolder = "/.cache/huggingface/download/";
constexpr std::chrono::milliseconds kBetweenCalls{100};

void make_folders(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  FOVEA_CHECK(!failure, kIo, folder.string(), ": cannot make this folder: ", failure.message());
}

/// What a call has downloaded so far.
class Tally {
 public:
  explicit Tally(const PullOptions& options) : options_(options) {}

  void add_total(std::uint64_t bytes) { progress_.total_bytes += bytes; }
  void begin(const std::string& file) {
    progress_.file = file;
    before_ = progress_.done_bytes;
    tell();
  }
  void at(std::uint64_t bytes_of_file) {
    progress_.done_bytes = before_ + bytes_of_file;
    if (std::chrono::steady_clock::now() - told_ >= kBetweenCalls) tell();
  }

 private:
  void tell() {
    told_ = std::chrono::steady_clock::now();
    if (options_.progress) call_back(options_.progress, progress_);
  }

  const PullOptions& options_;
  PullProgress progress_;
  std::uint64_t before_ = 0;
  std::chrono::steady_clock::time_point told_;
};

/// The place of a snapshot on this machine: a folder of the hub cache, or one of the caller.
class Home {
 public:
  Home(const Repository& repository, const Snapshot& snapshot, const PullOptions& options)
      : output_(options.output) {
    if (!output_.empty()) return;
    const std::string cache = hub_cache_dir();
    FOVEA_CHECK(!cache.empty(), kNotFound,
                "expected HF_HOME or HOME, below which the hub cache lies, or an output folder");
    const std::string folder = repository_folder(repository.name(), HubKind::kModel);
    repository_ = cache + "/" + folder;
    locks_ = cache + "/.locks/" + folder;
    snapshot_ = repository_ + "/snapshots/" + snapshot.commit;
  }

  [[nodiscard]] const std::string& directory() const {
    return output_.empty() ? snapshot_ : output_;
  }
  [[nodiscard]] FilePaths paths(const HubFile& file) const {
    if (output_.empty()) {
      const std::string blob = repository_ + "/blobs/" + file.etag;
      return {.lock = locks_ + "/" + file.etag + ".lock",
              .partial = blob + ".incomplete",
              .final = blob};
    }
    const std::string work = output_ + kWorkFolder + file.name;
    return {.lock = work + ".lock",
            .partial = work + "." + file.etag + ".incomplete",
            .final = output_ + "/" + file.name};
  }
  /// Requires a folder without files of another model that an engine would read, too.
  void check(const Snapshot& snapshot, const std::string& name) const {
    if (output_.empty() || !directory_exists(output_)) return;
    for (const std::string& file : list_directory(output_)) {
      FOVEA_CHECK(!is_foreign(snapshot.files, file), kInvalidArgument, output_, ": holds ", file,
                  ", which ", name, " at ", snapshot.commit,
                  " does not have; choose another folder, or remove this file");
    }
  }
  /// Whether names of files are their digests.
  [[nodiscard]] bool names_are_digests() const noexcept { return output_.empty(); }

  /// Makes a file that is there part of the snapshot.
  void add(const HubFile& file, LogSink* log) const {
    if (!output_.empty()) return;
    const fs::path link = fs::path(snapshot_) / file.name;
    const fs::path blob = fs::path(repository_) / "blobs" / file.etag;
    make_folders(link.parent_path());
    const fs::path target = blob.lexically_relative(link.parent_path());
    std::error_code failure;
    const auto is_there = [&] { return fs::read_symlink(link, failure) == target; };
    if (is_there()) return;
    const FileLock lock(paths(file).lock, log);  // the name of the fresh link is that of all pulls
    if (is_there()) return;
    const fs::path fresh = link.string() + ".incomplete";
    fs::remove(fresh, failure);
    fs::create_symlink(target, fresh, failure);
    if (!failure) fs::rename(fresh, link, failure);
    FOVEA_CHECK(!failure, kIo, link.string(), ": cannot link to ", target.string(), ": ",
                failure.message());
  }

  /// Lets a branch or tag stand for the snapshot.
  void name(const std::string& revision, const std::string& commit) const {
    if (!output_.empty() || revision == commit) return;
    replace_file(repository_ + "/refs/" + revision, commit);
  }

 private:
  std::string output_;
  std::string repository_;
  std::string locks_;
  std::string snapshot_;
};

/// One call of pull_model().
class Pull {
 public:
  Pull(Place place, const std::string& name, const PullOptions& options)
      : options_(options),
        repository_(std::move(place), name),
        snapshot_(repository_.snapshot(options.revision)),
        home_(repository_, snapshot_, options),
        tally_(options) {}

  std::string run() {
    log_to(options_.log, LogLevel::kInfo,
           cat("hub.pull model=", repository_.name(), " commit=", snapshot_.commit, " directory=\"",
               home_.directory(), "\""));
    const std::vector<std::string> description = description_files(snapshot_.files);
    const bool has_config = std::ranges::any_of(description, [](const std::string& name) {
      return name == "config.json" || name == "adapter_config.json";  // which is refused by name
    });
    FOVEA_CHECK(has_config, kNotFound, repository_.name(),
                ": expected a model with config.json, found none among ", snapshot_.files.size(),
                " files");
    home_.check(snapshot_, repository_.name());
    get(description);
    get(weight_files(snapshot_.files, home_.directory(), repository_.name()));
    home_.name(options_.revision, snapshot_.commit);
    return home_.directory();
  }

 private:
  void get(const std::vector<std::string>& names) {
    std::vector<HubFile> files;
    for (const std::string& name : names) {
      FOVEA_CHECK(std::ranges::find(snapshot_.files, name) != snapshot_.files.end(), kNotFound,
                  repository_.name(), ": the index names ", name, ", which the hub does not have");
      files.push_back(repository_.file(snapshot_, name));
      tally_.add_total(files.back().size);
    }
    for (const HubFile& file : files) {
      tally_.begin(file.name);
      download(
          repository_, file, home_.paths(file), home_.names_are_digests(),
          {.on_bytes = [this](std::uint64_t bytes) { tally_.at(bytes); }, .log = options_.log});
      home_.add(file, options_.log);
    }
  }

  const PullOptions& options_;
  Repository repository_;
  Snapshot snapshot_;
  Home home_;
  Tally tally_;
};

}  // namespace
}  // namespace fovea::hub

namespace fovea {

std::string pull_model(const std::string& name, const PullOptions& options,
                       const CallBounds& bounds) try {
  const CallScope scope(bounds, "pull");
  FOVEA_CHECK(is_hub_name(name), kInvalidArgument,
              "expected the name of a model on the hub, <organisation>/<name>, got \"", name, "\"");
  FOVEA_CHECK(hub::is_revision(options.revision), kInvalidArgument, name,
              ": expected a branch, a tag or a commit as revision, got \"", options.revision, "\"");
  hub::Place place = hub::place_of_environment();
  FOVEA_CHECK(!place.is_offline, kUnavailable, name,
              ": expected to ask the hub, but HF_HUB_OFFLINE is set");
  return hub::Pull(std::move(place), name, options).run();
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
