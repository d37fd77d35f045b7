// Any bytes as config.json and, after a line "---", preprocessor_config.json and
// processor_config.json of every family: an accepted configuration plans images and videos of
// ordinary sizes.
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fuzz.h"
#include "models/load_model.h"

using fovea::JsonDocument;
using fovea::test::accepts;
using fovea::test::require;

namespace {

void check_plan(const fovea::ItemPlan& plan) {
  require(plan.resized_width_px > 0 && plan.resized_height_px > 0);
  require(plan.spec.input_rows > 0 && plan.spec.out_rows > 0 && plan.spec.num_seqs > 0);
}

void plan_with(const fovea::checkpoint::HfConfig& files) {
  const auto model = fovea::plan_model(files, {});
  const fovea::ItemProcessor& processor = model->processor();
  accepts([&] { check_plan(processor.plan_image(640, 480)); });
  accepts([&] { check_plan(processor.plan_image(1, 200)); });
  accepts([&] { check_plan(processor.plan_video(5, 320, 240)); });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kSeparator = "\n---\n";
  const std::string_view text = fovea::test::text_of(data, size);
  const std::size_t end = text.find(kSeparator);
  accepts([&] {
    std::optional<JsonDocument> preprocessor;
    std::optional<JsonDocument> processor;
    if (end != std::string_view::npos) {
      const std::string_view second = text.substr(end + kSeparator.size());
      preprocessor = JsonDocument::parse(second, "preprocessor_config.json");
      processor = JsonDocument::parse(second, "processor_config.json");
    }
    plan_with({.directory = "fuzz",
               .config = JsonDocument::parse(text.substr(0, end), "config.json"),
               .preprocessor = std::move(preprocessor),
               .video_preprocessor = std::nullopt,
               .processor = std::move(processor)});
  });
  return 0;
}
