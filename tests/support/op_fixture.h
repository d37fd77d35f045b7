#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "fovea/tower/device/arena.h"
#include "fovea/tower/ops/context.h"
#include "support/devices.h"
#include "support/tolerance.h"

namespace fovea::test {

/// What an op test is run with: one backend and one activation dtype.
struct OpCase {
  AvailableDevice device;
  DType dtype;
};

/// Every backend with every dtype it takes; for INSTANTIATE_TEST_SUITE_P.
[[nodiscard]] std::vector<OpCase> op_cases();
/// "cpu_avx2_float32"
[[nodiscard]] std::string op_case_name(const ::testing::TestParamInfo<OpCase>& info);
void PrintTo(const OpCase& op_case, std::ostream* out);

/// Numbers in host memory, as they are packed; `values` outlives the view.
[[nodiscard]] inline ConstTensorView view_of(const std::vector<float>& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
}

/// Random numbers from a normal distribution with mean 0 and deviation 1.
[[nodiscard]] std::vector<float> normal_values(std::mt19937_64& generator, std::int64_t count);

/// What poisoned memory holds: a NaN that no arithmetic on ordinary NaN or numbers produces.
inline constexpr float kPoison = std::bit_cast<float>(0x7fd50000u);

/// Bit for bit the same numbers, NaN included.
void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want);

/// A device, a stream and an arena of one op test, with tensors that go up and come back as f32.
class OpFixture {
 public:
  explicit OpFixture(const OpCase& op_case, int num_threads = 3);

  [[nodiscard]] DType dtype() const noexcept { return case_.dtype; }
  [[nodiscard]] bool exact_rows() const noexcept { return case_.device.exact_rows; }
  [[nodiscard]] Device& device() noexcept { return *under_test_.device; }
  [[nodiscard]] Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] ExecContext ctx() noexcept {
    return {*stream_, under_test_.device->kernels(), arena_, *stream_};
  }

  /// The nearest numbers that the activation dtype has.
  [[nodiscard]] std::vector<float> rounded(std::vector<float> values) const;

  /// Tensors on the device. activations() rounds to the activation dtype.
  [[nodiscard]] Tensor activations(const Shape& shape, const std::vector<float>& values);
  [[nodiscard]] Tensor floats(const Shape& shape, const std::vector<float>& values);
  [[nodiscard]] Tensor ints(const Shape& shape, const std::vector<std::int32_t>& values);
  [[nodiscard]] Tensor bytes(const std::vector<std::uint8_t>& values);
  /// An activation tensor full of kPoison.
  [[nodiscard]] Tensor poisoned(const Shape& shape);

  /// Overwrites a tensor; activations are rounded.
  void write(const Tensor& tensor, const std::vector<float>& values);
  void write(const Tensor& tensor, const std::vector<std::int32_t>& values);
  void poison(const Tensor& tensor);
  [[nodiscard]] std::vector<float> read(const Tensor& tensor);

  /// The live count stored in a tensor made by ints({1}, {count}).
  [[nodiscard]] static LiveRows live(const Tensor& count) {
    return {reinterpret_cast<const std::int32_t*>(count.buffer.data())};
  }

  using Op = std::function<void(ExecContext&)>;

  /// Runs `op` eagerly and as a recording, each time after `prepare`, expects equal bits and
  /// returns what `out` holds.
  std::vector<float> run(const Tensor& out, const std::function<void()>& prepare, const Op& op);
  /// As above; `out` is poisoned before each run: every element that counts must be written.
  std::vector<float> run(const Tensor& out, const Op& op) {
    return run(
        out, [&] { poison(out); }, op);
  }
  /// As the first for an op that computes the first `live` elements of `out`, which it returns; the
  /// others are expected to be untouched.
  std::vector<float> run_live(const Tensor& out, std::int64_t live,
                              const std::function<void()>& prepare, const Op& op);
  /// As above for ops that change a tensor in place.
  std::vector<float> run_in_place(const Tensor& x, const std::vector<float>& before, const Op& op) {
    return run(
        x, [&] { write(x, before); }, op);
  }
  [[nodiscard]] std::unique_ptr<RecordedGraph> capture(const Op& op);

  /// Compares the first want.size() elements within the tolerance of the dtype.
  void expect_close(const std::vector<float>& got, const std::vector<double>& want, OpClass op);
  /// Elements beyond the live rows hold what they held `before` the op, where the backend promises
  /// not to write them; without `before`, poison.
  void expect_untouched(const std::vector<float>& got, std::int64_t live_elements,
                        std::vector<float> before = {});

 private:
  void write_raw(const Tensor& tensor, const void* from, std::size_t bytes);

  OpCase case_;
  DeviceUnderTest under_test_;
  std::unique_ptr<Stream> stream_;
  Buffer memory_;
  Arena arena_;
};

}  // namespace fovea::test
