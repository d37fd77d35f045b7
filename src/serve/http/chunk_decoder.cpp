#include "serve/http/chunk_decoder.h"

#include <algorithm>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kMaxDropped = std::size_t{16} << 10;

ApiError bad_chunks() { return malformed("the body is not well chunked"); }

/// Value of a hexadecimal digit; 16 for other characters.
std::uint64_t digit_of(char character) {
  constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
  const std::size_t place = kDigits.find(character);
  return place == std::string_view::npos ? 16 : place % 16;
}

}  // namespace

ChunkDecoder::State ChunkDecoder::after_size(char character) {
  const std::uint64_t digit = digit_of(character);
  if (digit < 16) {
    if (remaining_ >> 59 != 0) throw bad_chunks();
    remaining_ = remaining_ << 4 | digit;
    return State::kSize;
  }
  if (state_ == State::kSizeBegin) throw bad_chunks();
  if (character == '\r') return State::kSizeLf;
  if (character == ';' || character == ' ' || character == '\t') return State::kExtension;
  throw bad_chunks();
}

ChunkDecoder::State ChunkDecoder::after_text(char character, State same, State line_feed) {
  if (character == '\r') return line_feed;
  const auto code = static_cast<std::uint8_t>(character);
  if ((code < 0x20 && character != '\t') || code == 0x7f) throw bad_chunks();
  if (++dropped_ > kMaxDropped) throw bad_chunks();
  return same;
}

ChunkDecoder::State ChunkDecoder::after(char character) {
  const auto expect = [&](char expected, State then) {
    if (character != expected) throw bad_chunks();
    return then;
  };
  switch (state_) {
    case State::kSizeBegin:
    case State::kSize: return after_size(character);
    case State::kExtension: return after_text(character, State::kExtension, State::kSizeLf);
    case State::kSizeLf: return expect('\n', remaining_ > 0 ? State::kData : State::kTrailerBegin);
    case State::kDataCr: return expect('\r', State::kDataLf);
    case State::kDataLf: return expect('\n', State::kSizeBegin);
    case State::kTrailerBegin: return after_text(character, State::kTrailer, State::kEndLf);
    case State::kTrailer: return after_text(character, State::kTrailer, State::kTrailerLf);
    case State::kTrailerLf: return expect('\n', State::kTrailerBegin);
    case State::kEndLf: return expect('\n', State::kDone);
    case State::kData:
    case State::kDone: break;
  }
  throw bad_chunks();
}

ChunkDecoder::Step ChunkDecoder::next(std::string_view input) {
  std::size_t consumed = 0;
  while (state_ != State::kData && state_ != State::kDone && consumed < input.size()) {
    state_ = after(input[consumed++]);
  }
  if (state_ != State::kData) return {.consumed = consumed, .data = {}};
  const std::string_view data = input.substr(
      consumed,
      static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, input.size() - consumed)));
  remaining_ -= data.size();
  if (remaining_ == 0) state_ = State::kDataCr;
  return {.consumed = consumed + data.size(), .data = data};
}

}  // namespace fovea::serve
