#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "ops/cuda/gemm/gemm.h"

namespace fovea::cuda {

/// Which way was measured to be fastest, by GEMM and row count, and what other row counts take. The
/// table measures nothing. Choices are kept between processes in a file. Thread-safe.
class GemmChoiceTable {
 public:
  /// What the table asks of who takes a choice. The functions must not use the table.
  struct Asks {
    /// Whether a choice for another row count, or of an earlier process, can compute the GEMM.
    std::function<bool(const GemmChoice&)> fits;
    /// What the GEMM costs by a choice according to a model, in any unit; absent if it knows none.
    std::function<std::optional<double>(const GemmChoice&)> cost;
    /// What is most promising where nothing is known.
    std::function<GemmChoice()> guess;
  };

  /// @param path of the file, which is read now and written as choices come; empty: none. A damaged
  /// file is ignored and replaced. @param identity what choices are valid for.
  GemmChoiceTable(std::string path, std::string identity);
  /// Writes what is not written yet.
  ~GemmChoiceTable();
  GemmChoiceTable(const GemmChoiceTable&) = delete;
  GemmChoiceTable& operator=(const GemmChoiceTable&) = delete;

  /// What is kept for this very row count.
  [[nodiscard]] std::optional<GemmChoice> find(const GemmKey& key) const;

  /// What a GEMM takes that nobody is to wait for: the choice for this row count if there is one,
  /// else one of its neighbours, else the guess. Neighbours are the choices for the nearest
  /// measured row counts above and below, those that fit. They serve row counts up to kReach times
  /// as large and small; one for kManyRows or more serves all larger ones, too. Of two, the nearer
  /// by ratio is taken, unless it costs clearly more. The answer stays the same until keep() is
  /// called, and costs a lookup from the second time on.
  [[nodiscard]] GemmChoice take(const GemmKey& key, const Asks& asks);

  /// Remembers a choice, and now and then writes all of them to the file.
  void keep(const GemmKey& key, const GemmChoice& choice);

  static constexpr std::int64_t kReach = 2;
  static constexpr std::int64_t kManyRows = 4096;  ///< tiles then come in many waves
  /// A choice for fewer rows may need one wave of tiles more.
  static constexpr double kClearlyMore = 1.05;

 private:
  using Choices = std::map<GemmKey, GemmChoice>;
  using Entry = Choices::value_type;

  /// The nearest entry of the same GEMM that fits, or null.
  [[nodiscard]] const Entry* below(const GemmKey& key, const Asks& asks) const;
  [[nodiscard]] const Entry* above(const GemmKey& key, const Asks& asks) const;
  /// The neighbour that is taken, or null.
  [[nodiscard]] const Entry* neighbour(const GemmKey& key, const Asks& asks) const;

  const std::string path_;
  const std::string identity_;
  mutable std::mutex mutex_;  // guards the members below
  Choices kept_;
  Choices taken_;  // answers of take() since keep()
  bool is_saved_ = true;
  std::chrono::steady_clock::time_point saved_at_ = {};
};

/// Reads the choices stored at `path` for `identity` (GPU model and software). Empty if
/// there is no path, no file, or the file is damaged or of another identity: choices are only a
/// shortcut.
[[nodiscard]] std::map<GemmKey, GemmChoice> load_gemm_choices(const std::string& path,
                                                              const std::string& identity);

/// Replaces the file at `path`, and makes its folder if there is none; does nothing without a path.
/// A file that cannot be written costs the next process its measurements and nothing else, so it is
/// no error.
void save_gemm_choices(const std::string& path, const std::string& identity,
                       const std::map<GemmKey, GemmChoice>& choices);

}  // namespace fovea::cuda
