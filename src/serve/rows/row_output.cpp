#include "serve/rows/row_output.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

/// Whether numbers change, and are not only picked and put elsewhere.
bool computes(const RowOptions& options) {
  return options.normalize || options.pooling == Pooling::kMean ||
         options.pooling == Pooling::kMax || size_of(options.type) == 1;
}

/// Some rows and columns of an item: what one tensor is made from.
struct Window {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
};

/// The bytes of a row that are in the window. @param row counted from its first.
std::span<const std::byte> row_bytes(const Embedding& item, const Window& window,
                                     std::int64_t row) {
  const std::size_t element = size_of(element_type(item.dtype));
  const auto begin =
      static_cast<std::size_t>((window.first_row + row) * item.width + window.first_column);
  return {item.data.data() + begin * element, static_cast<std::size_t>(window.columns) * element};
}

/// The windows of the main embedding and the levels, as they are sent.
std::vector<Window> windows(const Embedding& item, std::int64_t hidden, const RowOptions& options) {
  const std::int64_t width = options.deepstack == Deepstack::kConcat ? item.width : hidden;
  const std::int64_t columns = options.dimensions.value_or(width);
  if (columns < 1 || columns > width) {
    refuse("dimensions",
           "expected 1 to " + std::to_string(width) + ", got " + std::to_string(columns));
  }
  const bool pooled = options.pooling != Pooling::kNone;
  if (pooled && item.rows == 0) {
    throw ApiError(400, "invalid_value", item.name + " has no rows that could be pooled",
                   item.name);
  }
  const bool one = options.pooling == Pooling::kFirst || options.pooling == Pooling::kLast;
  Window window{.first_row = options.pooling == Pooling::kLast ? item.rows - 1 : 0,
                .rows = one ? 1 : item.rows,
                .first_column = 0,
                .columns = columns};
  std::vector<Window> all{window};
  if (options.deepstack != Deepstack::kSplit) return all;
  for (window.first_column = hidden; window.first_column < item.width;
       window.first_column += hidden) {
    all.push_back(window);
  }
  return all;
}

/// Elements that are sent as they came. Refers to the item if they lie there one after the other.
BodyPart picked(const std::shared_ptr<const Embedding>& item, const Window& window,
                ByteOrder order) {
  const bool contiguous = window.columns == item->width || window.rows == 1;
  if (contiguous && order == ByteOrder::kLittle) {
    const std::byte* begin = window.rows == 0 ? nullptr : row_bytes(*item, window, 0).data();
    return {{begin, static_cast<std::size_t>(window.rows * window.columns) *
                        size_of(element_type(item->dtype))},
            item};
  }
  std::vector<std::byte> bytes;
  for (std::int64_t row = 0; row < window.rows; ++row) {
    const std::span<const std::byte> from = row_bytes(*item, window, row);
    bytes.insert(bytes.end(), from.begin(), from.end());
  }
  if (order == ByteOrder::kBig) swap_bytes(bytes, size_of(element_type(item->dtype)));
  return body_part(std::move(bytes));
}

/// Scales to L2 norm 1, summed in double.
void normalise(std::vector<float>& numbers) {
  double squares = 0;
  for (const float number : numbers) squares += static_cast<double>(number) * number;
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (float& number : numbers) number = static_cast<float>(number * scale);
}

/// The numbers of a row in the window of a float32 item.
void read_row(const Embedding& item, const Window& window, std::int64_t row,
              std::vector<float>& numbers) {
  const std::span<const std::byte> bytes = row_bytes(item, window, row);
  numbers.resize(static_cast<std::size_t>(window.columns));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
}

std::vector<float> mean(const Embedding& item, const Window& window) {
  std::vector<double> sums(static_cast<std::size_t>(window.columns));
  std::vector<float> numbers;
  for (std::int64_t row = 0; row < window.rows; ++row) {
    read_row(item, window, row, numbers);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += numbers[i];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    numbers[i] = static_cast<float>(sums[i] / static_cast<double>(window.rows));
  }
  return numbers;
}

std::vector<float> greatest(const Embedding& item, const Window& window) {
  std::vector<float> most;
  std::vector<float> numbers;
  read_row(item, window, 0, most);
  for (std::int64_t row = 1; row < window.rows; ++row) {
    read_row(item, window, row, numbers);
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], numbers[i]);
  }
  return most;
}

/// Elements that are computed from a float32 item.
BodyPart computed(const Embedding& item, const Window& window, const RowOptions& options) {
  std::vector<std::byte> bytes;
  const auto finish = [&](std::vector<float>& numbers) {
    if (options.normalize) normalise(numbers);
    append_elements(numbers, options.type, bytes);
  };
  if (options.pooling == Pooling::kMean || options.pooling == Pooling::kMax) {
    std::vector<float> numbers =
        options.pooling == Pooling::kMean ? mean(item, window) : greatest(item, window);
    finish(numbers);
  } else {
    bytes.reserve(static_cast<std::size_t>(window.rows * window.columns) * size_of(options.type));
    std::vector<float> numbers;
    for (std::int64_t row = 0; row < window.rows; ++row) {
      read_row(item, window, row, numbers);
      finish(numbers);
    }
  }
  if (options.order == ByteOrder::kBig) swap_bytes(bytes, size_of(options.type));
  return body_part(std::move(bytes));
}

/// Appends nested arrays; `numbers` moves behind those that were written.
void append_array(std::span<const std::int64_t> shape, const std::byte*& numbers,
                  std::string& out) {
  if (shape.empty()) {
    float number = 0;
    std::memcpy(&number, numbers, sizeof number);
    numbers += sizeof number;
    std::array<char, 32> text;
    out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr);
    return;
  }
  out += '[';
  for (std::int64_t i = 0; i < shape.front(); ++i) {
    if (i > 0) out += ',';
    append_array(shape.subspan(1), numbers, out);
  }
  out += ']';
}

}  // namespace

RowDType engine_dtype(const RowOptions& options) {
  if (computes(options)) return RowDType::kFloat32;
  switch (options.type) {
    case ElementType::kBFloat16: return RowDType::kBFloat16;
    case ElementType::kFloat16: return RowDType::kFloat16;
    default: return RowDType::kFloat32;
  }
}

bool copies_rows(const RowOptions& options) {
  return computes(options) || options.order == ByteOrder::kBig || options.dimensions ||
         options.deepstack != Deepstack::kConcat;
}

std::vector<RowTensor> make_tensors(const std::shared_ptr<const Embedding>& item,
                                    std::int64_t hidden, const RowOptions& options) {
  if (item->dtype != engine_dtype(options))
    throw Error(ErrorCode::kInternal, "make_tensors: rows of another dtype than was asked for");
  if (!item->is_finite()) {
    throw ApiError(500, "non_finite_output", item->name + ": the model gave NaN or infinity",
                   item->name);
  }
  std::vector<RowTensor> tensors;
  for (const Window& window : windows(*item, hidden, options)) {
    RowTensor tensor{.shape = {window.rows, window.columns},
                     .type = options.type,
                     .order = options.order,
                     .bytes = computes(options) ? computed(*item, window, options)
                                                : picked(item, window, options.order)};
    if (options.pooling != Pooling::kNone) tensor.shape.erase(tensor.shape.begin());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<RowTensor> first_tensors(std::span<const std::shared_ptr<const Embedding>> items,
                                     std::int64_t hidden, const RowOptions& options) {
  std::vector<RowTensor> tensors;
  for (const std::shared_ptr<const Embedding>& item : items) {
    tensors.push_back(std::move(make_tensors(item, hidden, options).front()));
  }
  return tensors;
}

void append_json_numbers(const RowTensor& tensor, std::string& out) {
  const std::byte* numbers = tensor.bytes.bytes.data();
  append_array(tensor.shape, numbers, out);
}

}  // namespace fovea::serve
