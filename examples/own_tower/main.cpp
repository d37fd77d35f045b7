// Encodes images of many sizes with a tower that is not one of Fovea's: captures it at token
// budgets, packs images into the smallest graphs that fit, runs the largest image eagerly, and
// checks that neither graphs nor padding nor neighbours show in a row.
//
// usage: own_tower [--device cpu|cuda|cuda:<index>] [--weights DIR]
//   --weights  a folder with safetensors; without it weights are random
#include <cstdint>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit.h"

namespace {

using Rows = std::vector<std::vector<float>>;  // per item

/// An image like no other, prepared as the tower wants it.
fovea::PreparedItem make_item(const fovea::ItemProcessor& processor, std::int64_t width_px,
                              std::int64_t height_px) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width_px * height_px * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<std::uint8_t>(i * 7 + i / 64 + static_cast<std::size_t>(width_px));
  }
  fovea::PreparedItem item{.plan = processor.plan_image(width_px, height_px), .pixels = {}};
  item.pixels.resize(item.plan.pixel_bytes);
  processor.fill_frame(item.plan, 0, {rgb.data(), width_px, height_px}, item.pixels);
  return item;
}

/// Memory on a device for the rows of items, and their way back.
class Destination {
 public:
  Destination(fovea::Device& device, std::span<const fovea::PreparedItem* const> items)
      : device_(device), stream_(device.create_copy_stream()) {
    const fovea::DType dtype = device.properties().activation_dtype;
    for (const fovea::PreparedItem* item : items) {
      tensors_.push_back(make_tensor(device, dtype, {item->plan.spec.out_rows, vit::kOut}));
      views_.push_back(tensors_.back().view());
    }
  }
  [[nodiscard]] std::span<const fovea::TensorView> views() const { return views_; }
  [[nodiscard]] Rows download() {
    Rows rows;
    for (const fovea::TensorView& view : views_) {
      const fovea::Buffer host = device_.allocate_host(view.bytes());
      stream_->copy(host.data(), view.data, view.bytes());
      stream_->synchronize();
      rows.emplace_back(static_cast<std::size_t>(view.shape.elements()));
      fovea::widen_to_f32(view.dtype, host.data(), rows.back().data(), rows.back().size());
    }
    return rows;
  }

 private:
  fovea::Device& device_;
  std::unique_ptr<fovea::Stream> stream_;
  std::vector<fovea::Tensor> tensors_;
  std::vector<fovea::TensorView> views_;
};

/// Largest difference of two elements, by the largest element.
double difference(const Rows& a, const Rows& b) {
  double most = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      most = std::max<double>(most, std::abs(a[i][j] - b[i][j]));
      largest = std::max<double>(largest, std::abs(a[i][j]));
    }
  }
  return largest > 0 ? most / largest : 1;
}

class Check {
 public:
  /// @param tolerance 0: bit for bit.
  void equal(const char* what, const Rows& a, const Rows& b, double tolerance) {
    const double found = difference(a, b);
    const bool holds = tolerance == 0 ? a == b : found <= tolerance;
    std::printf("%-38s %s (difference %g)\n", what, holds ? "ok" : "FAILED", found);
    failed_ |= !holds;
  }
  void holds(const char* what, bool value) {
    std::printf("%-38s %s\n", what, value ? "ok" : "FAILED");
    failed_ |= !value;
  }
  [[nodiscard]] int exit_code() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

int run(const std::string& device_name, const std::optional<std::string>& folder) {
  using fovea::checkpoint::WeightSource;
  const fovea::Backend backend = fovea::make_backend(device_name);
  fovea::Device& device = *backend.device;
  const WeightSource source = folder ? WeightSource::open(*folder) : WeightSource::dummy(7);
  fovea::TowerWeights weights(source, device);
  const vit::Model model(weights);

  fovea::GraphManagerOptions options;
  options.user.encoder_cudagraph_token_budgets = {16, 32, 48};
  options.user.encoder_cudagraph_max_vision_items_per_batch = 4;
  fovea::GraphManager manager(model, device, options);
  manager.capture();
  for (const fovea::GraphKey& key : manager.captured_keys()) {
    std::printf("graph of %d tokens\n", static_cast<int>(key.budget));
  }

  std::vector<fovea::PreparedItem> prepared;
  for (const std::int64_t side : {40, 64, 33, 100, 20, 300, 90}) {  // pixels
    prepared.push_back(make_item(model.processor(), side, side * 2 / 3 + 5));
  }
  std::vector<const fovea::PreparedItem*> items;
  for (const fovea::PreparedItem& item : prepared) items.push_back(&item);
  Destination out(device, items);

  manager.execute(items, out.views());
  const Rows replayed = out.download();
  const fovea::Stats stats = manager.stats();
  std::printf("%zu images in %d sub-batches on %s: %d replayed, %d eager\n", items.size(),
              static_cast<int>(stats.sub_batches), device.properties().name.c_str(),
              static_cast<int>(stats.graph_hits), static_cast<int>(stats.graph_misses));

  manager.execute_eager(items, out.views());
  const Rows eager = out.download();

  manager.execute(items, out.views());  // so that all memory has been used
  manager.fill_memory_with_nan();       // now all of it is NaN, padding included
  manager.execute(items, out.views());
  const Rows poisoned = out.download();

  Rows alone;
  for (const fovea::PreparedItem* item : items) {
    Destination own(device, {&item, 1});
    manager.execute({&item, 1}, own.views());
    alone.push_back(own.download().front());
  }

  // A GPU may choose other kernels for other sizes, which round differently.
  const double tolerance = device.properties().host_memory ? 0 : 0.02;
  Check check;
  check.holds("small images are replayed", stats.graph_hits == std::ssize(items) - 1);
  check.holds("the largest image runs eagerly", stats.graph_misses == 1);
  check.holds("images have rows of their own", difference({replayed[0]}, {replayed[2]}) > 0.01);
  check.equal("a replay equals an eager run", replayed, eager, tolerance);
  check.equal("what is in the padding does not show", poisoned, replayed, 0);
  check.equal("an image alone has the same rows", alone, replayed, tolerance);
  return check.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cpu";
  std::optional<std::string> folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (argv[i] == std::string("--device")) device = argv[i + 1];
    if (argv[i] == std::string("--weights")) folder = argv[i + 1];
  }
  try {
    return run(device, folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_tower: %s\n", error.what());
    return 1;
  }
}
