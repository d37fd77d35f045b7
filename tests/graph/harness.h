#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/deferred_device.h"
#include "graph/dual_model.h"
#include "graph/mock_model.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::test {

using Rows = std::vector<float>;  ///< of one item, row-major

/// Items by value together with the pointers the manager takes, and with what a run of a path takes
/// of them.
class Batch {
 public:
  Batch() = default;
  explicit Batch(std::vector<PreparedItem> items) : items_(std::move(items)) {
    for (const PreparedItem& item : items_) pointers_.push_back(&item);
  }
  [[nodiscard]] const std::vector<PreparedItem>& items() const noexcept { return items_; }
  [[nodiscard]] std::span<const PreparedItem* const> pointers() const noexcept { return pointers_; }
  /// All units that the items have on a path.
  [[nodiscard]] std::vector<ItemPart> parts(PathId path = 0) const {
    std::vector<ItemPart> parts;
    for (const PreparedItem& item : items_) {
      if (item.plan.spec.units_on(path).count > 0) parts.push_back(ItemPart::whole(item, path));
    }
    return parts;
  }

 private:
  std::vector<PreparedItem> items_;
  std::vector<const PreparedItem*> pointers_;
};

/// Where the rows of a batch go, on a device whose memory tests may read.
class OutputRows {
 public:
  OutputRows(Device& device, const Batch& batch, std::int64_t width) {
    for (const PreparedItem& item : batch.items()) {
      tensors_.push_back(make_tensor(device, DType::kF32, {item.plan.spec.out_rows, width}));
      views_.push_back(tensors_.back().view());
    }
  }
  [[nodiscard]] std::span<const TensorView> views() const noexcept { return views_; }
  [[nodiscard]] std::vector<Rows> rows() const {
    std::vector<Rows> all;
    for (const TensorView& view : views_) {
      all.emplace_back(view.as<float>(), view.as<float>() + view.shape.elements());
    }
    return all;
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<TensorView> views_;
};

/// Whether all bits agree; NaN equals the same NaN.
[[nodiscard]] inline bool same_bits(const Rows& a, const Rows& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// A manager with a model on a device.
template <class Model>
class Harness {
 public:
  Harness(Model m, GraphManagerOptions options)
      : Harness(std::move(m), std::move(options), nullptr) {}
  Harness(Model m, GraphManagerOptions options, Schedule schedule)
      : Harness(std::move(m), std::move(options), &schedule) {}

  /// Rows per item through execute().
  [[nodiscard]] std::vector<Rows> encode(const Batch& batch) {
    const OutputRows out(*device, batch, model.graph_spec().out_width);
    manager.execute(batch.pointers(), out.views());
    return out.rows();
  }
  [[nodiscard]] std::vector<Rows> encode_eager(const Batch& batch) {
    const OutputRows out(*device, batch, model.graph_spec().out_width);
    manager.execute_eager(batch.pointers(), out.views());
    return out.rows();
  }
  /// Encodes and compares every row with the model's plain loop, bit by bit.
  void expect_right(const Batch& batch) {
    const std::vector<Rows> rows = encode(batch);
    ASSERT_EQ(rows.size(), batch.items().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(same_bits(rows[i], model.reference(batch.items()[i]))) << "item " << i;
    }
  }

  Model model;
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device;
  GraphManager manager;

 private:
  Harness(Model m, GraphManagerOptions options, const Schedule* schedule)
      : model(std::move(m)),
        device(schedule == nullptr ? make_cpu_device(1, *kernels)
                                   : std::make_unique<DeferredDevice>(*kernels, *schedule)),
        manager(model, *device, options) {}
};

using MockHarness = Harness<MockModel>;
using DualHarness = Harness<DualModel>;

/// Budgets [16, 64] and four items, as the test cases of the specification assume.
[[nodiscard]] inline GraphManagerOptions small_options() {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_token_budgets = {16, 64};
  options.user.encoder_cudagraph_max_vision_items_per_batch = 4;
  return options;
}

/// A batch of items of the given grids; item i has seed i + `seed`.
[[nodiscard]] inline Batch mock_batch(const MockModel& model, const std::vector<Grid>& grids,
                                      std::uint64_t seed = 0) {
  std::vector<PreparedItem> items;
  for (const Grid& grid : grids) items.push_back(model.make_item(grid, seed++));
  return Batch(std::move(items));
}

/// The model "M" with the budgets above. A harness is neither copied nor moved; nothing is captured
/// yet.
[[nodiscard]] inline MockHarness make_mock(MockOptions model = {},
                                           GraphManagerOptions options = small_options()) {
  return {MockModel(std::move(model)), std::move(options)};
}

/// A captured manager of the model "M" for every test.
class GraphManagerTest : public ::testing::Test {
 protected:
  GraphManagerTest() { h.manager.capture(); }

  [[nodiscard]] Batch batch(const std::vector<Grid>& grids, std::uint64_t seed = 0) const {
    return mock_batch(h.model, grids, seed);
  }
  [[nodiscard]] Stats stats() const { return h.manager.stats(); }

  MockHarness h = make_mock();
};

}  // namespace fovea::test
