// A box is: length 4 (big endian, of all of it; 1: 8 more bytes have it; 0: up to the end), type 4,
// payload. The tables of a track are in moov/trak/mdia/minf/stbl, those of a fragment in moof/traf:
//   stsz, stz2: 8 bytes, number of samples 4
//   stts: 4 bytes, number of entries 4, then samples 4 and duration 4 each
//   stsc: 4 bytes, number of entries 4, then first chunk 4, samples per chunk 4 and 4 more each
//   stco, co64: 4 bytes, number of chunks 4
//   hdlr: 8 bytes, type of the track 4
//   trun: 4 bytes, number of samples 4
#include "media/ffmpeg/reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"

namespace fovea::media::ffmpeg {

namespace {

/// An entry of the index, its copy for an edit list and a time offset take as many bytes.
constexpr std::uint64_t kSampleBytes = 64;

/// Sound of equal samples has an entry for as many at least.
constexpr std::uint64_t kSoundSamplesPerEntry = 512;

/// A file, read around the last place asked for.
class Window {
 public:
  explicit Window(const EncodedVideo& video) : video_(video) {}

  [[nodiscard]] std::uint64_t size() const { return video_.size_bytes(); }
  /// Four bytes; zeros behind the end.
  [[nodiscard]] std::uint32_t u32(std::uint64_t at) {
    if (at + 4 > size()) return 0;
    if (at < begin_ || at + 4 > begin_ + length_) load(at);
    const std::uint8_t* const bytes = buffer_.data() + (at - begin_);
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
           std::uint32_t{bytes[2]} << 8 | bytes[3];
  }
  [[nodiscard]] std::uint64_t u64(std::uint64_t at) {
    return std::uint64_t{u32(at)} << 32 | u32(at + 4);
  }

 private:
  void load(std::uint64_t at) {
    check_interrupt();
    begin_ = at;
    length_ = std::min<std::uint64_t>(buffer_.size(), size() - at);
    if (video_.file < 0) {
      std::memcpy(buffer_.data(), video_.bytes.data() + at, length_);
      return;
    }
    for (std::size_t done = 0; done < length_;) {
      const ssize_t got = ::pread(video_.file, buffer_.data() + done, length_ - done,
                                  static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      FOVEA_CHECK(got >= 0, kIo, video_.name,
                  ": cannot read: ", std::generic_category().message(errno));
      FOVEA_CHECK(got > 0, kIo, video_.name, ": file ends after ", at + done, " of ", size(),
                  " bytes");
      done += static_cast<std::size_t>(got);
    }
  }

  const EncodedVideo& video_;
  std::array<std::uint8_t, 4096> buffer_{};
  std::uint64_t begin_ = 0;
  std::uint64_t length_ = 0;
};

constexpr std::uint32_t type_of(std::string_view name) {
  std::uint32_t type = 0;
  for (const char letter : name) type = type << 8 | static_cast<std::uint8_t>(letter);
  return type;
}

class SampleCounter {
 public:
  SampleCounter(const EncodedVideo& video, const MediaLimits& limits)
      : video_(video), limits_(limits), file_(video) {}

  void run() { visit_boxes(0, file_.size(), 0); }

 private:
  /// The numbers that the boxes of a track state together.
  struct Track {
    std::uint64_t samples = 0;
    std::uint64_t chunks = 0;
    std::uint64_t samples_per_chunk = 0;  // most
    std::uint64_t durations = 0;          // entries of stts
    bool is_sound = false;
    bool is_other = false;
    bool is_uniform = false;  // all samples last for 1 unit

    [[nodiscard]] std::uint64_t entries() const {
      if (!is_sound || is_other || durations != 1 || !is_uniform) return samples;
      return chunks * (samples_per_chunk / kSoundSamplesPerEntry + 1);
    }
  };

  void visit_boxes(std::uint64_t at, std::uint64_t end, int depth) {
    constexpr int kMostNested = 16;
    constexpr std::uint64_t kHeaderBytes = 8;
    while (depth < kMostNested && at + kHeaderBytes <= end) {
      const std::uint64_t short_size = file_.u32(at);
      const std::uint64_t header = short_size == 1 ? 2 * kHeaderBytes : kHeaderBytes;
      std::uint64_t size = short_size == 1 ? file_.u64(at + kHeaderBytes) : short_size;
      if (short_size == 0 || size > end - at) size = end - at;
      if (size < header) return;
      visit(file_.u32(at + 4), at + header, at + size, depth);
      at += size;
    }
  }

  void visit(std::uint32_t type, std::uint64_t at, std::uint64_t end, int depth) {
    switch (type) {
      case type_of("trak"): {
        const Track outer = std::exchange(track_, {});
        visit_boxes(at, end, depth + 1);
        add(track_.entries());
        track_ = outer;
        return;
      }
      case type_of("free"):  // FFmpeg looks for a hidden header there
      case type_of("hoov"):
      case type_of("moov"):
      case type_of("mdia"):
      case type_of("minf"):
      case type_of("stbl"):
      case type_of("moof"):
      case type_of("traf"):
      case type_of("udta"):  // these hold no tables, but FFmpeg would read them
      case type_of("edts"):
      case type_of("dinf"):
      case type_of("tref"):
      case type_of("mvex"): visit_boxes(at, end, depth + 1); return;
      case type_of("cmov"):
        FOVEA_CHECK(false, kUnsupported, video_.name, ": its header is compressed");
        return;
      case type_of("trun"): add(file_.u32(at + 4)); return;
      default: read_table(type, at, end);
    }
  }

  void read_table(std::uint32_t type, std::uint64_t at, std::uint64_t end) {
    const std::uint64_t count = file_.u32(at + 4);
    switch (type) {
      case type_of("stsz"):
      case type_of("stz2"): track_.samples += file_.u32(at + 8); break;
      case type_of("stco"):
      case type_of("co64"): track_.chunks += count; break;
      case type_of("stts"):
        track_.durations += count;
        track_.is_uniform = file_.u32(at + 12) == 1;
        break;
      case type_of("stsc"):
        for (std::uint64_t i = 0; i < count && at + 8 + 12 * (i + 1) <= end; ++i) {
          const std::uint64_t samples = file_.u32(at + 8 + 12 * i + 4);
          track_.samples_per_chunk = std::max(track_.samples_per_chunk, samples);
        }
        break;
      case type_of("hdlr"): read_kind(file_.u32(at + 8)); break;
      default: break;
    }
  }

  void read_kind(std::uint32_t kind) {
    if (kind == type_of("soun")) track_.is_sound = true;
    if (kind == type_of("vide") || kind == type_of("subp") || kind == type_of("clcp")) {
      track_.is_other = true;
    }
  }

  void add(std::uint64_t entries) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // far from overflow
    entries_ += std::min(entries, kMost);
    FOVEA_CHECK(entries_ <= limits_.max_item_bytes / kSampleBytes, kInvalidArgument, video_.name,
                ": expected a container of at most ", limits_.max_item_bytes / kSampleBytes,
                " samples by the limit on bytes, got ", entries_);
  }

  const EncodedVideo& video_;
  const MediaLimits& limits_;
  Window file_;
  Track track_;
  std::uint64_t entries_ = 0;
};

}  // namespace

void check_mp4_samples(const EncodedVideo& video, const MediaLimits& limits) {
  SampleCounter(video, limits).run();
}

}  // namespace fovea::media::ffmpeg
