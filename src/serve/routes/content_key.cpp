#include "serve/routes/content_key.h"

#include <cstdint>
#include <span>
#include <variant>

#include "core/json_writer.h"
#include "core/sha256.h"

namespace fovea::serve {
namespace {

std::string sha256_of(std::span<const std::uint8_t> bytes) {
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

bool has_keys(const EngineOptions& engine) {
  return engine.encoder_cache_bytes > 0 || engine.encoder_device_cache_size > 0;
}

std::string content_key(const MediaItem& item, const std::string& fingerprint) {
  JsonArray frames;
  if (const auto* const encoded = std::get_if<EncodedFrames>(&item.source)) {
    for (const MediaBytes& frame : encoded->frames) frames.add(sha256_of(frame.view()));
  }
  const JsonArray about =
      JsonArray::of(fingerprint, to_string(item.modality), item.fps, sha256_of(item.content()),
                    frames, item.mm_processor_kwargs);
  return sha256_hex(to_json_text(about));
}

}  // namespace fovea::serve
