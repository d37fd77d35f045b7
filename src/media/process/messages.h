#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/error.h"
#include "fovea/option_table.h"
#include "fovea/tower/core/plugin_note.h"
#include "media/process/words.h"

// The messages of the host and a decoder process over their socket. A message is a header, a
// fixed number of 64-bit words, little-endian, and a payload whose length the header tells:
//
//   process: kReady
//   host: kImage and a file                 process: kPixels and RGB, or kError and a text
//   host: kVideo and a descriptor           process: kVideoInfo, or kError
//   host: kFrames and indices               process: kPixels for each, then kDone, or kError, or
//                                           once kVideoInfo and indices of them: these cannot be
//                                           read, and the host chooses again
//
// The process knows no name of what it decodes: texts of errors begin where the name would end.

namespace fovea::media {

/// File name of the decoder, which lies beside the plugins, and what it is built for. The number is
/// raised by one whenever messages change.
inline constexpr const char* kDecoderFile = "fovea-decoder";
inline constexpr PluginBuild kDecoderBuild{.kind = {'d', 'e', 'c', 'o', 'd', 'e', 'r'},
                                           .interface_number = 5};

enum class RequestKind : std::uint8_t { kImage = 1, kVideo, kFrames };

/// From the host.
struct Request {
  RequestKind kind = RequestKind::kImage;
  MediaOptions options;  ///< all of them, whichever decoding needs
  int reduction = 1;     ///< of kImage
  std::uint64_t payload_bytes = 0;
  std::uint64_t file_bytes = 0;  ///< of kVideo: size of the file whose descriptor comes with it
};

inline constexpr std::size_t kRequestHeaderBytes = 8 * (4 + option_words<MediaOptions>());
using RequestHeader = std::array<std::uint8_t, kRequestHeaderBytes>;

[[nodiscard]] RequestHeader to_header(const Request& request);
/// @throws Error(kCorruptData) for a kind or a value of an option that does not exist.
[[nodiscard]] Request parse_request(const RequestHeader& header);

enum class ReplyKind : std::uint8_t { kReady = 1, kPixels, kVideoInfo, kDone, kError };

/// How a decoder process is kept from doing anything but decoding.
enum class Isolation : std::uint8_t {
  kNone,     ///< not at all: builds with sanitizers, which need the whole machine
  kLimits,   ///< memory, CPU time and descriptors are limited; the system refuses a seccomp filter
  kSeccomp,  ///< besides, any system call that decoding does not need ends the process
};

/// From a decoder process. Members that a kind does not use are 0.
struct Reply {
  ReplyKind kind = ReplyKind::kDone;
  ErrorCode code = ErrorCode::kInternal;   ///< of kError
  Isolation isolation = Isolation::kNone;  ///< of kReady
  std::int64_t width_px = 0;               ///< of kPixels and kVideoInfo, >= 1
  std::int64_t height_px = 0;              ///< as width_px
  std::int64_t num_frames = 0;             ///< of kVideoInfo, 1 .. kMostVideoFrames
  std::int64_t num_cut = 0;                ///< of kVideoInfo, 0 .. kMostVideoFrames
  double fps = 0;  ///< of kVideoInfo: 0, or a rate that a container can name
  /// 3 per pixel; of kError at most kMaxTextBytes; of kVideoInfo 8 per frame that cannot be read,
  /// num_frames of them at most; 0 otherwise.
  std::uint64_t payload_bytes = 0;
};

inline constexpr std::int64_t kMostVideoFrames = 1'000'000;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kReplyHeaderBytes = 8 * 8;
using ReplyHeader = std::array<std::uint8_t, kReplyHeaderBytes>;

[[nodiscard]] ReplyHeader to_header(const Reply& reply);
/// Trusts nothing: everything that the members of Reply promise is checked.
/// @param name of what is decoded, for messages. @throws Error(kCorruptData).
[[nodiscard]] Reply parse_reply(const ReplyHeader& header, std::string_view name);

/// Indices of frames as the payload of kFrames or kVideoInfo, and back.
[[nodiscard]] std::vector<std::uint8_t> to_payload(std::span<const std::int64_t> indices);
[[nodiscard]] std::vector<std::int64_t> parse_indices(std::span<const std::uint8_t> payload);

/// The text of a reply with "?" for everything but printable ASCII.
[[nodiscard]] std::string printable(std::span<const std::uint8_t> text);

}  // namespace fovea::media
