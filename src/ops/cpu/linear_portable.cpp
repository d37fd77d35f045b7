// The linear layer for any processor: vectors of four floats in the compiler's own notation.
#include <bit>

#include "ops/cpu/linear_body.h"

namespace fovea::cpu {

namespace {

using Floats = float __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));

struct Portable {
  using Reg = Floats;
  static constexpr int kWidth = 4;
  static constexpr int kTileRows = 4;  // 8 accumulators

  static Reg load(const float* p) {
    Reg a;
    std::memcpy(&a, p, sizeof(a));
    return a;
  }
  static Reg load_some(const float* p, std::int64_t count) {
    Reg a{};
    std::memcpy(&a, p, static_cast<std::size_t>(count) * sizeof(float));
    return a;
  }
  static void store(float* p, Reg a) { std::memcpy(p, &a, sizeof(a)); }
  static void store_some(float* p, Reg a, std::int64_t count) {
    std::memcpy(p, &a, static_cast<std::size_t>(count) * sizeof(float));
  }
  static Reg broadcast(float a) { return Reg{a, a, a, a}; }
  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg min(Reg a, Reg b) { return a < b ? a : b; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }
  static Reg abs(Reg a) { return floats(ints(a) & 0x7fffffff); }
  /// To the nearest integer, for |a| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
  static Reg round(Reg a) { return (a + 12582912.0f) - 12582912.0f; }
  /// a * 2^n for an integral n in [-252, 254]: in two steps, so that overflow gives infinity and
  /// underflow rounds once.
  static Reg scale(Reg a, Reg n) {
    const Reg ordered = n == n ? n : Reg{};  // a NaN cannot become an integer; `a` carries it on
    const Ints whole = __builtin_convertvector(ordered, Ints);
    const Ints half = whole >> 1;
    return a * power_of_two(half) * power_of_two(whole - half);
  }
  static Reg where_negative(Reg x, Reg yes, Reg no) { return ints(x) < 0 ? yes : no; }
  static void widen_pairs(const std::uint32_t* pairs, float* low, float* high) {
    Ints both;
    std::memcpy(&both, pairs, sizeof(both));
    store(low, floats(both << 16));
    store(high, floats(both & -65536));
  }

 private:
  static Ints ints(Reg a) { return std::bit_cast<Ints>(a); }
  static Reg floats(Ints a) { return std::bit_cast<Reg>(a); }
  static Reg power_of_two(Ints n) { return floats((n + 127) << 23); }
};

}  // namespace

const LinearLeaf kLinearPortable{&run_linear_task<Portable>, Portable::kTileRows};

}  // namespace fovea::cpu
