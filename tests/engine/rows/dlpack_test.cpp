// Rows as tensors of DLPack: without a copy, with their memory, in both directions.
#include "fovea/dlpack.h"

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "engine/cached/noise.h"
#include "engine/rows/host_room.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

struct Deleter {
  void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};
using Tensor = std::unique_ptr<DLManagedTensor, Deleter>;

Embedding make_rows(RowDType dtype) {
  Embedding rows;
  rows.name = "three rows";
  rows.rows = 3;
  rows.width = 4;
  rows.dtype = dtype;
  rows.data.resize(12 * size_of(to_dtype(dtype)));
  std::ranges::fill(rows.data, std::byte{1});
  return rows;
}

TEST(DLPack, AnEmbeddingBecomesATensorWithoutACopy) {
  Embedding rows = make_rows(RowDType::kFloat32);
  const std::byte* const memory = rows.data.data();
  const Tensor tensor(to_dlpack(std::move(rows)));
  const DLTensor& view = tensor->dl_tensor;
  EXPECT_EQ(view.data, memory);
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 3);
  EXPECT_EQ(view.shape[1], 4);
  EXPECT_EQ(view.strides[0], 4);
  EXPECT_EQ(view.strides[1], 1);
  EXPECT_EQ(view.device.device_type, kDLCPU);
  EXPECT_EQ(view.byte_offset, 0u);
}

TEST(DLPack, ElementTypesAreThoseOfTheRows) {
  const auto type_of = [](RowDType dtype) {
    const Tensor tensor(to_dlpack(make_rows(dtype)));
    const DLDataType& type = tensor->dl_tensor.dtype;
    EXPECT_EQ(type.lanes, 1);
    return std::pair<int, int>(type.code, type.bits);
  };
  EXPECT_EQ(type_of(RowDType::kFloat32), std::pair(2, 32));
  EXPECT_EQ(type_of(RowDType::kFloat16), std::pair(2, 16));
  EXPECT_EQ(type_of(RowDType::kBFloat16), std::pair(4, 16));
}

TEST(DLPack, ATensorKeepsItsMemory) {
  const auto memory = std::make_shared<std::array<float, 64>>();
  const RowBlock block{.data = memory->data(), .device = 1, .row_stride_bytes = 32, .rows = 2};
  Tensor tensor(to_dlpack(block, 4, memory));
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(tensor->dl_tensor.device.device_id, 1);
  EXPECT_EQ(tensor->dl_tensor.strides[0], 8);
  tensor.reset();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(DLPack, ABlockIsWhatItsTensorWas) {
  std::array<std::uint16_t, 64> memory{};
  const RowBlock block{
      .data = &memory[2], .dtype = RowDType::kBFloat16, .row_stride_bytes = 20, .rows = 3};
  const Tensor tensor(to_dlpack(block, 4, nullptr));
  tensor->dl_tensor.data = memory.data();
  tensor->dl_tensor.byte_offset = 4;
  const RowBlock back = row_block(*tensor, 4);
  EXPECT_EQ(back.data, block.data);
  EXPECT_EQ(back.device, RowBlock::kHost);
  EXPECT_EQ(back.dtype, block.dtype);
  EXPECT_EQ(back.row_stride_bytes, 20);
  EXPECT_EQ(back.rows, 3);
}

TEST(DLPack, ATensorWithoutStridesIsCompact) {
  const Tensor tensor(to_dlpack(make_rows(RowDType::kFloat16)));
  tensor->dl_tensor.strides = nullptr;
  EXPECT_EQ(row_block(*tensor, 4).row_stride_bytes, 0);
}

TEST(DLPack, PinnedMemoryIsHostMemory) {
  const Tensor tensor(to_dlpack(make_rows(RowDType::kFloat32)));
  tensor->dl_tensor.device = {kDLCUDAHost, 0};
  EXPECT_EQ(row_block(*tensor, 4).device, RowBlock::kHost);
}

TEST(DLPack, TensorsThatAreNoRowsAreRefused) {
  const Tensor tensor(to_dlpack(make_rows(RowDType::kFloat32)));
  DLTensor& view = tensor->dl_tensor;
  const DLTensor good = view;
  const auto refused = [&](ErrorCode code, const std::string& part) {
    test::expect_error(code, part, [&] { (void)row_block(*tensor, 4); });
    view = good;
    view.strides[0] = 4;
    view.strides[1] = 1;
  };
  view.ndim = 1;
  refused(ErrorCode::kInvalidArgument, "expected [rows, width], got 1 dimensions");
  view.dtype = {kDLInt, 32, 1};
  refused(ErrorCode::kInvalidArgument, "got type code 0 of 32 bits x 1");
  view.device.device_type = kDLROCM;
  refused(ErrorCode::kUnsupported, "got device type 10");
  view.strides[1] = 2;
  refused(ErrorCode::kInvalidArgument, "elements of a row lie one after the other, got 2");
  view.strides[0] = 3;
  refused(ErrorCode::kInvalidArgument, "rows of 16 bytes overlap if they are 12 bytes apart");
  view.strides[0] = 0;
  refused(ErrorCode::kInvalidArgument, "rows are 0 elements apart");
  view.data = nullptr;
  refused(ErrorCode::kInvalidArgument, "no memory for 3 rows");
  test::expect_error(ErrorCode::kInvalidArgument, "rows are 5 wide, got 4",
                     [&] { (void)row_block(*tensor, 5); });
}

TEST(DLPack, RowsThatAreElsewhereAreRefused) {
  Embedding rows = make_rows(RowDType::kFloat32);
  rows.data = {};
  test::expect_error(ErrorCode::kInvalidArgument, "three rows: its rows are in memory",
                     [&] { (void)to_dlpack(std::move(rows)); });
}

TEST(DLPack, RowsThatTheDataDoesNotHaveAreRefused) {
  Embedding rows = make_rows(RowDType::kFloat32);
  rows.rows = 1000;
  test::expect_error(ErrorCode::kInvalidArgument, "three rows: 1000 rows of ",
                     [&] { (void)to_dlpack(std::move(rows)); });
}

TEST(DLPack, TensorsAreDestinationsAndFinishedRows) {
  Engine engine = test::load_cached(0);
  const MediaItem image = test::noise(64, 64, 1);
  const Embedding expected = engine.encode({&image, 1}).front();
  const test::HostRoom first(4, 256, RowDType::kFloat32, 32);
  const Tensor tensor(to_dlpack(first.block(), 256, nullptr));
  const RowBlock block = row_block(*tensor, 256);
  (void)engine.encode({&image, 1}, {&block, 1}, {});
  first.expect_rows(expected);
  const MediaItem known = precomputed_rows(*tensor, "known");
  EXPECT_EQ(engine.encode({&known, 1}).front().data, expected.data);
}

}  // namespace
}  // namespace fovea
