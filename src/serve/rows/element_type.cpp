#include "serve/rows/element_type.h"

#include <algorithm>
#include <array>
#include <bit>

#include "fovea/option_table.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

struct TypeName {
  ElementType type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array<TypeName, 5> kTypes = {{{ElementType::kFloat32, "float32", 4},
                                             {ElementType::kFloat16, "float16", 2},
                                             {ElementType::kBFloat16, "bfloat16", 2},
                                             {ElementType::kFp8E4M3, "fp8_e4m3", 1},
                                             {ElementType::kFp8E5M2, "fp8_e5m2", 1}}};

const TypeName& entry_of(ElementType type) {
  return *std::ranges::find(kTypes, type, &TypeName::type);
}

/// A binary format of a sign, an exponent and a fraction.
struct Format {
  int exponent_bits;
  int fraction_bits;
  std::uint32_t overflow;  ///< what a number beyond the range becomes, without sign
};

constexpr Format kHalf{5, 10, 0x7c00};
constexpr Format kBFloat{8, 7, 0x7f80};
constexpr Format kE4M3{4, 3, 0x7f};
constexpr Format kE5M2{5, 2, 0x7c};

/// A finite number in a format, to nearest even.
template <Format kTo>
std::uint32_t rounded(float number) {
  constexpr int kFraction = 23;  // bits of a float
  constexpr int kBias = (1 << (kTo.exponent_bits - 1)) - 1;
  constexpr int kLowest = 1 - kBias;  // exponent of the smallest normal number
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t sign = bits >> 31 << (kTo.exponent_bits + kTo.fraction_bits);
  const auto field = static_cast<int>(bits >> kFraction & 0xff);
  const int exponent = std::max(field, 1) - 127;
  const std::uint32_t significand =
      (bits & ((1U << kFraction) - 1)) | (field == 0 ? 0U : 1U << kFraction);

  const int shift = kFraction - kTo.fraction_bits + std::max(0, kLowest - exponent);
  if (shift > kFraction + 1) return sign;  // less than half of the smallest number
  const std::uint32_t half = 1U << (shift - 1);
  const std::uint32_t kept = (significand + half - 1 + (significand >> shift & 1)) >> shift;
  // A significand that was rounded up to the next power of two carries into the exponent.
  const auto power = static_cast<std::uint32_t>(std::max(exponent, kLowest) - kLowest);
  return sign | std::min((power << kTo.fraction_bits) + kept, kTo.overflow);
}

template <Format kTo, typename Element>
void append(std::span<const float> numbers, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + numbers.size() * sizeof(Element));
  std::byte* to = out.data() + begin;
  for (const float number : numbers) {
    const std::uint32_t bits = rounded<kTo>(number);
    for (std::size_t i = 0; i < sizeof(Element); ++i) {
      *to++ = static_cast<std::byte>(bits >> (8 * i) & 0xff);
    }
  }
}

}  // namespace

std::string_view to_string(ElementType type) { return entry_of(type).name; }

std::size_t size_of(ElementType type) { return entry_of(type).size; }

ElementType element_type(std::string_view name, const std::string& param) {
  const std::string_view wanted = full_name(name, kDTypeAliases);
  const auto* const found = std::ranges::find(kTypes, wanted, &TypeName::name);
  if (found != kTypes.end()) return found->type;
  std::string message = "expected one of";
  for (const TypeName& type : kTypes) {
    message += (type.type == kTypes.front().type ? " " : ", ") + std::string(type.name);
  }
  refuse(param, message + ", got \"" + shortened(name, 60) + "\"", "unsupported_dtype");
}

ElementType element_type(RowDType dtype) {
  switch (dtype) {
    case RowDType::kFloat32: return ElementType::kFloat32;
    case RowDType::kBFloat16: return ElementType::kBFloat16;
    case RowDType::kFloat16: return ElementType::kFloat16;
  }
  return ElementType::kFloat32;
}

void append_elements(std::span<const float> numbers, ElementType type,
                     std::vector<std::byte>& out) {
  static_assert(std::endian::native == std::endian::little);
  switch (type) {
    case ElementType::kFloat32: {
      const std::span<const std::byte> bytes = std::as_bytes(numbers);
      out.insert(out.end(), bytes.begin(), bytes.end());
      return;
    }
    case ElementType::kFloat16: return append<kHalf, std::uint16_t>(numbers, out);
    case ElementType::kBFloat16: return append<kBFloat, std::uint16_t>(numbers, out);
    case ElementType::kFp8E4M3: return append<kE4M3, std::uint8_t>(numbers, out);
    case ElementType::kFp8E5M2: return append<kE5M2, std::uint8_t>(numbers, out);
  }
}

void swap_bytes(std::span<std::byte> elements, std::size_t element_size) {
  if (element_size < 2) return;
  for (; elements.size() >= element_size; elements = elements.subspan(element_size)) {
    std::ranges::reverse(elements.first(element_size));
  }
}

}  // namespace fovea::serve
