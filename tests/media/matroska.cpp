// Just enough of Matroska for a demuxer. Source: RFC 8794 (EBML), RFC 9559 (Matroska).
#include "matroska.h"

#include <string_view>

namespace fovea::test {

namespace {

using Bytes = std::vector<std::uint8_t>;

void append_big_endian(Bytes& out, std::uint64_t value, int num_bytes) {
  for (int shift = 8 * (num_bytes - 1); shift >= 0; shift -= 8) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

Bytes concat(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) append(all, part);
  return all;
}

Bytes element(std::uint32_t id, const Bytes& payload) {
  Bytes out;
  const int id_bytes = id > 0xFFFFFF ? 4 : id > 0xFFFF ? 3 : id > 0xFF ? 2 : 1;
  append_big_endian(out, id, id_bytes);
  append_big_endian(out, (std::uint64_t{1} << 56) | payload.size(), 8);
  append(out, payload);
  return out;
}

Bytes number(std::uint32_t id, std::uint64_t value) {
  Bytes payload;
  append_big_endian(payload, value, 8);
  return element(id, payload);
}

Bytes text(std::uint32_t id, std::string_view value) {
  return element(id, {value.begin(), value.end()});
}

/// What Video for Windows calls a BITMAPINFOHEADER; only its size and codec matter.
Bytes bitmap_header() {
  Bytes header(40);
  header[0] = 40;
  constexpr std::string_view kCodec = "MPNG";
  std::copy(kCodec.begin(), kCodec.end(), header.begin() + 16);
  return header;
}

Bytes track(int width, int height) {
  const Bytes size = concat({number(0xB0, static_cast<std::uint64_t>(width)),
                             number(0xBA, static_cast<std::uint64_t>(height))});
  return element(0xAE, concat({number(0xD7, 1), number(0x73C5, 1), number(0x83, 1),
                               text(0x86, "V_MS/VFW/FOURCC"), element(0x63A2, bitmap_header()),
                               number(0x23E383, 100'000'000), element(0xE0, size)}));
}

}  // namespace

Bytes matroska_of_png(int width, int height, std::span<const Bytes> packets, int first_ms) {
  Bytes cluster = number(0xE7, 0);
  int milliseconds = first_ms;
  for (const Bytes& packet : packets) {
    Bytes block{0x81};
    append_big_endian(block, static_cast<std::uint64_t>(milliseconds), 2);
    block.push_back(0x80);  // a key frame
    append(block, packet);
    append(cluster, element(0xA3, block));
    milliseconds += 100;
  }
  const Bytes head = concat({number(0x4287, 4), number(0x4285, 2), text(0x4282, "matroska")});
  const Bytes segment =
      concat({element(0x1549A966, number(0x2AD7B1, 1'000'000)),
              element(0x1654AE6B, track(width, height)), element(0x1F43B675, cluster)});
  return concat({element(0x1A45DFA3, head), element(0x18538067, segment)});
}

}  // namespace fovea::test
