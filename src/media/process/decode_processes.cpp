// Decoding in other processes, from the outside.
#include "media/process/decode_processes.h"

#include <unistd.h>

#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/plugin.h"
#include "media/decode_image.h"
#include "media/process/process_pool.h"
#include "media/process/process_starter.h"

namespace fovea::media {
namespace {

constexpr std::uint64_t kSlackBytes = std::uint64_t{64} << 20;  // of libraries and the allocator

}  // namespace

struct DecodeProcesses::Impl {
  Impl(int count, const MediaOptions& media_options, std::string path)
      : options(media_options),
        program(std::move(path)),
        images(count, [this] { return start("image", image_bytes()); }) {}

  std::unique_ptr<DecoderProcess> start(const char* kind, std::uint64_t address_bytes) {
    return std::make_unique<DecoderProcess>(
        starter.start(program, {kind, std::to_string(getpid()), std::to_string(address_bytes),
                                std::to_string(2 * std::chrono::seconds(kMostItemTime).count())}));
  }

  /// Of a file and what becomes of it.
  [[nodiscard]] std::uint64_t image_bytes() const {
    return options.limits.max_image_bytes + options.limits.max_item_bytes + kSlackBytes;
  }

  const MediaOptions options;
  const std::string program;
  ProcessStarter starter;  // outlives the processes, which end with it
  ProcessPool images;
};

DecodeProcesses::DecodeProcesses(int count, const MediaOptions& options,
                                 const std::string& program) {
  FOVEA_CHECK(count >= 1, kInvalidArgument, "number of decode processes must be >= 1, got ", count);
  impl_ = std::make_unique<Impl>(count, options, program);
}

DecodeProcesses::~DecodeProcesses() = default;

Image DecodeProcesses::decode_image(std::span<const std::uint8_t> bytes, std::string_view name) {
  const ImageInfo info = probe_image(bytes, name, impl_->options);
  ProcessPool::Lease process(impl_->images);
  const Interrupt late({}, Interrupt::Clock::now() + kMostItemTime, name, current_interrupt());
  const InterruptScope scope(&late);
  return process->decode_image({bytes, name}, info, impl_->options);
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
