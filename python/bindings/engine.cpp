#include "engine.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "embedding.h"
#include "errors.h"
#include "fovea/batcher.h"
#include "fovea/engine.h"
#include "fovea/media_io.h"
#include "log.h"
#include "media.h"
#include "names.h"
#include "options.h"
#include "paths.h"
#include "signals.h"
#include "tensors.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

constexpr std::array kOnError{Named<OnError>{"raise", OnError::kFail},
                              Named<OnError>{"record", OnError::kSkip}};

/// @throws the first of the errors, unless items are returned with theirs.
void throw_first(const ItemErrors& unreadable, OnError on_error) {
  if (on_error == OnError::kFail && !unreadable.empty()) throw Error(unreadable.begin()->second);
}

/// Puts errors of items that could not be read in the place of those that the engine found.
void put_errors(const ItemErrors& unreadable, std::vector<Embedding>& embeddings) {
  for (const auto& [place, error] : unreadable) {
    if (embeddings[place].error) embeddings[place].error = error;
  }
}

/// A callable that threads without the GIL may hold and let go.
class Callback {
 public:
  /// @param unreadable of the items that it is called with.
  Callback(nb::object callable, ItemErrors unreadable)
      : unreadable_(std::move(unreadable)),
        callable_(new nb::object(std::move(callable)), [](nb::object* object) {
          const AnyGil gil;
          if (gil) delete object;  // else it goes with the process
        }) {}

  /// Calls it with the items, or with the error.
  void operator()(BatchReply reply) const {
    const AnyGil gil;
    if (!gil) return;
    if (!reply.error) put_errors(unreadable_, reply.items);
    try {
      if (reply.error) {
        (*callable_)(nb::none(), error_object(*reply.error));
      } else {
        (*callable_)(embedding_list(std::move(reply.items)), nb::none());
      }
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("fovea: a callback");
    }
  }

 private:
  ItemErrors unreadable_;
  std::shared_ptr<nb::object> callable_;
};

/// A name, an element type as safetensors files call it, and sizes.
using TensorListing = std::tuple<std::string, std::string, std::vector<std::int64_t>>;

/// @param read called as read(index, memoryview). It outlives the tensors.
WeightTensors weight_tensors(const std::vector<TensorListing>& listings, nb::handle read) {
  WeightTensors tensors;
  tensors.listings.reserve(listings.size());
  for (const auto& [name, dtype, shape] : listings) {
    tensors.listings.push_back({.name = name, .dtype = dtype, .shape = shape});
  }
  tensors.read = [read](std::size_t index, std::span<std::byte> out) {
    if (out.empty()) return;
    const nb::gil_scoped_acquire acquire;
    const nb::object room = nb::steal(PyMemoryView_FromMemory(
        reinterpret_cast<char*>(out.data()), static_cast<Py_ssize_t>(out.size()), PyBUF_WRITE));
    if (!room.is_valid()) throw nb::python_error();
    read(index, room);
  };
  return tensors;
}

/// Items with their plans, which both stay as they are.
struct PlannedItems {
  std::vector<PlannedItem> items;
  ItemErrors unreadable;

  [[nodiscard]] std::vector<std::optional<std::int64_t>> rows() const {
    std::vector<std::optional<std::int64_t>> rows;
    for (const PlannedItem& item : items) rows.push_back(item.rows());
    return rows;
  }
};

/// An engine, its batcher from the first request on, and its log. The GIL is never held while one
/// of them is called: their threads write log lines.
class PythonEngine {
 public:
  /// @param weights tensors of the caller; none: those of the files.
  PythonEngine(const std::string& path, const nb::dict& options,
               const std::optional<WeightTensors>& weights)
      : options_(engine_options(options)) {
    const Call call;
    options_.log = &log_;
    run_interruptibly(call, [&](std::stop_token stop) {
      const CallBounds bounds{.stop = std::move(stop)};
      engine_ =
          std::make_unique<Engine>(weights ? Engine::from_weights(path, *weights, options_, bounds)
                                           : Engine::load(path, options_, bounds));
    });
  }
  PythonEngine(const PythonEngine&) = delete;
  PythonEngine& operator=(const PythonEngine&) = delete;

  ~PythonEngine() {
    if (is_forked()) {  // its threads are not here: nothing of it can be ended
      static_cast<void>(batcher_.release());
      static_cast<void>(engine_.release());
      return;
    }
    const Call call;  // of the thread that lets go of the last reference, whichever that is
    const WithoutGil release(call);
    batcher_.reset();
    engine_.reset();
  }

  nb::list encode(const PlannedItems& planned, const std::string& dtype,
                  const std::string& on_error, bool enforce_eager, bool use_cache) {
    const PreparedCall call(*this);
    EncodeOptions options = encode_options(dtype, on_error);
    options.enforce_eager = enforce_eager;
    options.use_cache = use_cache;
    throw_first(planned.unreadable, options.on_error);
    std::vector<Embedding> embeddings;
    run_interruptibly(call, [&](std::stop_token stop) {
      options.bounds.stop = std::move(stop);
      embeddings = engine_->encode(planned.items, options);
    });
    put_errors(planned.unreadable, embeddings);
    return embedding_list(std::move(embeddings));
  }

  nb::list encode_into(const PlannedItems& planned, const nb::list& tensors,
                       const CallerStream& stream, const std::string& on_error, bool enforce_eager,
                       bool use_cache) {
    const PreparedCall call(*this);
    const std::vector<RowBlock> blocks = row_blocks(tensors, engine_->report().width, "out");
    EncodeOptions options{.on_error = value_named(kOnError, on_error, "on_error"),
                          .enforce_eager = enforce_eager,
                          .use_cache = use_cache};
    throw_first(planned.unreadable, options.on_error);
    std::vector<Embedding> embeddings;
    run_interruptibly(call, [&](std::stop_token stop) {
      options.bounds.stop = std::move(stop);
      embeddings = engine_->encode(planned.items, blocks, stream, options);
    });
    put_errors(planned.unreadable, embeddings);
    return embedding_list(std::move(embeddings));
  }

  PlannedItems plan_items(const nb::list& images, const nb::list& videos, double fps,
                          const std::vector<std::string>& options) {
    const PreparedCall call(*this);
    GivenItems given = items_of(call, images, videos, fps, options);
    PlannedItems planned{.items = {}, .unreadable = std::move(given.unreadable)};
    run_interruptibly(call, [&](std::stop_token stop) {
      planned.items = engine_->plan_items(std::move(given.items), {.stop = std::move(stop)});
    });
    return planned;
  }

  std::uint64_t submit(const nb::list& images, const nb::list& videos, double fps,
                       const std::vector<std::string>& kwargs, const std::string& dtype,
                       const std::string& on_error, nb::object done) {
    const PreparedCall call(*this);
    GivenItems given = items_of(call, images, videos, fps, kwargs);
    const EncodeOptions options = encode_options(dtype, on_error);
    throw_first(given.unreadable, options.on_error);
    Callback callback(std::move(done), std::move(given.unreadable));
    const WithoutGil release(call);
    return batcher().submit(std::move(given.items), options, std::move(callback)).number;
  }

  bool cancel(std::uint64_t ticket) {
    const PreparedCall call(*this);
    const WithoutGil release(call);
    return batcher().cancel({ticket});
  }

  PackingPlan plan(const std::vector<ItemSize>& sizes) {
    const PreparedCall call(*this);
    const WithoutGil release(call);
    return engine_->plan(sizes);
  }

  void warm_up() {
    const PreparedCall call(*this);
    run_interruptibly(call,
                      [&](std::stop_token stop) { engine_->warm_up({.stop = std::move(stop)}); });
  }

  std::size_t trim() {
    const PreparedCall call(*this);
    const WithoutGil release(call);
    return engine_->trim();
  }

  nb::dict stats() {
    const PreparedCall call(*this);
    const Stats stats = [&] {
      const WithoutGil release(call);
      return engine_->stats();
    }();
    nb::dict counters;
    counters["graph_hits"] = stats.graph_hits;
    counters["graph_partial"] = stats.graph_partial;
    counters["graph_misses"] = stats.graph_misses;
    counters["skipped"] = stats.skipped;
    counters["sub_batches"] = stats.sub_batches;
    counters["units_reused"] = stats.units_reused;
    counters["cache_hits"] = stats.encoder_cache.hits;
    counters["cache_joins"] = stats.encoder_cache.joins;
    counters["cache_misses"] = stats.encoder_cache.misses;
    counters["cache_bytes"] = stats.encoder_cache.bytes;
    return counters;
  }

  [[nodiscard]] nb::dict options() const { return option_dict(options_); }

  /// The rate of videos that `media_io_kwargs` of vLLM ask for.
  [[nodiscard]] std::optional<double> media_io_fps(const std::string& kwargs) const {
    return read_media_io_kwargs(kwargs, "media_io_kwargs", options_.media).fps;
  }

  std::string device() {
    const PreparedCall call(*this);
    const WithoutGil release(call);
    return engine_->device();
  }

  const ModelReport& report() {
    const PreparedCall call(*this);
    return engine_->report();
  }

  /// Ends what calls Python from threads of its own, before the interpreter goes.
  void shut_down() {
    log_.mute();
    if (is_forked()) return;
    const nb::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    if (batcher_) batcher_->stop();
  }

 private:
  struct PreparedCall : Call {
    explicit PreparedCall(PythonEngine& engine) { engine.prepare(); }
  };

  [[nodiscard]] bool is_forked() const { return getpid() != process_; }

  void prepare() {
    if (is_forked()) {
      throw Error(ErrorCode::kUnsupported,
                  "this engine belongs to process " + std::to_string(process_) +
                      ", from which this one was forked without its threads: load an engine here, "
                      "or start processes with \"spawn\"");
    }
    log_.refresh();
  }

  /// @param kwargs MediaItem::mm_processor_kwargs of each; none: no item has any.
  [[nodiscard]] GivenItems items_of(const Call& call, const nb::list& images,
                                    const nb::list& videos, double fps,
                                    const std::vector<std::string>& kwargs) const {
    const Reading reading{.call = call, .limits = options_.media.limits, .fps = fps};
    GivenItems given;
    add_media_items(images, Modality::kImage, reading, given);
    add_media_items(videos, Modality::kVideo, reading, given);
    std::vector<MediaItem>& items = given.items;
    for (std::size_t i = 0; i < std::min(items.size(), kwargs.size()); ++i) {
      engine_->check_item_options(items[i].modality, kwargs[i]);
      items[i].mm_processor_kwargs = kwargs[i];
    }
    return given;
  }

  static EncodeOptions encode_options(const std::string& dtype, const std::string& on_error) {
    return {.dtype = value_named(kRowDTypes, dtype, "dtype"),
            .on_error = value_named(kOnError, on_error, "on_error")};
  }

  Batcher& batcher() {
    const std::lock_guard lock(mutex_);
    if (!batcher_) batcher_ = std::make_unique<Batcher>(*engine_);
    return *batcher_;
  }

  pid_t process_ = getpid();
  EngineOptions options_;
  PythonLog log_;  // first, because the others write to it to their end
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;  // of the pointer to the batcher
  std::unique_ptr<Batcher> batcher_;
};

/// @param size (width, height) or (width, height, frames), which makes a video.
ItemSize item_size(nb::handle object) {
  const auto numbers = nb::cast<std::vector<std::int64_t>>(object);
  if (numbers.size() == 2) return {.width_px = numbers[0], .height_px = numbers[1]};
  if (numbers.size() == 3) {
    return {.width_px = numbers[0],
            .height_px = numbers[1],
            .num_frames = numbers[2],
            .modality = Modality::kVideo};
  }
  throw nb::value_error("sizes are (width, height), or (width, height, frames) of a video");
}

/// @param stream GPU and cudaStream_t; none: there is no queue.
CallerStream caller_stream(const std::optional<std::pair<int, std::uintptr_t>>& stream) {
  if (!stream) return {};
  const auto [device, number] = *stream;
  return {.device = device, .handle = reinterpret_cast<void*>(number)};  // NOLINT: as Python has it
}

void bind_plan(nb::module_& module) {
  nb::class_<ItemInfo>(module, "ItemInfo", "What becomes of an item.")
      .def_ro("name", &ItemInfo::name)
      .def_ro("num_frames", &ItemInfo::num_frames)
      .def_ro("resized_width", &ItemInfo::resized_width_px)
      .def_ro("resized_height", &ItemInfo::resized_height_px)
      .def_ro("patches", &ItemInfo::patches, "Patches that enter the tower.")
      .def_ro("rows", &ItemInfo::rows, "Rows that come out.")
      .def_prop_ro(
          "units",
          [](const ItemInfo& item) {
            nb::list units;
            for (const ItemUnits& some : item.units) {
              units.append(nb::make_tuple(some.count, some.patches, some.rows));
            }
            return units;
          },
          nb::sig("def units(self) -> list[tuple[int, int, int]]"),
          "Number, patches and rows of equal parts that see nothing of each other: temporal "
          "patches "
          "of a video, tiles or crops of an image, or the whole.")
      .def_prop_ro(
          "grid_thw",
          [](const ItemInfo& item) -> nb::object {
            if (!item.grid_thw) return nb::none();
            const auto& [t, h, w] = *item.grid_thw;
            return nb::make_tuple(t, h, w);
          },
          nb::sig("def grid_thw(self) -> tuple[int, int, int] | None"));
  nb::class_<PlannedBatch>(module, "PlannedBatch", "One sub-batch of a plan.")
      .def_ro("replica", &PlannedBatch::replica)
      .def_ro("items", &PlannedBatch::items, "Indices of the planned sizes.")
      .def_prop_ro(
          "units",
          [](const PlannedBatch& batch) {
            nb::list units;
            for (const UnitRange& some : batch.units) {
              units.append(nb::make_tuple(some.first, some.count));
            }
            return units;
          },
          nb::sig("def units(self) -> list[tuple[int, int]]"),
          "First unit of each item and how many, on the one path with tokens; empty: all items "
          "are whole.")
      .def_ro("tokens", &PlannedBatch::tokens, "Per path.")
      .def_ro("budgets", &PlannedBatch::budgets, "Per path; None: runs eagerly.")
      .def_ro("padded", &PlannedBatch::padded, "Per path.");
  nb::class_<PackingPlan>(module, "PackingPlan", "How the items of one call are packed.")
      .def_ro("items", &PackingPlan::items)
      .def_ro("paths", &PackingPlan::paths)
      .def_ro("token_budgets", &PackingPlan::token_budgets)
      .def_ro("batches", &PackingPlan::batches);
}

}  // namespace

void bind_engine(nb::module_& module) {
  bind_plan(module);
  nb::class_<PlannedItems>(module, "PlannedItems", "Items with their plans; not changed meanwhile.")
      .def("__len__", [](const PlannedItems& planned) { return planned.items.size(); })
      .def_prop_ro("rows", &PlannedItems::rows, nb::sig("def rows(self) -> list[int | None]"),
                   "Rows that each will have; None where only decoding tells.");
  nb::class_<PythonEngine>(module, "Engine", nb::is_weak_referenceable(), "See fovea.Engine.")
      .def(
          "__init__",
          [](PythonEngine* self, nb::handle path, const nb::dict& options,
             const std::optional<std::pair<std::vector<TensorListing>, nb::object>>& weights) {
            new (self) PythonEngine(
                file_path(path), options,
                weights ? std::optional(weight_tensors(weights->first, weights->second))
                        : std::nullopt);
          },
          nb::arg("path"), nb::arg("options"), nb::arg("weights").none(),
          nb::sig("def __init__(self, path: str, options: dict[str, typing.Any], weights: "
                  "tuple[list[tuple[str, str, list[int]]], typing.Any] | None) -> None"),
          "`weights` are listings (name, dtype, shape) and a function read(index, memoryview).")
      .def("plan_items", &PythonEngine::plan_items, nb::arg("images"), nb::arg("videos"),
           nb::arg("fps"), nb::arg("mm_processor_kwargs"),
           nb::sig("def plan_items(self, images: list[typing.Any], videos: list[typing.Any], "
                   "fps: float, mm_processor_kwargs: list[str]) -> PlannedItems"))
      .def("encode", &PythonEngine::encode, nb::arg("items"), nb::arg("dtype"), nb::arg("on_error"),
           nb::arg("enforce_eager"), nb::arg("use_cache"),
           nb::sig("def encode(self, items: PlannedItems, dtype: str, on_error: str, "
                   "enforce_eager: bool, use_cache: bool) -> list[Embedding]"))
      .def(
          "encode_into",
          [](PythonEngine& engine, const PlannedItems& items, const nb::list& out,
             std::optional<std::pair<int, std::uintptr_t>> stream, const std::string& on_error,
             bool enforce_eager, bool use_cache) {
            return engine.encode_into(items, out, caller_stream(stream), on_error, enforce_eager,
                                      use_cache);
          },
          nb::arg("items"), nb::arg("out"), nb::arg("stream").none(), nb::arg("on_error"),
          nb::arg("enforce_eager"), nb::arg("use_cache"),
          nb::sig("def encode_into(self, items: PlannedItems, out: list[typing.Any], "
                  "stream: tuple[int, int] | None, on_error: str, enforce_eager: bool, "
                  "use_cache: bool) -> list[Embedding]"),
          "Rows go to DLPack capsules, behind what the stream (GPU, cudaStream_t) holds.")
      .def("submit", &PythonEngine::submit, nb::arg("images"), nb::arg("videos"), nb::arg("fps"),
           nb::arg("mm_processor_kwargs"), nb::arg("dtype"), nb::arg("on_error"), nb::arg("done"),
           nb::sig("def submit(self, images: list[typing.Any], videos: list[typing.Any], "
                   "fps: float, mm_processor_kwargs: list[str], dtype: str, on_error: str, done: "
                   "typing.Any) -> int"))
      .def("cancel", &PythonEngine::cancel, nb::arg("ticket"))
      .def(
          "plan",
          [](PythonEngine& engine, const nb::list& sizes) {
            std::vector<ItemSize> items;
            for (const nb::handle size : sizes) items.push_back(item_size(size));
            return engine.plan(items);
          },
          nb::arg("sizes"), nb::sig("def plan(self, sizes: list[typing.Any]) -> PackingPlan"))
      .def("media_io_fps", &PythonEngine::media_io_fps, nb::arg("media_io_kwargs"))
      .def("warm_up", &PythonEngine::warm_up)
      .def("trim", &PythonEngine::trim)
      .def("stats", &PythonEngine::stats, nb::sig("def stats(self) -> dict[str, int]"))
      .def("shut_down", &PythonEngine::shut_down)
      .def_prop_ro("options", &PythonEngine::options,
                   nb::sig("def options(self) -> dict[str, typing.Any]"))
      .def_prop_ro("device", &PythonEngine::device)
      .def_prop_ro("family", [](PythonEngine& engine) { return engine.report().family; })
      .def_prop_ro("hidden", [](PythonEngine& engine) { return engine.report().hidden; })
      .def_prop_ro("embedding_file",
                   [](PythonEngine& engine) { return engine.report().embedding_file; })
      .def_prop_ro("facts", [](PythonEngine& engine) { return engine.report().facts; })
      .def_prop_ro("width", [](PythonEngine& engine) { return engine.report().width; })
      .def_prop_ro("deepstack_levels",
                   [](PythonEngine& engine) { return engine.report().deepstack_levels; });
  module.def("end_calls", &end_calls,
             "Stops the calls of other threads, which never return, and waits for that.");
}

}  // namespace fovea::python
