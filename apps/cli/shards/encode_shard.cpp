// fovea encode --shard: a list of any length into parts, and a manifest that says what is done.
#include "shards/encode_shard.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <optional>
#include <utility>

#include "core/fnv1a.h"
#include "core/stopwatch.h"
#include "errors.h"
#include "flags/cache_size.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "fovea/fovea.h"
#include "fovea/option_text.h"
#include "listed_item.h"
#include "progress.h"
#include "report/text.h"
#include "shards/encode_calls.h"
#include "shards/shard_folder.h"
#include "shards/shard_list.h"
#include "shards/stop_signals.h"

namespace fovea::cli {
namespace {

/// The fingerprint of a model and the keys of rows come from the encoder cache.
constexpr std::int64_t kCacheBytes = std::int64_t{64} << 20;

/// Failed items that are named on stderr.
constexpr std::int64_t kMostWarnings = 10;

/// Size and time of the last change; both 0 for what the engine will not find.
struct FileState {
  std::int64_t size = 0;
  std::int64_t mtime_ns = 0;
  bool is_gone = false;  ///< nothing has this path; what cannot be looked at may be there
};

FileState state_of(const std::string& path) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return {.is_gone = errno == ENOENT || errno == ENOTDIR};
  }
  const bool is_folder = S_ISDIR(status.st_mode);
  return {.size = is_folder ? 0 : status.st_size,
          .mtime_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec};
}

/// The state of an item before it is encoded. A folder of frames changes when one of them does, or
/// another one comes: in the place of its time is a hash of that and of all sizes and times.
FileState state_of(const ListedItem& listed, const std::optional<MediaItem>& item) {
  FileState state = state_of(listed.path);
  if (!item || listed.modality == Modality::kImage) return state;
  for (const std::string& path : item->paths()) {
    if (path == listed.path) continue;  // a container
    const FileState frame = state_of(path);
    state.size += frame.size;
    for (const std::int64_t number : {frame.size, frame.mtime_ns}) {
      const auto sum =
          static_cast<std::uint64_t>(state.mtime_ns) + static_cast<std::uint64_t>(number);
      state.mtime_ns = static_cast<std::int64_t>(mix64(sum) >> 1);
    }
  }
  return state;
}

/// One run.
class ShardRun {
 public:
  ShardRun(const ShardJob& job, Console& console)
      : job_(job),
        console_(console),
        bounds_{.stop = signals_.token(), .deadline = job.bounds.deadline},
        list_(read_list()),
        folder_(job.folder, manifest_header(job), job.flags.resume) {
    if (list_.listed() == 0) throw Error(ErrorCode::kNotFound, "INPUT: the list names no file");
  }

  void run() {
    Engine engine = load();
    folder_.begin(engine.fingerprint());
    try {
      encode(engine);
    } catch (const Error& error) {
      end_early(error);
    }
    folder_.finish({.items = list_.size()});
    report_failed();
    if (job_.table) print_report(engine);
  }

 private:
  ShardList read_list() {
    const Progress reading(console_, "reading the list");
    return {job_.inputs, *job_.flags.shard, bounds_};
  }

  Engine load() {
    EngineOptions options = engine_options(job_.engine, console_);
    check_limits(job_.engine, options);
    if (options.encoder_cache_bytes == 0 && options.encoder_device_cache_size == 0) {
      options.encoder_cache_bytes = kCacheBytes;
    }
    const Progress loading(console_, "loading " + job_.engine.model);
    Engine engine = Engine::load(job_.engine.model, options, bounds_);
    check_item_options(engine, job_.items.mm_processor_kwargs);
    return engine;
  }

  void encode(Engine& engine) {
    // What is there already takes no time, so the progress is that of the others.
    known_ahead_ = list_.count_if([this](const PathDigest& digest) { return folder_.has(digest); });
    Progress progress(console_, "encoding", list_.size() - known_ahead_);
    EncodeCalls calls(
        engine,
        {.dtype = row_dtype(job_.dtype),
         .on_error = OnError::kSkip,
         .progress = [&](std::int64_t done, std::int64_t) { progress.set_done(done); },
         .bounds = bounds_},
        [&](std::vector<ItemLine> files, std::vector<Embedding> rows) {
          take(std::move(files), std::move(rows));
        });
    list_.for_each([&](const ListedItem& listed, const PathDigest& digest) {
      if (folder_.has(digest)) --known_ahead_;
      visit(listed, digest, calls);
      progress.set_total(list_.size() - known_ahead_ - settled_);
    });
    calls.finish();
    write_part();
    list_.require_all_used();
  }

  /// Has an item encoded, unless its rows are there. Those of a file that is gone stay: nothing
  /// newer is known of it.
  void visit(const ListedItem& listed, const PathDigest& digest, EncodeCalls& calls) {
    std::optional<MediaItem> item;
    std::optional<Error> error;
    try {
      item = media_item(listed, job_.items);
    } catch (const Error& failure) {
      error = failure;
    }
    const FileState state = state_of(listed, item);
    ItemLine line{.name = name_of(listed), .size = state.size, .mtime_ns = state.mtime_ns};
    if (state.is_gone ? folder_.has(digest) : folder_.has(digest, state.size, state.mtime_ns)) {
      ++skipped_;
      ++settled_;
    } else if (item) {
      calls.add(std::move(line), std::move(*item));
    } else {
      ++settled_;
      Embedding failed;
      failed.error = std::move(error);
      take(std::move(line), std::move(failed));
    }
  }

  void take(std::vector<ItemLine> files, std::vector<Embedding> rows) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      take(std::move(files[i]), std::move(rows[i]));
    }
  }

  void take(ItemLine file, Embedding item) {
    if (item.error) {
      if (failed_++ < kMostWarnings) {
        console_.warn(std::string("not encoded: ") + item.error->what());
      }
      if (!first_error_) first_error_ = item.error;
      file.error = item.error->what();
    } else {
      ++encoded_;
      not_finite_ += item.is_finite() ? 0 : 1;
      file.rows = item.rows;
      file.width = item.width;
      file.grid_thw = item.grid_thw;
      file.key = item.key;
      part_bytes_ += static_cast<std::int64_t>(item.data.size());
      rows_.push_back(std::move(item));
    }
    files_.push_back(std::move(file));
    if (part_bytes_ >= job_.flags.part_bytes || std::ssize(files_) == kMaxItemsOfPart) write_part();
  }

  void write_part() {
    if (files_.empty()) return;
    const bool has_rows = !rows_.empty();
    written_bytes_ += folder_.add_part(std::exchange(files_, {}), std::exchange(rows_, {}));
    parts_ += has_rows ? 1 : 0;
    part_bytes_ = 0;
  }

  /// Keeps what is encoded, unless it could not be written.
  [[noreturn]] void end_early(const Error& error) {
    if (error.code() == ErrorCode::kIo) throw error;
    write_part();
    const bool asked =
        error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
    if (!asked) throw error;
    throw Error(
        error.code(),
        (error.code() == ErrorCode::kCancelled ? "stopped" : "not done before its deadline") +
            std::string(": ") + std::to_string(skipped_ + encoded_) + " of " +
            counted(list_.size(), "item") + " are in " + job_.folder + "; --resume goes on");
  }

  void report_failed() {
    if (not_finite_ > 0) {
      console_.warn(counted(not_finite_, "item") + " with values that are not finite");
    }
    if (failed_ == 0) return;
    const std::string number = std::to_string(failed_) + " of " + counted(list_.size(), "item");
    if (!folder_.has_rows()) {
      throw Error(first_error_->code(),
                  "none of " + counted(list_.size(), "item") +
                      " could be encoded; the first: " + first_error_->what());
    }
    console_.warn(number + " failed; " + manifest_name(*job_.flags.shard) +
                  " says why, and --resume tries them again");
  }

  void print_report(const Engine& engine) {
    std::cout << "shard   " << job_.flags.shard->index << " of " << job_.flags.shard->count << ": "
              << list_.size() << " of " << counted(list_.listed(), "item") << "\n"
              << "items   " << encoded_ << " encoded, " << skipped_ << " were there, " << failed_
              << " failed\n"
              << "device  " << engine.device() << "\n"
              << "time    " << fixed(watch_.elapsed_seconds(), 1) << " s\n"
              << "output  " << job_.folder << ", " << counted(parts_, "new part") << ", "
              << bytes_text(static_cast<std::size_t>(written_bytes_)) << "\n";
  }

  const ShardJob& job_;
  Console& console_;
  const Stopwatch watch_;
  StopSignals signals_;  // before the threads of the engine
  CallBounds bounds_;
  ShardList list_;
  ShardFolder folder_;
  std::vector<ItemLine> files_;  // of the open part
  std::vector<Embedding> rows_;
  std::int64_t part_bytes_ = 0;
  std::int64_t parts_ = 0;
  std::int64_t written_bytes_ = 0;
  std::int64_t encoded_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t known_ahead_ = 0;  // items that have rows and were not looked at yet
  std::int64_t settled_ = 0;      // items that were looked at and not given to the engine
  std::int64_t failed_ = 0;
  std::int64_t not_finite_ = 0;
  std::optional<Error> first_error_;
};

void refuse_pixel_values(std::span<const InputArgument> inputs) {
  for (const InputArgument& input : inputs) {
    if (!input.pixel_values) continue;
    throw UsageError(
        "--shard: expected images, videos and lists of them alone, got --pixel-values " +
        input.text);
  }
}

}  // namespace

ManifestHeader manifest_header(const ShardJob& job) {
  OptionTexts options = option_texts(job.engine.options);
  options.merge(option_texts(EncodeOptions{.dtype = row_dtype(job.dtype)}));
  options.emplace("fps", option_text(job.items.fps));
  const std::string& kwargs = job.items.mm_processor_kwargs;
  options.emplace("mm_processor_kwargs",
                  kwargs.empty() ? kwargs : kwargs_text(kwargs, "--mm-processor-kwargs"));
  return {.shard = *job.flags.shard,
          .model = model_name(job.engine.model),
          .fingerprint = {},
          .options = std::move(options)};
}

void add_shard_flags(CLI::App& verb, ShardFlags& flags, std::span<const char* const> others) {
  CLI::Option* shard =
      verb.add_option_function<std::string>(
              "--shard",
              [&flags](const std::string& text) { flags.shard = parse_shard(text, "--shard"); },
              "Encode the items of shard I of N, from 0, into parts in the "
              "directory --output, with a manifest")
          ->type_name("I/N")
          ->group(kOutputGroup);
  for (const char* other : others) shard->excludes(verb.get_option(other));
  verb.add_flag("--resume", flags.resume, "With --shard: go on where an earlier run ended")
      ->needs(shard)
      ->group(kOutputGroup);
  verb.add_option_function<std::string>(
          "--shard-size",
          [&flags](const std::string& text) {
            flags.part_bytes = parse_bytes(text, "--shard-size");
          },
          "With --shard: begin a new part when one has so many bytes, which are in memory until "
          "then: 256Mi, 4G (default: 1Gi)")
      ->needs(shard)
      ->type_name("BYTES")
      ->group(kOutputGroup);
}

int encode_shard(const ShardJob& job, Console& console) {
  refuse_pixel_values(job.inputs);
  ShardRun(job, console).run();
  return kExitOk;
}

}  // namespace fovea::cli
