#pragma once

#include "ops/cuda/grid_attention/grid_attention.h"

// Where the tokens of a window are.
namespace fovea::cuda {

/// One window of one image.
struct GridWindow {
  int first_row;  // of the image in qkv
  int top;
  int left;
  int rows;  // of the window that lie in the image
  int cols;

  /// Row in qkv of place (y, x); -1 beyond the image.
  [[nodiscard]] __device__ int row_of(const GridWork& w, int y, int x) const {
    return y < rows && x < cols ? first_row + (top + y) * w.width + left + x : -1;
  }
  [[nodiscard]] __device__ int num_queries() const { return rows * cols; }
  /// Place of the query number `index` among those in the image.
  [[nodiscard]] __device__ int2 place_of_query(int index) const {
    const int y = index / cols;
    return {index - y * cols, y};
  }
};

__device__ inline GridWindow make_grid_window(const GridWork& w, int number) {
  const int windows = w.windows_y * w.windows_x;
  const int image = number / windows;
  const int place = number - image * windows;
  const int y = place / w.windows_x;
  GridWindow window{};
  window.first_row = image * w.height * w.width;
  window.top = y * w.side_h;
  window.left = (place - y * w.windows_x) * w.side_w;
  window.rows = min(w.side_h, w.height - window.top);
  window.cols = min(w.side_w, w.width - window.left);
  return window;
}

/// Division by the columns of a window, for numbers below 2^20 and at most 2^10 columns.
class GridColumns {
 public:
  __device__ explicit GridColumns(int count)
      : count_(count), inverse_(0xffffffffu / static_cast<unsigned>(count) + 1u) {}
  /// Column and row of a place.
  [[nodiscard]] __device__ int2 split(int place) const {
    const int row = inverse_ == 0
                        ? place  // one column
                        : static_cast<int>(__umulhi(static_cast<unsigned>(place), inverse_));
    return {place - row * count_, row};
  }

 private:
  int count_;
  unsigned inverse_;  // ceil(2^32 / count)
};

}  // namespace fovea::cuda
