#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "models/load_model.h"
#include "models/registry.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"
#include "support/overwriting_kernels.h"
#include "support/property.h"

namespace fovea::test {

/// Whether a family computes the tower of the checkpoint in a folder.
inline bool is_supported(const std::string& folder) {
  const std::vector<std::string> names = checkpoint::read_hf_config(folder).architectures();
  return std::ranges::any_of(model_families(), [&](const ModelFamily* family) {
    return std::ranges::find_first_of(family->architectures, names) != family->architectures.end();
  });
}

using RowBytes = std::vector<std::vector<std::byte>>;  ///< f32 rows of each item

/// A family's golden checkpoint, loaded on the CPU, over kernels that write where those of a GPU
/// may.
struct GoldenModel {
  explicit GoldenModel(const std::string& folder)
      : files(checkpoint::read_hf_config(folder)),
        model(load_model(files, {}, checkpoint::WeightSource::open(folder), *device, *stream)) {}

  /// Room for the rows of an item.
  [[nodiscard]] std::vector<std::byte> rows_of(const PreparedItem& item) const {
    const Shape shape = shape_of(item);
    return std::vector<std::byte>(static_cast<std::size_t>(shape.elements()) * sizeof(float));
  }
  [[nodiscard]] TensorView view(const PreparedItem& item, std::vector<std::byte>& rows) const {
    return {rows.data(), DType::kF32, shape_of(item)};
  }
  [[nodiscard]] RowBytes run(GraphManager& manager, std::span<const PreparedItem* const> items,
                             bool eager) const {
    RowBytes rows;
    for (const PreparedItem* item : items) rows.push_back(rows_of(*item));
    std::vector<TensorView> out;
    for (std::size_t i = 0; i < rows.size(); ++i) out.push_back(view(*items[i], rows[i]));
    eager ? manager.execute_eager(items, out) : manager.execute(items, out);
    return rows;
  }
  /// Rows of each item by itself, without graphs.
  [[nodiscard]] RowBytes run_alone(std::span<const PreparedItem* const> items) const {
    GraphManager manager(*model, *device, {});
    RowBytes rows;
    for (const PreparedItem* item : items) {
      rows.push_back(std::move(run(manager, {&item, 1}, true).front()));
    }
    return rows;
  }
  [[nodiscard]] PathId num_paths() const {
    return static_cast<PathId>(model->graph_spec().paths.size());
  }
  [[nodiscard]] bool takes_videos() const {
    return std::ranges::count(model->graph_spec().modalities, Modality::kVideo) > 0;
  }

  checkpoint::HfConfig files;
  std::unique_ptr<Kernels> kernels = make_overwriting_kernels(make_cpu_kernels(detect_cpu_isa()));
  std::unique_ptr<Device> device = make_cpu_device(2, *kernels);
  std::unique_ptr<Stream> stream = device->create_stream();
  std::unique_ptr<EncoderGraphModel> model;

 private:
  [[nodiscard]] Shape shape_of(const PreparedItem& item) const {
    return {item.plan.spec.out_rows, model->graph_spec().out_width};
  }
};

/// Sizes that every family must take; the sets grow with what a model supports.
inline const std::vector<std::pair<std::int64_t, std::int64_t>> kSizes{
    {64, 64}, {320, 240}, {100, 333}, {640, 480}, {31, 57}, {700, 660}};

inline PreparedItem random_item(const ItemPlan& plan, std::mt19937& random) {
  return {.plan = plan, .pixels = random_bytes(plan.pixel_bytes, random)};
}

/// Images of kSizes, and what else the model takes: videos, items of a grid alone. Of items that
/// are the same for a tower, as images that become one view each are, there are two.
inline std::vector<PreparedItem> random_items(const GoldenModel& m) {
  std::mt19937 random(1);
  std::vector<PreparedItem> items;
  const auto add = [&](const ItemPlan& plan) {
    const auto is_same = [&](const PreparedItem& other) {
      return other.plan.modality == plan.modality && other.plan.grid == plan.grid &&
             other.plan.spec.path_tokens == plan.spec.path_tokens &&
             other.plan.spec.out_rows == plan.spec.out_rows;
    };
    if (std::ranges::count_if(items, is_same) < 2) items.push_back(random_item(plan, random));
  };
  const ItemProcessor& processor = m.model->processor();
  for (const auto& [width, height] : kSizes) add(processor.plan_image(width, height));
  if (m.takes_videos()) {
    for (const std::int64_t frames : {1, 2, 5}) add(processor.plan_video(frames, 96, 64));
  }
  if (processor.plan_image(96, 64).has_grid_thw) {
    add(processor.plan_grid(Modality::kImage, {1, 6, 4}));
    if (m.takes_videos()) add(processor.plan_grid(Modality::kVideo, {2, 4, 4}));
  }
  return items;
}

inline std::vector<const PreparedItem*> pointers(const std::vector<PreparedItem>& items) {
  std::vector<const PreparedItem*> result;
  for (const PreparedItem& item : items) result.push_back(&item);
  return result;
}

/// The golden folders that hold a checkpoint of a family: those of the repository, and where
/// FOVEA_GOLDEN_DIR names a folder, those that are there alone.
inline std::vector<std::string> supported_golden_models() {
  constexpr const char* kCheckpoint = "model.safetensors";
  std::vector<std::string> folders = golden_models();
  const std::vector<std::string> roots = golden_roots();
  if (roots.size() < 2) return folders;
  for (const std::string& name : golden_families(roots.back(), kCheckpoint)) {
    const std::string folder = golden_folder(name, kCheckpoint);
    if (std::ranges::count(folders, folder) == 0 && is_supported(folder)) folders.push_back(folder);
  }
  return folders;
}

/// Runs on each golden folder that holds a checkpoint.
class GoldenModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const ItemProcessor& processor() const { return m_.model->processor(); }

  GoldenModel m_{GetParam()};
};

inline std::string folder_name(const ::testing::TestParamInfo<std::string>& folder) {
  return std::filesystem::path(folder.param).filename().string();
}

}  // namespace fovea::test
