#pragma once

#include "media/decode_image.h"
#include "media/process/decode_processes.h"
#include "media/test_images.h"

namespace fovea::test {

/// Decodes as the engine does: by the header that it has read. @throws as both.
inline media::Image decode_in_process(media::DecodeProcesses& processes, const Bytes& bytes,
                                      std::string_view name, const MediaOptions& options = {},
                                      int reduction = 1) {
  return processes.decode_image(bytes, name, media::probe_image(bytes, name, options, reduction),
                                reduction);
}

}  // namespace fovea::test
