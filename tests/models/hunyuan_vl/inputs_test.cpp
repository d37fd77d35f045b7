// Where the rows of items come from: begin, tokens and newlines, end.
#include <gtest/gtest.h>

#include <vector>

#include "models/config_files.h"
#include "models/host_inputs.h"
#include "models/hunyuan_vl/model.h"
#include "models/hunyuan_vl/processor.h"
#include "support/expect_error.h"

namespace fovea::hunyuan_vl {
namespace {

constexpr common::GridGeometry kSmallGrid{.patch_size = 16, .temporal_patch_size = 1};

std::vector<std::int32_t> values(test::HostInputs& inputs, std::string_view name) {
  const auto* first = inputs.tensors()[name].as<std::int32_t>();
  return {first, first + inputs.rows_of(name)};
}

void fill(test::HostInputs& inputs, std::span<const ItemPart> parts) {
  inputs.fill([&](InputWriter& writer) {
    const std::vector<common::GridRun> runs = common::runs_of(kSmallGrid, parts);
    const common::PatchTables rows = common::GridInputs::fill(kSmallGrid, runs, writer);
    RowInputs::fill({.grid = kSmallGrid}, runs, rows, writer);
  });
}

std::vector<BufferDecl> declared(std::int64_t rows) {
  const GraphCapacity capacity{.tokens = rows, .items = 8, .seqs = 8};
  std::vector<BufferDecl> all = common::GridInputs::declare(kSmallGrid, capacity);
  const std::vector<BufferDecl> own = RowInputs::declare({}, capacity);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

PreparedItem item_of(std::int64_t grid_height, std::int64_t grid_width) {
  const Processor processor(
      read_processing(test::config_files({.preprocessor = "{}"}), kSmallGrid, {}));
  PreparedItem item{.plan = processor.plan_grid(Modality::kImage, {1, grid_height, grid_width})};
  item.pixels.resize(item.plan.pixel_bytes);
  return item;
}

TEST(HunyuanVlInputs, RowsComeFromSeparatorsAndTokensInTheOrderOfTheImage) {
  const PreparedItem wide = item_of(4, 6);
  const PreparedItem small = item_of(2, 2);
  const std::vector<ItemPart> parts{ItemPart::whole(wide, 0), ItemPart::whole(small, 0)};
  test::HostInputs filled(declared(32));
  fill(filled, parts);
  const std::int32_t b = kBegin;
  const std::int32_t e = kEnd;
  const std::int32_t n = kNewline;
  EXPECT_EQ(values(filled, "row_sources"),
            (std::vector<std::int32_t>{b, 3, 4, 5, n, 6, 7, 8, n, e, b, 9, n, e}));
  EXPECT_EQ(values(filled, "live_rows"), (std::vector<std::int32_t>{14, 10, 8}))
      << "rows; tokens and separators; tokens and the newline";
  EXPECT_EQ(values(filled, "cu_seqlens"), (std::vector<std::int32_t>{0, 24, 28}));
}

TEST(HunyuanVlInputs, MoreRowsThanAGraphHasDoNotFit) {
  const PreparedItem item = item_of(4, 6);
  const std::vector<ItemPart> parts{ItemPart::whole(item, 0)};
  test::HostInputs enough(declared(10));
  EXPECT_NO_THROW(fill(enough, parts));
  test::HostInputs few(declared(9));
  test::expect_error(ErrorCode::kUnavailable, "row_sources", [&] { fill(few, parts); });
}

}  // namespace
}  // namespace fovea::hunyuan_vl
