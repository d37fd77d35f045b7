// One device, one stream, one arena: what every op test needs.
#include "support/op_fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/check.h"

namespace fovea::test {

namespace {

constexpr std::size_t kArenaBytes = std::size_t{16} << 20;

}  // namespace

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  for (const AvailableDevice& device : available_devices()) {
    for (const DType dtype : device.dtypes) cases.push_back({device, dtype});
  }
  return cases;
}

void PrintTo(const OpCase& op_case, std::ostream* out) {
  *out << op_case.device.name << '_' << to_string(op_case.dtype);
}

std::string op_case_name(const ::testing::TestParamInfo<OpCase>& info) {
  return cat(info.param.device.name, '_', to_string(info.param.dtype));
}

std::vector<float> normal_values(std::mt19937_64& generator, std::int64_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i]))
        << "element " << i << ": " << got[i] << " and " << want[i];
  }
}

OpFixture::OpFixture(const OpCase& op_case, int num_threads)
    : case_(op_case),
      under_test_(op_case.device.make(num_threads)),
      stream_(under_test_.device->create_stream()),
      memory_(under_test_.device->allocate(kArenaBytes)),
      arena_(memory_.data(), memory_.bytes()) {}

std::vector<float> OpFixture::rounded(std::vector<float> values) const {
  std::vector<std::byte> narrow(values.size() * size_of(dtype()));
  narrow_from_f32(values.data(), dtype(), narrow.data(), values.size());
  widen_to_f32(dtype(), narrow.data(), values.data(), values.size());
  return values;
}

Tensor OpFixture::activations(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = make_tensor(device(), dtype(), shape);
  write(tensor, values);
  return tensor;
}

Tensor OpFixture::floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = make_tensor(device(), DType::kF32, shape);
  write(tensor, values);
  return tensor;
}

Tensor OpFixture::ints(const Shape& shape, const std::vector<std::int32_t>& values) {
  Tensor tensor = make_tensor(device(), DType::kI32, shape);
  write(tensor, values);
  return tensor;
}

Tensor OpFixture::bytes(const std::vector<std::uint8_t>& values) {
  Tensor tensor = make_tensor(device(), DType::kU8, {static_cast<std::int64_t>(values.size())});
  write_raw(tensor, values.data(), values.size());
  return tensor;
}

Tensor OpFixture::poisoned(const Shape& shape) {
  Tensor tensor = make_tensor(device(), dtype(), shape);
  poison(tensor);
  return tensor;
}

void OpFixture::write(const Tensor& tensor, const std::vector<float>& values) {
  FOVEA_CHECK(tensor.shape.elements() == static_cast<std::int64_t>(values.size()), kInternal,
              values.size(), " values for a tensor of shape ", tensor.shape);
  std::vector<std::byte> narrow(values.size() * size_of(tensor.dtype));
  narrow_from_f32(values.data(), tensor.dtype, narrow.data(), values.size());
  write_raw(tensor, narrow.data(), narrow.size());
}

void OpFixture::write(const Tensor& tensor, const std::vector<std::int32_t>& values) {
  FOVEA_CHECK(tensor.shape.elements() == static_cast<std::int64_t>(values.size()), kInternal,
              values.size(), " values for a tensor of shape ", tensor.shape);
  write_raw(tensor, values.data(), values.size() * sizeof(std::int32_t));
}

void OpFixture::poison(const Tensor& tensor) {
  write(tensor, std::vector<float>(static_cast<std::size_t>(tensor.shape.elements()), kPoison));
}

void OpFixture::write_raw(const Tensor& tensor, const void* from, std::size_t bytes) {
  stream_->copy(tensor.buffer.data(), static_cast<const std::byte*>(from), bytes);
  stream_->synchronize();  // `from` may die now
}

std::vector<float> OpFixture::read(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.shape.elements());
  std::vector<std::byte> raw(count * size_of(tensor.dtype));
  stream_->copy(raw.data(), tensor.buffer.data(), raw.size());
  stream_->synchronize();
  std::vector<float> values(count);
  widen_to_f32(tensor.dtype, raw.data(), values.data(), count);
  return values;
}

std::unique_ptr<RecordedGraph> OpFixture::capture(const Op& op) {
  return stream_->capture([&] {
    ExecContext context = ctx();
    op(context);
  });
}

std::vector<float> OpFixture::run(const Tensor& out, const std::function<void()>& prepare,
                                  const Op& op) {
  prepare();
  ExecContext context = ctx();
  op(context);
  const std::vector<float> eager = read(out);

  const auto graph = capture(op);
  prepare();
  stream_->replay(*graph);
  expect_same_bits(read(out), eager);
  return eager;
}

std::vector<float> OpFixture::run_live(const Tensor& out, std::int64_t live,
                                       const std::function<void()>& prepare, const Op& op) {
  std::vector<float> got = run(out, prepare, op);
  expect_untouched(got, live);
  got.resize(static_cast<std::size_t>(live));
  return got;
}

void OpFixture::expect_close(const std::vector<float>& got, const std::vector<double>& want,
                             OpClass op) {
  const Tolerance limit = tolerance(dtype(), op);
  ASSERT_GE(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(limit.accepts(got[i], want[i]))
        << "element " << i << ": got " << got[i] << ", expected " << want[i];
  }
}

void OpFixture::expect_untouched(const std::vector<float>& got, std::int64_t live_elements,
                                 std::vector<float> before) {
  if (!exact_rows()) return;
  if (before.empty()) before.assign(got.size(), kPoison);
  const auto tail = [&](const std::vector<float>& all) {
    return std::vector<float>(all.begin() + live_elements, all.end());
  };
  expect_same_bits(tail(got), tail(rounded(std::move(before))));
}

}  // namespace fovea::test
