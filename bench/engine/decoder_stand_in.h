#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

namespace fovea::bench {

/// Where CTAs of the decoder go.
enum class Place {
  kEqual,   ///< wherever SMs become free, with the priority of the tower's
  kBefore,  ///< with a higher one
  kApart,   ///< to SMs of their own, those of DecoderStandIn::divide that are not the tower's
};

/// Stands for the decoder of a language model on GPU 0: a step is one CUDA graph of GEMVs in bf16,
/// the four of each layer of a model of width 4096 and MLP 12288, which reads all weights once. It
/// is limited by the bandwidth of memory, as decoders are. Not thread-safe.
class DecoderStandIn {
 public:
  /// Random weights of so many layers, 0.386 GB each. Ends the program with a message if a call
  /// into CUDA fails, as run() does.
  explicit DecoderStandIn(int layers);
  ~DecoderStandIn();

  [[nodiscard]] double gigabytes() const;
  /// Divides the GPU into a green context of so many SMs for the tower, or as many as the driver
  /// can set apart, and one of the others for Place::kApart, in place of those of an earlier call.
  /// @return SMs of the tower.
  int divide(int sms_of_tower);
  /// Calls `action` while the green context for the tower is current to this thread.
  void in_context_of_tower(const std::function<void()>& action) const;
  /// Runs steps one after the other, and waits for each as a decoder waits for its token, until it
  /// is stopped. @return milliseconds of each.
  [[nodiscard]] std::vector<double> run(Place place, const std::stop_token& stop) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fovea::bench
