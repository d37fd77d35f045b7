#include "serve/http/request_id.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace fovea::serve {
namespace {

std::mt19937_64 seeded_by_system() {
  std::random_device device;
  std::array<std::uint32_t, 8> words{};
  std::ranges::generate(words, [&] { return static_cast<std::uint32_t>(device()); });
  std::seed_seq seeds(words.begin(), words.end());
  return std::mt19937_64(seeds);
}

}  // namespace

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

RequestIds::RequestIds() : random_(seeded_by_system()) {}

std::string RequestIds::next() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id = "fov-";
  for (int half = 0; half < 2; ++half) {
    std::uint64_t bits = random_();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) id += kDigits[bits & 15];
  }
  return id;
}

}  // namespace fovea::serve
