#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/json.h"
#include "fovea/options.h"
#include "media/normalize.h"
#include "media/resize/resize.h"

namespace fovea::common {

/// Three numbers, one per channel; `fallback` where the key is absent.
/// @throws Error(kCorruptData) naming the key for anything but 3 numbers that f32 can hold.
[[nodiscard]] std::array<float, 3> read_channels(const JsonView& object, std::string_view key,
                                                 const std::array<float, 3>& fallback);

/// The same for divisors and factors. @throws also for numbers that are not above 0.
[[nodiscard]] std::array<float, 3> read_positive_channels(const JsonView& object,
                                                          std::string_view key,
                                                          const std::array<float, 3>& fallback);
[[nodiscard]] double read_positive(const JsonView& object, std::string_view key, double fallback);

/// How bytes become the values that the tower reads.
struct PixelScaling {
  std::array<float, 3> image_mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> image_std{0.5f, 0.5f, 0.5f};
  double rescale_factor = 1.0 / 255.0;

  /// Value of each byte per channel, rescaled and normalised as torchvision's fused form does.
  [[nodiscard]] media::NormalizeTable table() const {
    return media::fused_normalize_table(image_mean, image_std, rescale_factor);
  }
  friend bool operator==(const PixelScaling&, const PixelScaling&) = default;
};

/// @throws Error(kUnsupported) if resizing, rescaling or normalising is switched off.
void check_steps(const JsonView& file);

/// The scaling that a processor file asks for, after check_steps; `fallback` where it is silent.
/// @throws as check_steps and the readers above.
[[nodiscard]] PixelScaling read_scaling(const JsonView& file, const PixelScaling& fallback);

/// Values that the reference's classes have where a file is silent, under transformers' names.
inline constexpr std::array<float, 3> kClipMean{0.48145466f, 0.4578275f, 0.40821073f};
inline constexpr std::array<float, 3> kClipStd{0.26862954f, 0.26130258f, 0.27577711f};
inline constexpr PixelScaling kClipScaling{.image_mean = kClipMean, .image_std = kClipStd};

/// The keys in which two scalings differ: "image_mean, image_std"; empty if they are equal.
[[nodiscard]] std::string differing_keys(const PixelScaling& a, const PixelScaling& b);

/// Why videos cannot be encoded that are processed otherwise than images: one table of values
/// serves both. @param keys in which they differ; empty: nothing is wrong, and so is the result.
[[nodiscard]] std::string video_refusal(const JsonView& file, const std::string& keys);

/// Whether `size`, where it is there, a number or height and width, is that of the tower.
/// @param side_px image_size of config.json. @throws Error(kCorruptData) for wrong types.
[[nodiscard]] bool has_size(const JsonView& file, std::int64_t side_px);

/// Requires has_size.
/// @throws Error(kUnsupported) naming the key for another size, Error(kCorruptData) for wrong
/// types.
void check_size(const JsonView& file, std::int64_t side_px);

/// The resize arithmetic that the user asks for; `model_default` where nothing is asked.
[[nodiscard]] media::ResizeEngine resize_engine(const MediaOptions& media,
                                                media::ResizeEngine model_default);

/// Values of the three channels for log lines: "0.5,0.5,0.5".
[[nodiscard]] std::string channel_text(const std::array<float, 3>& values);

/// Where a value of preprocessing comes from.
enum class Source : std::uint8_t {
  kFile,    ///< the file says it
  kSilent,  ///< the file does not, or there is none
  kOption,  ///< the user says it
};

/// A value of preprocessing, under the key that a file has it under.
struct SourcedKey {
  std::string_view key;
  Source source = Source::kFile;
};

/// `keys` with kFile for those that `file` has, and kSilent for the others.
[[nodiscard]] std::vector<SourcedKey> sourced(const std::optional<JsonView>& file,
                                              std::initializer_list<std::string_view> keys);

/// Text for ItemProcessor::sources of one modality. @param modality "image" or "video".
[[nodiscard]] std::string sources_text(std::string_view modality,
                                       const std::optional<JsonView>& file,
                                       std::span<const SourcedKey> keys);
/// The same of the files of images and of videos, one after the other.
[[nodiscard]] std::string sources_text(const std::optional<JsonView>& image,
                                       std::initializer_list<std::string_view> image_keys,
                                       const std::optional<JsonView>& video,
                                       std::initializer_list<std::string_view> video_keys);

/// The value that stands in for a key that a processor file should have.
struct Assumption {
  bool given = false;     ///< the file has the key
  std::string_view key;   ///< as in the file
  std::string assumed{};  ///< "<name>=<value> ..."
};

/// "<key>=<value>" stands in for a key, if `file` is absent or lacks it.
[[nodiscard]] Assumption assumed(const std::optional<JsonView>& file, std::string_view key,
                                 const std::string& value);

/// "missing=<file> keys=<key>,<key> <name>=<value> ..." of what is not given, without the keys if
/// there is no file; empty if all is given.
/// @param has_file whether there is the file, or the part of one, that `file` names.
[[nodiscard]] std::string missing_text(const std::string& file, bool has_file,
                                       std::initializer_list<Assumption> assumptions);
/// The same of the processor file of images.
[[nodiscard]] std::string missing_text(const checkpoint::HfConfig& files,
                                       std::initializer_list<Assumption> assumptions);

/// Requires a size of a processor file to be that of the tower, where the file has the key.
/// @throws Error(kCorruptData) naming the key for another.
void check_tower_size(const JsonView& file, std::string_view key, std::int64_t expected);

}  // namespace fovea::common
