#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/embedding.h"
#include "serve/api_error.h"
#include "serve/rows/element_type.h"
#include "serve/rows/row_output.h"

namespace fovea::serve::test {

/// An encoded item with these numbers, row by row.
inline std::shared_ptr<Embedding> item_of(std::int64_t rows, std::vector<float> numbers,
                                          RowDType dtype = RowDType::kFloat32,
                                          std::string name = "items[0].image") {
  auto item = std::make_shared<Embedding>();
  item->name = std::move(name);
  item->rows = rows;
  item->width = rows == 0 ? 4 : static_cast<std::int64_t>(numbers.size()) / rows;
  item->dtype = dtype;
  std::vector<std::byte> bytes;
  append_elements(numbers, element_type(dtype), bytes);
  item->data = RowBytes(std::span<const std::byte>(bytes));
  return item;
}

/// All parts of a body, one after the other.
inline std::string text_of(const std::vector<BodyPart>& parts) {
  std::string text;
  for (const BodyPart& part : parts) {
    text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  return text;
}

/// The numbers of a float32 little-endian tensor.
inline std::vector<float> numbers_of(const RowTensor& tensor) {
  std::vector<float> numbers(tensor.bytes.bytes.size() / sizeof(float));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), tensor.bytes.bytes.data(), tensor.bytes.bytes.size());
  }
  return numbers;
}

/// What a call throws; status 0: nothing.
template <typename Call>
ApiError refusal(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

}  // namespace fovea::serve::test
