#pragma once

#include <cstdint>
#include <string>

#include "console.h"

namespace fovea::cli {

/// Shows on the console's status line what a long step is doing, and removes the line at its end.
/// Shows "label 3/10" if there is a total.
class Progress {
 public:
  Progress(Console& console, std::string label, std::int64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance();
  /// Shows `done` of `total`.
  void set(std::int64_t done, std::int64_t total);

 private:
  void show();

  Console& console_;  // outlives this object
  std::string label_;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace fovea::cli
