#pragma once

#include <cstdint>

#include "fovea/tower/device/arena.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/device/team.h"

namespace fovea {

/// What a backend's body of an op receives besides the arguments of the op: where to submit work,
/// and where to take scratch memory.
struct Submission {
  Stream& stream;
  /// For scratch memory of the submitted work, taken in an Arena::Scope that ends with the body.
  /// Later work may then reuse it, because it runs after this work on the same stream.
  Arena& arena;
  /// See ExecContext::is_recorded.
  bool is_recorded;
  /// See ExecContext::team.
  const Team* team;
};

/// What every op receives: where work goes, who computes it, where intermediates live.
struct ExecContext {
  Stream& stream;
  const Kernels& kernels;
  Arena& arena;
  /// A second queue for work that may overlap with `stream`; the same object if the device has only
  /// one. Users order the two with Stream::wait_for, in both directions.
  Stream& side;
  /// Whether this work is being recorded, or warms up for a recording. What a backend chooses by
  /// measurement is then measured for these exact sizes.
  bool is_recorded = false;
  /// The team that computes this forward, if several devices do: the rows here are those of one
  /// member. Ops in which rows meet say what they do then; the others need not know.
  const Team* team = nullptr;

  /// Rows of the whole forward, for `rows` of this member.
  [[nodiscard]] std::int64_t all_rows(std::int64_t rows) const noexcept {
    return team == nullptr ? rows : team->size * rows;
  }
  /// What ops hand to the kernels.
  [[nodiscard]] Submission submission() const noexcept {
    return {stream, arena, is_recorded, team};
  }

  /// The same, submitting to the second queue.
  [[nodiscard]] ExecContext on_side() const noexcept {
    return {side, kernels, arena, side, is_recorded, team};
  }
};

/// The number of leading rows of the operands of an op that hold data. The count is read when the
/// work runs, so one recorded graph works for any number of rows up to the capacity given by the
/// shapes. No op writes a count: it is copied before the first op of a pass is submitted, and a GPU
/// may read it while ops that were submitted earlier still run.
///
/// The contract of every op: rows [0, live) of the output are computed from rows [0, live) of the
/// inputs alone. Rows beyond are not read by the CPU backend and not written by it; the CUDA
/// backend may write finite values there, unless the op says that it does not. No live row ever
/// depends on them.
struct LiveRows {
  const std::int32_t* count = nullptr;  ///< in device memory; null: all rows are live
};

}  // namespace fovea
