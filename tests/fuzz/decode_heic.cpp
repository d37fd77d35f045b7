// Any bytes as a HEIC file.
#include "decode_fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fovea::test::decode_one(fovea::media::ImageFormat::kHeic, data, size);
}
