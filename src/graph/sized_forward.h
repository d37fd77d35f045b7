#pragma once

#include <span>

#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/input_block.h"
#include "graph/lane.h"
#include "graph/run_memory.h"

namespace fovea {

/// Sizes of exactly these parts; those of one item stand together. Of a team: one part.
[[nodiscard]] GraphCapacity exact_capacity(std::span<const ItemPart> parts);

/// The forward of one path at one capacity: where its inputs lie, what memory it needs, and how it
/// is submitted. Eager runs and captures submit the same one.
class SizedForward {
 public:
  /// Lays out the inputs and counts what the forward needs; touches no device memory.
  /// @param model must outlive this object.
  SizedForward(const EncoderGraphModel& model, const Device& device, PathId path,
               const GraphCapacity& capacity);

  [[nodiscard]] const GraphCapacity& capacity() const noexcept { return capacity_; }
  [[nodiscard]] const RunMemory::Need& need() const noexcept { return need_; }

  /// Lets the model write the inputs for parts of the path and submits their upload.
  /// @param memory of the lane, holds need(); as in all functions below.
  /// @throws Error(kUnavailable) if an input is too small for them: nothing was submitted.
  void feed(Lane& lane, RunMemory& memory, std::span<const ItemPart> parts,
            InputScratch& scratch) const;
  /// Submits zeros for all inputs: nothing is live, every offset is 0.
  void feed_zeros(Lane& lane, RunMemory& memory) const;
  /// Submits the forward. @param is_recorded, team as those of ExecContext.
  void submit(Lane& lane, RunMemory& memory, bool is_recorded, const Team* team = nullptr) const;
  /// The rows of the parts, one after the other: device, [their tokens, path_width]; valid until
  /// the next run of the path in this memory.
  [[nodiscard]] TensorView output(const RunMemory& memory, std::span<const ItemPart> parts) const;

 private:
  /// The whole output buffer at `memory`.
  [[nodiscard]] TensorView rows_at(std::byte* memory) const;

  const EncoderGraphModel& model_;
  PathId path_;
  GraphCapacity capacity_;
  DType dtype_;  // of the output
  InputLayout layout_;
  RunMemory::Need need_;
};

}  // namespace fovea
