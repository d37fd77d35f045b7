// A file is FF D8, then segments: FF, marker, and unless the marker is 01 or D0..D9 a length (2
// bytes, big endian, counting itself) and a payload. After SOS (DA) follow entropy-coded bytes, in
// which FF is always followed by 00 or a restart marker (D0..D7); D9 ends the image.
//   SOFn (C0..CF but C4, C8, CC): precision 1, height 2, width 2, components 1, and of each:
//     id 1, sampling factors 1 (horizontal << 4 | vertical), quantisation table 1
//   SOS (DA): components 1, of each: id 1, tables 1; first coefficient 1, last 1, bits 1
#include "media/formats/jpeg_segments.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::int64_t kBlockSide = 8;
constexpr std::size_t kBlockBytes = 64 * 2;

constexpr bool is_frame_header(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

constexpr bool has_payload(std::uint8_t marker) {
  return marker != 0x01 && !(marker >= 0xD0 && marker <= JpegSegments::kEndOfImage);
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <class Factor>
int largest(const JpegFrame& frame, const Factor& factor) {
  int most = 1;
  for (const JpegComponent& component : frame.described()) most = std::max(most, component.*factor);
  return most;
}

JpegFrame parse_frame(const JpegSegment& segment, std::string_view name) {
  const Bytes payload = segment.payload;
  FOVEA_CHECK(payload.size() >= 6, kCorruptData, name,
              ": expected a JPEG frame header of at least 6 bytes, got ", payload.size());
  JpegFrame frame;
  frame.precision_bits = payload[0];
  frame.height_px = payload[1] << 8 | payload[2];
  frame.width_px = payload[3] << 8 | payload[4];
  frame.num_components = payload[5];
  const std::size_t num_described = frame.described().size();
  FOVEA_CHECK(payload.size() >= 6 + 3 * num_described, kCorruptData, name,
              ": expected a JPEG frame header of ", 6 + 3 * num_described, " bytes, got ",
              payload.size());
  for (std::size_t c = 0; c < num_described; ++c) {
    const std::uint8_t* const entry = payload.data() + 6 + 3 * c;
    frame.components[c] = {entry[0], entry[1] >> 4, entry[1] & 15};
    FOVEA_CHECK(
        std::min(entry[1] >> 4, entry[1] & 15) >= 1 && std::max(entry[1] >> 4, entry[1] & 15) <= 4,
        kCorruptData, name, ": expected JPEG sampling factors from 1 to 4, got ", entry[1] >> 4,
        " x ", entry[1] & 15);
  }
  frame.is_progressive = (segment.marker & 3) == 2;
  frame.is_arithmetic = segment.marker > 0xC8;
  return frame;
}

/// Blocks that a scan goes over. Components may share an id: the largest of them counts.
std::int64_t blocks_of_scan(Bytes scan_header, const JpegFrame& frame) {
  std::int64_t sum = 0;
  const std::size_t num_components = scan_header.empty() ? 0 : scan_header[0];
  for (std::size_t i = 0; i < num_components && 1 + 2 * i < scan_header.size(); ++i) {
    std::int64_t blocks = 0;
    for (const JpegComponent& component : frame.described())
      if (component.id == scan_header[1 + 2 * i])
        blocks = std::max(blocks, frame.blocks_across(component) * frame.blocks_down(component));
    sum += blocks;
  }
  return sum;
}

}  // namespace

std::optional<JpegSegment> JpegSegments::next() {
  while (skip_to_marker_prefix()) {
    const std::uint8_t marker = rest_[1];
    const bool stuffing = marker == 0x00 || marker == 0xFF;  // of entropy-coded bytes, of markers
    rest_ = rest_.subspan(marker == 0xFF ? 1 : 2);
    if (stuffing) continue;
    if (!has_payload(marker)) return JpegSegment{marker, {}};
    if (rest_.size() < 2) break;
    const std::size_t length = static_cast<std::size_t>(rest_[0]) << 8 | rest_[1];
    if (length < 2 || length > rest_.size()) break;
    const JpegSegment segment{marker, rest_.subspan(2, length - 2)};
    rest_ = rest_.subspan(length);
    return segment;
  }
  rest_ = {};
  return std::nullopt;
}

bool JpegSegments::skip_to_marker_prefix() {
  const void* const found = rest_.empty() ? nullptr : std::memchr(rest_.data(), 0xFF, rest_.size());
  if (found == nullptr) return false;
  rest_ = rest_.subspan(
      static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - rest_.data()));
  return rest_.size() >= 2;
}

std::span<const JpegComponent> JpegFrame::described() const noexcept {
  return std::span(components)
      .first(std::min<std::size_t>(static_cast<std::size_t>(num_components), components.size()));
}

std::int64_t JpegFrame::blocks_across(const JpegComponent& component) const noexcept {
  const int most = largest(*this, &JpegComponent::horizontal);
  return divide_up(width_px, kBlockSide * most) * component.horizontal;
}

std::int64_t JpegFrame::blocks_down(const JpegComponent& component) const noexcept {
  const int most = largest(*this, &JpegComponent::vertical);
  return divide_up(height_px, kBlockSide * most) * component.vertical;
}

JpegFrame read_jpeg_frame(Bytes file, std::string_view name) {
  std::optional<JpegFrame> frame;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    if (segment->marker == JpegSegments::kStartOfScan) {
      if (frame && !segment->payload.empty())
        frame->has_several_scans =
            frame->is_progressive || segment->payload[0] < frame->num_components;
      break;
    }
    if (!frame && is_frame_header(segment->marker)) {
      frame = parse_frame(*segment, name);
      frame->has_several_scans = frame->is_progressive;
    }
  }
  FOVEA_CHECK(frame, kCorruptData, name, ": JPEG ends or starts its pixels before a frame header");
  return *frame;
}

std::size_t jpeg_decoder_bytes(const JpegFrame& frame) noexcept {
  // Rows that are decoded together with their neighbours above and below, and rows at full size.
  constexpr std::int64_t kRowsKept = 10;
  const int rows_at_once = largest(frame, &JpegComponent::vertical);
  std::int64_t bytes = 0;
  for (const JpegComponent& component : frame.described()) {
    const std::int64_t across = frame.blocks_across(component);
    if (frame.has_several_scans)
      bytes += across * frame.blocks_down(component) * static_cast<std::int64_t>(kBlockBytes);
    bytes += across * kBlockSide * component.vertical * kRowsKept;
    bytes += frame.width_px * rows_at_once;
  }
  return static_cast<std::size_t>(bytes);
}

void check_jpeg_scans(Bytes file, const JpegFrame& frame, std::string_view name) {
  std::int64_t num_scans = 0;
  std::int64_t blocks = 0;
  std::int64_t most_coded_bits = 0;  // of the last scan
  bool ends = false;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    ends = segment->marker == JpegSegments::kEndOfImage;
    if (ends) break;
    if (segment->marker != JpegSegments::kStartOfScan) continue;
    ++num_scans;
    blocks += blocks_of_scan(segment->payload, frame);
    most_coded_bits = static_cast<std::int64_t>(segments.num_bytes_left()) * 8;
  }
  const bool may_be_complete =
      !frame.has_several_scans && !frame.is_arithmetic && most_coded_bits >= blocks;
  FOVEA_CHECK(ends || may_be_complete, kCorruptData, name,
              ": JPEG is truncated: it has no end-of-image marker");
  FOVEA_CHECK(num_scans <= kMostJpegScans, kInvalidArgument, name, ": expected a JPEG of at most ",
              kMostJpegScans, " scans, got ", num_scans);
  if (frame.is_arithmetic) blocks *= kArithmeticBlockCost;
  FOVEA_CHECK(blocks <= kMostJpegBlocks, kInvalidArgument, name, ": expected a JPEG of at most ",
              kMostJpegBlocks, " blocks in all scans, got ", blocks, " in ", num_scans, " scans");
}

}  // namespace fovea::media
