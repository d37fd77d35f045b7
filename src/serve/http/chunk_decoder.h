#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fovea::serve {

/// Takes a chunked body apart while its bytes come in. Extensions and trailers are dropped.
/// Source: RFC 9112, 7.1.
class ChunkDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;  ///< bytes of the input that are done with
    std::string_view data;     ///< bytes of the body: a part of the input, or empty
  };

  /// Goes on to the end of the input, or to that of the next piece of data. Not to be called once
  /// is_done(). @throws ApiError(400, "invalid_request") for what is no chunked body, has a size of
  /// more than 2^63, or more than 16 KiB of extensions and trailers.
  [[nodiscard]] Step next(std::string_view input);
  [[nodiscard]] bool is_done() const noexcept { return state_ == State::kDone; }

 private:
  enum class State : std::uint8_t {
    kSizeBegin,
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerBegin,
    kTrailer,
    kTrailerLf,
    kEndLf,
    kDone
  };
  /// Takes a byte that is not of the data, and says what comes then.
  [[nodiscard]] State after(char character);
  [[nodiscard]] State after_size(char character);
  [[nodiscard]] State after_text(char character, State same, State line_feed);

  State state_ = State::kSizeBegin;
  std::uint64_t remaining_ = 0;  ///< of the chunk
  std::size_t dropped_ = 0;      ///< bytes of extensions and trailers
};

}  // namespace fovea::serve
