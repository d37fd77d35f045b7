// What of an item its rows depend on, and what of the options.
#include "engine/cached/item_key.h"

#include <sys/stat.h>

#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json_writer.h"
#include "core/row_dtype.h"
#include "engine/prepare/check_item.h"
#include "fovea/option_table.h"
#include "fovea/option_text.h"
#include "rows/content_key.h"

namespace fovea {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

FileState state_of(const std::string& path) {
  struct stat now = {};
  FOVEA_CHECK(::stat(path.c_str(), &now) == 0, kIo, path, ": cannot be examined");
  const auto nanoseconds = [](const timespec& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  return {path,
          {static_cast<std::int64_t>(now.st_dev), static_cast<std::int64_t>(now.st_ino),
           now.st_size, nanoseconds(now.st_mtim), nanoseconds(now.st_ctim)}};
}

/// Calls add(piece) for the bytes of a file, one after the other.
template <class Add>
void read_pieces(const InputFile& file, Add&& add) {
  std::vector<std::byte> piece(std::min(file.size_bytes(), kPieceBytes));
  for (std::size_t at = 0; at < file.size_bytes(); at += piece.size()) {
    check_interrupt();
    piece.resize(std::min(kPieceBytes, file.size_bytes() - at));
    file.read_at(at, piece);
    add(piece);
  }
}

std::string hash_of_file(const InputFile& file) {
  Sha256 hash;
  read_pieces(file, [&](std::span<const std::byte> piece) { hash.add(piece); });
  return hash.hex();
}

/// All options that rows depend on, as JSON. Those of the tower are part of the model's
/// fingerprint.
std::string options_of(const KeyContext& context, const MediaItem& media) {
  const bool is_video = media.modality == Modality::kVideo;
  JsonObject json;
  for (const auto& [name, text] : option_texts(context.options, {RowEffect::kMedia})) {
    json.set(name, text);
  }
  if (is_video) json.set("fps", media.fps);
  if (const auto own = processing_of(context.processors, media); own && own->options != "{}") {
    json.set("mm_processor_kwargs", own->options);
  }
  if (const auto* const grid = patch_grid(media)) json.set("grid_thw", *grid);
  return to_json_text(json);
}

/// The way of one item to its key.
class KeyMaker {
 public:
  KeyMaker(const KeyContext& context, const MediaItem& media)
      : media_(media),
        limits_(context.options.media.limits),
        options_(options_of(context, media)),
        fields_{.model = context.model, .modality = media.modality, .options = options_} {}

  ItemKey run() {
    check_source(media_);
    std::visit([this](const auto& source) { add(source); }, media_.source);
    return std::move(key_);
  }

 private:
  void add_bytes(const MediaBytes& bytes) { key_.text = key_of(std::as_bytes(bytes.view())); }

  void add(const PixelBlock&) {}
  void add(const PrecomputedRows&) {}
  void add(const PrecomputedBlock&) {}

  void add(const EncodedBytes& encoded) { add_bytes(encoded.bytes); }

  void add(const RgbFrames& rgb) {
    check_rgb(rgb, media_.name, limits_);
    fields_.element = "u8";
    fields_.shape = {to_u64(rgb.num_frames), to_u64(rgb.height_px), to_u64(rgb.width_px), 3};
    add_bytes(rgb.bytes);
  }

  void add(const PixelValues& values) {
    add_patches(check_matrix(values.patches, media_.name, "patches"), values.patches.bytes);
  }

  void add(const PixelBytes& pixels) {
    add_patches(check_matrix(pixels, media_.name, "patches"), pixels.patches);
  }

  void add_patches(const ConstTensorView& patches, const MediaBytes& bytes) {
    fields_.element = to_string(patches.dtype);
    fields_.shape = {to_u64(patches.shape[0]), to_u64(patches.shape[1])};
    add_bytes(bytes);
  }

  void add(const EncodedFile& encoded) {
    const bool is_video = media_.modality == Modality::kVideo;
    const InputFile file =
        open(encoded.path, is_video ? limits_.max_video_bytes : limits_.max_image_bytes);
    ContentKey key(fields_, file.size_bytes());
    read_pieces(file, [&](std::span<const std::byte> piece) { key.add(piece); });
    key_.text = key.hex();
  }

  void add(const FrameFiles& files) {
    std::string hashes;
    for (const std::string& path : files.paths) {
      hashes += hash_of_file(open(path, limits_.max_image_bytes));
    }
    add_hashes(hashes, files.paths.size());
  }

  void add(const EncodedFrames& encoded) {
    std::string hashes;
    for (const MediaBytes& frame : encoded.frames) {
      check_interrupt();
      Sha256 hash;
      hash.add(std::as_bytes(frame.view()));
      hashes += hash.hex();
    }
    add_hashes(hashes, encoded.frames.size());
  }

  /// The content of frames are the hashes of their files, wherever these are.
  void add_hashes(const std::string& hashes, std::size_t num_frames) {
    fields_.element = "file";
    fields_.shape = {num_frames};
    key_.text = key_of(std::as_bytes(std::span(hashes)));
  }

  InputFile open(const std::string& path, std::size_t most) {
    key_.files.push_back(state_of(path));
    FOVEA_CHECK(std::cmp_less_equal(key_.files.back().facts[2], most), kInvalidArgument, path,
                ": larger than the limit of ", most, " bytes");
    return InputFile(path);
  }

  [[nodiscard]] std::string key_of(std::span<const std::byte> content) const {
    ContentKey key(fields_, content.size());
    key.add(content);
    return key.hex();
  }

  static std::uint64_t to_u64(std::int64_t value) { return static_cast<std::uint64_t>(value); }

  const MediaItem& media_;
  const MediaLimits& limits_;
  std::string options_;
  ContentFields fields_;
  ItemKey key_;
};

}  // namespace

bool ItemKey::is_current() const {
  try {
    for (const FileState& file : files) {
      if (state_of(file.path) != file) return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::optional<ItemKey> item_key(const KeyContext& context, const MediaItem& media) {
  const bool has_no_content =
      is_finished(media) || std::holds_alternative<PixelBlock>(media.source);
  if (has_no_content) return std::nullopt;
  try {
    return KeyMaker(context, media).run();
  } catch (const Error&) {
    check_interrupt();    // what ends the call is no error of the item
    return std::nullopt;  // prepare_media says why
  }
}

std::string rows_key(const ItemKey& key, Modality modality, RowDType dtype,
                     const EngineOptions& options) {
  OptionTexts texts = option_texts(EncodeOptions{.dtype = dtype}, {RowEffect::kAfterTower});
  if (modality == Modality::kVideo) {
    texts.merge(option_texts(options, {RowEffect::kAfterTower}));
  }
  const std::string json = to_json_text(texts);
  return ContentKey({.model = key.text, .modality = modality, .options = json}, 0).hex();
}

}  // namespace fovea
