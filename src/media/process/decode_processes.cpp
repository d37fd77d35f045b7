// Decoding in other processes, from the outside.
#include "media/process/decode_processes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/file_descriptor.h"
#include "core/interrupt.h"
#include "core/plugin/plugin.h"
#include "media/process/child_process.h"
#include "media/process/process_pool.h"

namespace fovea::media {
namespace {

constexpr std::uint64_t kSlackBytes = std::uint64_t{64} << 20;  // of libraries and the allocator
constexpr std::uint64_t kVideoSlackBytes = std::uint64_t{256} << 20;

/// A file in memory that holds a copy of some bytes.
class MemoryFile {
 public:
  MemoryFile(std::span<const std::uint8_t> bytes, std::string_view name)
      : file_(memfd_create("fovea", MFD_CLOEXEC)) {
    FOVEA_CHECK(file_.is_open(), kUnavailable, name, ": no file in memory: ", std::strerror(errno));
    while (!bytes.empty()) {
      check_interrupt();
      constexpr std::size_t kAtOnce = std::size_t{16} << 20;
      const ssize_t done = write(file_.get(), bytes.data(), std::min(bytes.size(), kAtOnce));
      FOVEA_CHECK(done > 0 || errno == EINTR, kOutOfMemory, name,
                  ": no memory for a copy of it: ", std::strerror(errno));
      bytes = bytes.subspan(done > 0 ? static_cast<std::size_t>(done) : 0);
    }
  }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

 private:
  FileDescriptor file_;
};

}  // namespace

struct DecodeProcesses::Impl {
  Impl(int count, const MediaOptions& media_options, std::string path)
      : options(media_options),
        program(std::move(path)),
        images(count, [this] { return start("image", image_bytes()); }),
        videos(count, [this] { return start("video", video_bytes()); }) {}

  std::unique_ptr<DecoderProcess> start(const char* kind, std::uint64_t address_bytes) {
    return std::make_unique<DecoderProcess>(
        starter.start(program, {kind, std::to_string(getpid()), std::to_string(address_bytes),
                                std::to_string(2 * std::chrono::seconds(kMostItemTime).count())}));
  }

  /// Bytes of a file and of what becomes of it.
  [[nodiscard]] std::uint64_t image_bytes() const {
    return options.limits.max_image_bytes + options.limits.max_item_bytes + kSlackBytes;
  }

  /// Bytes of the frames that a codec holds, and of the packets and tables that lead to them.
  [[nodiscard]] std::uint64_t video_bytes() const {
    return 2 * options.limits.max_item_bytes + kVideoSlackBytes;
  }

  const MediaOptions options;
  const std::string program;
  ProcessStarter starter;  // outlives the processes, which end with it
  ProcessPool images;
  ProcessPool videos;
};

DecodeProcesses::DecodeProcesses(int count, const MediaOptions& options,
                                 const std::string& program) {
  FOVEA_CHECK(count >= 1, kInvalidArgument, "number of decode processes must be >= 1, got ", count);
  impl_ = std::make_unique<Impl>(count, options, program);
}

DecodeProcesses::~DecodeProcesses() = default;

Image DecodeProcesses::decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                                    const ImageInfo& info, int reduction) {
  ProcessPool::Lease process(impl_->images);
  const Interrupt late({}, Interrupt::Clock::now() + kMostItemTime, name, current_interrupt());
  const InterruptScope scope(&late);
  return process->decode_image({bytes, name}, info, impl_->options, reduction);
}

VideoInfo DecodeProcesses::decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                                        const FrameSink& sink) {
  if (video.file < 0) {
    const MemoryFile copy(video.bytes, video.name);
    return decode_video(
        {.file = copy.descriptor(), .file_bytes = video.bytes.size(), .name = video.name}, sampler,
        sink);
  }
  ProcessPool::Lease process(impl_->videos);
  const Interrupt late({}, Interrupt::Clock::now() + kMostItemTime, video.name,
                       current_interrupt());
  const InterruptScope scope(&late);
  return process->decode_video(video, sampler, impl_->options, sink);
}

Isolation DecodeProcesses::isolation() { return ProcessPool::Lease(impl_->images)->isolation(); }

std::unique_ptr<DecodeProcesses> make_decode_processes(int count, const MediaOptions& options) {
  if (count == 0) return nullptr;
  PluginFile decoder = find_plugin(kDecoderFile);
  if (decoder.reason.empty()) decoder.reason = plugin_refusal(decoder.path, kDecoderBuild);
  FOVEA_CHECK(decoder.reason.empty(), kNotFound, "no decode processes: ", decoder.reason);
  return std::make_unique<DecodeProcesses>(count, options, decoder.path);
}

std::string decoder_status() {
  try {
    const std::unique_ptr<DecodeProcesses> processes = make_decode_processes(1, {});
    const std::string place = cat(" (", find_plugin(kDecoderFile).path, ")");
    switch (processes->isolation()) {
      case Isolation::kNone: return "without isolation, for sanitizers" + place;
      case Isolation::kLimits: return "resource limits; no seccomp on this system" + place;
      case Isolation::kSeccomp: return "resource limits and seccomp" + place;
    }
    return "";
  } catch (const Error& error) {
    return cat("not used: ", error.what());
  }
}

}  // namespace fovea::media
