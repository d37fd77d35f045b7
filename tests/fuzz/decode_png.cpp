// Any bytes as a PNG file. The checksums of its chunks are repaired first, because hardly any
// mutated input would pass them; one input in eight keeps its own.
#include <zlib.h>

#include <vector>

#include "decode_fuzz.h"

namespace {

/// Rewrites the checksum of every chunk that lies wholly in the file.
void repair_checksums(std::vector<std::uint8_t>& file) {
  constexpr std::size_t kSignatureBytes = 8;
  constexpr std::size_t kFrameBytes = 12;  // length, type, checksum
  std::size_t chunk = kSignatureBytes;
  while (file.size() >= kFrameBytes && chunk <= file.size() - kFrameBytes) {
    std::size_t payload = 0;
    for (std::size_t i = 0; i < 4; ++i) payload = payload << 8 | file[chunk + i];
    if (payload > file.size() - kFrameBytes - chunk) return;
    const uLong sum = crc32(0, file.data() + chunk + 4, static_cast<uInt>(payload + 4));
    for (std::size_t i = 0; i < 4; ++i)
      file[chunk + 8 + payload + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    chunk += kFrameBytes + payload;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> file(data, data + size);
  if (size % 8 != 0) repair_checksums(file);
  return fovea::test::decode_one(fovea::media::ImageFormat::kPng, file.data(), file.size());
}
