// Rows that a call writes to several places of the caller.
#include <gtest/gtest.h>

#include "engine/cached/noise.h"
#include "engine/rows/host_room.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::blocks_of;
using test::HostRoom;
using test::noise;
using test::rooms_for;

class RowCopies : public ::testing::Test {
 protected:
  void refused(const Destinations& copy, const std::string& part) {
    test::expect_error(ErrorCode::kInvalidArgument, part, [&] {
      (void)engine_.encode({&items_[0], 1}, {&room_.block(), 1}, {}, {.copies = {&copy, 1}});
    });
    EXPECT_TRUE(room_.is_untouched());
  }

  Engine engine_ = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                                {.device = "cpu", .data_parallel_size = 2, .num_threads = 2});
  std::vector<MediaItem> items_{noise(64, 64, 1), noise(90, 120, 2), noise(300, 200, 3)};
  HostRoom room_{4, 256};
};

TEST_F(RowCopies, HoldTheRowsOfTheirDestinations) {
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16}) {
    const std::vector<Embedding> expected = engine_.encode(items_, {.dtype = dtype});
    const std::vector<std::vector<HostRoom>> places{rooms_for(expected, dtype, 8),
                                                    rooms_for(expected, dtype, 0),
                                                    rooms_for(expected, dtype, 24, 2)};
    const auto first = blocks_of(places[1]);
    const auto second = blocks_of(places[2]);
    const std::vector<Destinations> copies{{first}, {second}};
    (void)engine_.encode(items_, blocks_of(places[0]), {}, {.copies = copies});
    for (const std::vector<HostRoom>& rooms : places) {
      for (std::size_t i = 0; i < items_.size(); ++i) rooms[i].expect_rows(expected[i]);
    }
  }
}

TEST_F(RowCopies, StayUntouchedWhereAnItemFails) {
  items_[1] = image_file("missing.jpg");
  const EncodeOptions skip{.on_error = OnError::kSkip};
  const std::vector<Embedding> expected = engine_.encode(items_, skip);
  std::vector<std::vector<HostRoom>> places(2);
  for (auto& rooms : places) {
    for (const Embedding& item : expected) rooms.emplace_back(item.rows + 1, 256);
  }
  const auto blocks = blocks_of(places[1]);
  const Destinations copy{blocks};
  EncodeOptions with_copies = skip;
  with_copies.copies = {&copy, 1};
  (void)engine_.encode(items_, blocks_of(places[0]), {}, with_copies);
  EXPECT_TRUE(places[1][1].is_untouched());
  places[1][2].expect_rows(expected[2]);
}

TEST_F(RowCopies, AreRefusedBeforeAnyWork) {
  const HostRoom copy(4, 256);
  const std::vector<RowBlock> none;
  refused({none}, "1 items need as many destinations, got 0");
  refused({{&room_.block(), 1}}, "copy 0 of destination 0 overlaps destination 0");
  RowBlock block = copy.block();
  block.rows = 3;
  refused({{&block, 1}},
          "copy 0 of destination 0: expected room for 4 rows of float32, got 3 of float32");
  block = copy.block();
  block.dtype = RowDType::kBFloat16;
  refused({{&block, 1}}, "expected room for 4 rows of float32, got 4 of bfloat16");
  refused({{&copy.block(), 1}, {.device = 0}}, "a stream of cuda:0 needs an engine on a GPU");
  const Destinations alone{{&copy.block(), 1}};
  test::expect_error(ErrorCode::kInvalidArgument, "copies of rows need destinations", [&] {
    (void)engine_.encode({&items_[0], 1}, {.copies = {&alone, 1}});
  });
}

}  // namespace
}  // namespace fovea
