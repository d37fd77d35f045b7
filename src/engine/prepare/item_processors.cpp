// From the options of an item to the processor that it is prepared with: the files of the
// checkpoint, read again with other values.
#include "engine/prepare/item_processors.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "engine/prepare/check_item.h"
#include "models/load_model.h"

namespace fovea {

namespace {

using Keys = std::span<const std::string_view>;

constexpr const char* kName = "mm_processor_kwargs";
constexpr const char* kNone = "{}";
constexpr const char* kFps = "fps";
constexpr const char* kNumFrames = "num_frames";
/// Options that say which frames of a container are taken.
constexpr std::array<std::string_view, 4> kChooseFrames{kFps, kNumFrames, "min_frames",
                                                        "max_frames"};

/// The options of a modality under their names, each as JSON.
using Options = std::map<std::string, std::string, std::less<>>;

bool has(Keys keys, std::string_view key) { return std::ranges::find(keys, key) != keys.end(); }

std::string list(Keys keys) {
  std::string text;
  for (const std::string_view key : keys) text += cat(text.empty() ? "" : ", ", key);
  return text.empty() ? "none" : text;
}

/// Reads options where they are flat, for images and videos, and where they are for one of them.
class OptionReader {
 public:
  OptionReader(const checkpoint::HfConfig& files, const ModelFamily& family, Modality modality)
      : files_(files), family_(family), modality_(modality) {}

  Options read(const JsonView& root) {
    FOVEA_CHECK(root.is_object(), kInvalidArgument, root.path(), ": expected an object, got ",
                root.summary());
    // What is said of one modality counts more than what is said of both.
    for_each_member(root, [&](std::string_view key, const JsonView& value) {
      if (key == kImages || key == kVideos) return;
      take(key, value, family_.item_options.image, Modality::kImage, family_.item_options.video,
           Modality::kVideo);
    });
    for_each_member(root, [&](std::string_view key, const JsonView& value) {
      if (key == kImages) take_all(value, family_.item_options.image, Modality::kImage);
      if (key == kVideos) take_all(value, family_.item_options.video, Modality::kVideo);
    });
    return std::move(options_);
  }

 private:
  static constexpr const char* kImages = "images_kwargs";
  static constexpr const char* kVideos = "videos_kwargs";

  template <class Use>
  static void for_each_member(const JsonView& object, const Use& use) {
    for (std::size_t i = 0; i < object.num_members(); ++i) {
      if (!object.member(i).is_null()) use(object.key(i), object.member(i));
    }
  }

  void take_all(const JsonView& object, Keys keys, Modality modality) {
    for_each_member(object, [&](std::string_view key, const JsonView& value) {
      take(key, value, keys, modality, keys, modality);
    });
  }

  /// Notes an option that one of two modalities takes, if that is the item's.
  void take(std::string_view key, const JsonView& value, Keys keys, Modality of, Keys others,
            Modality of_others) {
    const bool is_known =
        (of == modality_ && has(keys, key)) || (of_others == modality_ && has(others, key));
    if (is_known) {
      std::string& text = options_[std::string(key)];
      text.clear();
      value.append_to(text);
    } else if (!has(keys, key) && !has(others, key) && !is_repeated(key, value)) {
      refuse(value);
    }
  }

  /// Whether the checkpoint says the same.
  [[nodiscard]] bool is_repeated(std::string_view key, const JsonView& value) const {
    const auto says = [&](const std::optional<JsonView>& file) {
      const auto own = file ? file->find(key) : std::nullopt;
      return own && own->equals(value);
    };
    return says(files_.image_processor()) || says(files_.video_processor());
  }

  [[noreturn]] void refuse(const JsonView& value) const {
    const ItemOptionKeys& known = family_.item_options;
    FOVEA_CHECK(false, kUnsupported, value.path(),
                ": no option that items of this model may have of their own; images of family ",
                family_.name, " take ", list(known.image), "; videos take ", list(known.video));
  }

  const checkpoint::HfConfig& files_;
  const ModelFamily& family_;
  const Modality modality_;
  Options options_;
};

std::string text_of(const Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += text.empty() ? '{' : ',';
    append_json(text, key);
    text += cat(":", value);
  }
  return text.empty() ? kNone : text + "}";
}

JsonDocument parse(std::string_view text) {
  const JsonRules rules{.duplicates = DuplicateKeys::kReject,
                        .limits = {.bytes = 64'000, .values = 1'000, .depth = 8}};
  return JsonDocument::parse_borrowed(text, kName, rules);
}

/// Refuses options of frames for a video whose frames are chosen.
void check_chooses_none(const ItemProcessing& processing) {
  FOVEA_CHECK(!processing.chooses_frames, kInvalidArgument, kName,
              ": the frames of this video are chosen already, so that ", list(kChooseFrames),
              " have no meaning for it");
}

double read_fps(const JsonView& value) {
  const double fps = value.as_number();
  FOVEA_CHECK(fps > 0, kInvalidArgument, value.path(), ": expected a number above 0, got ",
              value.summary());
  return fps;
}

}  // namespace

ItemProcessors::ItemProcessors(const checkpoint::HfConfig& files, const MediaOptions& media,
                               TowerOutput output)
    : files_(files), media_(media), output_(output), family_(family_of(files)) {}

std::shared_ptr<const ItemProcessing> ItemProcessors::of(const MediaItem& item) {
  std::shared_ptr<const ItemProcessing> processing = of(item.modality, item.mm_processor_kwargs);
  const bool is_processed = is_finished(item) || patch_grid(item) != nullptr;
  FOVEA_CHECK(!is_processed || processing->options == kNone, kInvalidArgument, kName,
              ": expected images or videos, got what a processor has made of them already");
  if (!is_encoded(item)) check_chooses_none(*processing);
  return processing;
}

std::shared_ptr<const ItemProcessing> ItemProcessors::of(const ItemSize& size) {
  std::shared_ptr<const ItemProcessing> processing = of(size.modality, size.mm_processor_kwargs);
  check_chooses_none(*processing);
  return processing;
}

std::shared_ptr<const ItemProcessing> ItemProcessors::of(Modality modality,
                                                         const std::string& mm_processor_kwargs) {
  const std::string name = cat(to_string(modality), ' ', mm_processor_kwargs);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto* const known = known_.use(name)) return known->value;
  }
  auto made = std::make_shared<const ItemProcessing>(make(modality, mm_processor_kwargs));
  const std::scoped_lock lock(mutex_);
  (void)known_.make_room(1, [](const auto&) {});
  return known_.put(name, std::move(made), 1).value;
}

ItemProcessing ItemProcessors::make(Modality modality, const std::string& text) const {
  try {
    const JsonDocument document = parse(text);
    Options options = OptionReader(files_, family_, modality).read(document.root());
    ItemProcessing made{.options = text_of(options)};
    made.chooses_frames = std::ranges::any_of(
        kChooseFrames, [&](std::string_view key) { return options.contains(key); });
    if (options.contains(kFps)) {
      FOVEA_CHECK(!options.contains(kNumFrames), kInvalidArgument, kName,
                  ": expected either fps or num_frames, got both");
      const JsonDocument given = JsonDocument::parse(made.options, kName);
      made.fps = read_fps(given.root().at(kFps));
      options.erase(kFps);
    }
    const auto file =
        modality == Modality::kImage ? files_.image_processor() : files_.video_processor();
    FOVEA_CHECK(options.empty() || file, kUnsupported, kName, ": ", files_.directory,
                " has no preprocessor_config.json, whose values options of an item replace");
    MediaOptions media = media_;
    if (options.contains("size") || options.contains("min_pixels")) media.min_pixels.reset();
    if (options.contains("size") || options.contains("max_pixels")) media.max_pixels.reset();
    const checkpoint::HfConfig files =
        files_.with_item(JsonDocument::parse(text_of(options), kName), modality);
    const std::shared_ptr<const EncoderGraphModel> planner = plan_model(files, media, output_);
    made.processor = std::shared_ptr<const ItemProcessor>(planner, &planner->processor());
    return made;
  } catch (const Error& error) {
    // What a file says wrongly is corrupt, what a caller says wrongly is not.
    if (error.code() != ErrorCode::kCorruptData) throw;
    throw Error(ErrorCode::kInvalidArgument, error.what());
  }
}

std::shared_ptr<const ItemProcessing> processing_of(ItemProcessors* processors,
                                                    const MediaItem& item) {
  if (item.mm_processor_kwargs.empty()) return nullptr;
  FOVEA_CHECK(processors != nullptr, kInternal, "no processors for options of items");
  return processors->of(item);
}

}  // namespace fovea
