// Items with options of their own: what they mean, what is refused, and that rows of one set of
// options are never given for another.
#include "engine/prepare/item_processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fovea/engine.h"
#include "models/config_files.h"
#include "models/load_model.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kModel = test::golden_folder("qwen3_vl", "golden.safetensors");
const std::string kPhoto = kModel + "/images/photo_180x180.jpg";
constexpr const char* kSmall = R"({"min_pixels": 1024, "max_pixels": 20000})";

MediaItem with(MediaItem item, const std::string& options) {
  item.mm_processor_kwargs = options;
  return item;
}

MediaItem photo(const std::string& options) { return with(image_file(kPhoto), options); }

class ItemOptions : public ::testing::Test {
 protected:
  [[nodiscard]] auto processing(const std::string& options, Modality modality = Modality::kImage) {
    return processors_.of(modality, options);
  }
  void refuse(ErrorCode code, const std::string& options, const std::string& why,
              Modality modality = Modality::kImage) {
    test::expect_error(code, why, [&] { (void)processing(options, modality); });
  }

  checkpoint::HfConfig files_ = checkpoint::read_hf_config(kModel);
  ItemProcessors processors_{files_, {}, TowerOutput::kRows};
};

TEST_F(ItemOptions, ThatConcernAnItemAreNamedInOneWay) {
  EXPECT_EQ(processing("{}")->options, "{}");
  EXPECT_EQ(
      processing(R"( {"size": null, "fps": 1, "videos_kwargs": {"num_frames": 4}} )")->options,
      "{}");
  EXPECT_EQ(processing(R"({"min_pixels": 70000, "max_pixels": 90000})")->options,
            processing(R"({"max_pixels": 9e4, "images_kwargs": {"max_pixels": 90000,
                           "min_pixels": 70000}, "min_pixels": 8})")
                ->options);
}

TEST_F(ItemOptions, ReplaceTheLimitsOfTheFiles) {
  const ItemPlan own = plan_model(files_, {})->processor().plan_image(640, 480);
  const ItemPlan small = processing(kSmall)->processor->plan_image(640, 480);
  EXPECT_EQ(own.spec.out_rows, 300);
  EXPECT_EQ(small.spec.out_rows, 15);
  const ItemPlan size = processing(R"({"size": {"shortest_edge": 1024, "longest_edge": 20000}})")
                            ->processor->plan_image(640, 480);
  EXPECT_EQ(size.grid, small.grid);
  ItemProcessors limited(files_, {.min_pixels = 1024, .max_pixels = 4096}, TowerOutput::kRows);
  EXPECT_EQ(limited.of(Modality::kImage, kSmall)->processor->plan_image(640, 480).grid, small.grid);
  // What an item does not say is that of the engine.
  const auto most = limited.of(Modality::kImage, R"({"max_pixels": 20000})");
  EXPECT_EQ(most->processor->plan_image(20, 20).spec.out_rows, 1);
}

// transformers 5 writes a file of videos that wants at least 100352 pixels of a frame.
TEST(ItemOptionsOfQwen2VL, BoundImagesWhateverVideosNeed) {
  const auto files = test::config_files(
      {.config = R"({"architectures": ["Qwen2VLForConditionalGeneration"], "vision_config": {}})",
       .preprocessor = R"({"size": {"shortest_edge": 3136, "longest_edge": 1003520}})",
       .video_preprocessor = R"({"size": {"shortest_edge": 100352, "longest_edge": 602112}})"});
  ItemProcessors processors(files, {}, TowerOutput::kRows);
  constexpr const char* kOptions = R"({"max_pixels": 50176})";
  const auto made = processors.of(Modality::kImage, kOptions);
  EXPECT_EQ(made->processor->plan_image(640, 480).grid, (std::array<std::int64_t, 3>{1, 12, 18}));
  test::expect_error(ErrorCode::kInvalidArgument, "got 100352 and 50176",
                     [&] { (void)processors.of(Modality::kVideo, kOptions); });
}

TEST_F(ItemOptions, SayWhichFramesAreTaken) {
  const auto at_rate = processing(R"({"fps": 4})", Modality::kVideo);
  EXPECT_EQ(at_rate->fps, 4);
  EXPECT_EQ(
      processing(R"({"num_frames": 5})", Modality::kVideo)->processor->sample_frames(41, 10, 2.0),
      (std::vector<std::int64_t>{0, 10, 20, 30, 40}));
  test::expect_error(ErrorCode::kInvalidArgument, "expected 1 to the 3 frames of the video, got 5",
                     [&] {
                       (void)processing(R"({"num_frames": 5})", Modality::kVideo)
                           ->processor->sample_frames(3, 10, 2.0);
                     });
}

TEST_F(ItemOptions, AreRefusedByName) {
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  refuse(kInvalid, "7", "mm_processor_kwargs: expected an object, got 7");
  refuse(kInvalid, R"({"size": )", "mm_processor_kwargs");
  refuse(kInvalid, R"({"size": 1, "size": 2})", "mm_processor_kwargs");
  refuse(kInvalid, R"({"images_kwargs": 7})", "mm_processor_kwargs: images_kwargs");
  refuse(kInvalid, R"({"size": {"shortest_edge": 4}})", "longest_edge is missing");
  refuse(kInvalid, R"({"max_pixels": "many"})",
         "mm_processor_kwargs: max_pixels: expected an integer, got \"many\"");
  refuse(kInvalid, R"({"max_pixels": 7})", "expected 0 < min_pixels <= max_pixels");
  refuse(kInvalid, R"({"fps": 0})", "mm_processor_kwargs: fps: expected a number above 0",
         Modality::kVideo);
  refuse(kInvalid, R"({"fps": 1, "num_frames": 2})", "either fps or num_frames", Modality::kVideo);
  refuse(
      ErrorCode::kUnsupported, R"({"num_crops": 4})",
      "mm_processor_kwargs: num_crops: no option that items of this model may have of their own; "
      "images of family qwen3_vl take size, min_pixels, max_pixels; videos take size, fps, "
      "num_frames");
  refuse(ErrorCode::kUnsupported, R"({"images_kwargs": {"fps": 3}})",
         "mm_processor_kwargs: images_kwargs.fps");
  refuse(ErrorCode::kUnsupported, R"({"image_mean": [0.1, 0.2, 0.3]})", "image_mean");
  EXPECT_EQ(processing(R"({"patch_size": 16})")->options, "{}");  // as the checkpoint says
}

TEST_F(ItemOptions, AreRefusedOfWhatIsProcessedAlready) {
  const std::vector<std::uint8_t> bytes(4 * 1536, 7);
  test::expect_error(ErrorCode::kInvalidArgument, "what a processor has made", [&] {
    (void)processors_.of(with(pixel_bytes(bytes, 4, 1536, {1, 2, 2}, "patches"), kSmall));
  });
  const std::vector<std::uint8_t> frames(4 * 64 * 64 * 3);
  test::expect_error(ErrorCode::kInvalidArgument, "chosen already", [&] {
    (void)processors_.of(with(video_rgb(frames, 4, 64, 64, 2, "clip"), R"({"num_frames": 2})"));
  });
  const ItemSize size{.width_px = 64,
                      .height_px = 64,
                      .num_frames = 4,
                      .modality = Modality::kVideo,
                      .mm_processor_kwargs = R"({"fps": 1})"};
  test::expect_error(ErrorCode::kInvalidArgument, "chosen already",
                     [&] { (void)processors_.of(size); });
}

TEST_F(ItemOptions, AreKeptForThoseUsedLast) {
  const auto first = processing(kSmall);
  EXPECT_EQ(processing(kSmall), first);
  for (int i = 0; i < ItemProcessors::kMost; ++i) {
    (void)processing("{\"max_pixels\": " + std::to_string(100'000 + i) + "}");
  }
  EXPECT_NE(processing(kSmall), first);
  EXPECT_EQ(first->processor->plan_image(640, 480).spec.out_rows, 15);
}

TEST_F(ItemOptions, MayBeAskedForByManyThreads) {
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 40; ++i) {
        const auto made =
            processing("{\"max_pixels\": " + std::to_string(70'000 + (i + thread) % 7) + "}");
        EXPECT_EQ(made->processor->plan_image(640, 480).spec.out_rows, 63);
      }
    });
  }
}

/// The reference: a checkpoint whose files say what the options of an item say.
Embedding rows_of_files(const nlohmann::json& options) {
  const test::TemporaryDirectory folder;
  for (const auto& entry : fs::directory_iterator(kModel)) {
    if (entry.is_regular_file())
      fs::create_symlink(entry.path(), folder / entry.path().filename().string());
  }
  const std::string name = folder / "preprocessor_config.json";
  nlohmann::json file = nlohmann::json::parse(test::read_text(name));
  fs::remove(name);
  file.update(options);
  test::write_text(name, file.dump());
  Engine engine = Engine::load(folder.path(), {.device = "cpu", .num_threads = 2});
  const std::vector<MediaItem> items{image_file(kPhoto)};
  return engine.encode(items).front();
}

TEST(ItemOptionsOfAnEngine, GiveTheRowsOfACheckpointThatSaysTheSame) {
  Engine engine = Engine::load(kModel, {.device = "cpu", .num_threads = 2});
  const std::vector<std::string> options{"", kSmall, R"({"min_pixels": 100000})", "{}"};
  std::vector<MediaItem> items;
  items.reserve(options.size());
  for (const std::string& one : options) items.push_back(photo(one));
  const std::vector<Embedding> rows = engine.encode(items);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Embedding expected = rows_of_files(
        options[i].empty() ? nlohmann::json::object() : nlohmann::json::parse(options[i]));
    EXPECT_EQ(rows[i].grid_thw, expected.grid_thw) << options[i];
    EXPECT_EQ(rows[i].data, expected.data) << options[i];
  }
  const std::vector<PlannedItem> planned = engine.plan_items(items);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(planned[i].rows(), rows[i].rows);
  EXPECT_EQ(engine
                .plan(std::vector<ItemSize>{
                    {.width_px = 180, .height_px = 180, .mm_processor_kwargs = kSmall}})
                .items[0]
                .rows,
            rows[1].rows);
}

TEST(ItemOptionsOfAnEngine, NeverGiveRowsOfOtherOptions) {
  Engine engine = Engine::load(
      kModel, {.device = "cpu", .num_threads = 2, .encoder_cache_bytes = std::int64_t{1} << 24});
  const auto encode = [&](const std::string& options) {
    const std::vector<MediaItem> items{photo(options)};
    return engine.encode(items).front();
  };
  const Embedding own = encode("");
  const Embedding small = encode(kSmall);
  EXPECT_NE(small.key, own.key);
  EXPECT_NE(small.rows, own.rows);
  EXPECT_EQ(encode("{}").key, own.key);
  EXPECT_EQ(encode(R"({"max_pixels": 20000, "min_pixels": 1024, "fps": 3})").key, small.key);
  EXPECT_EQ(encode(kSmall).data, small.data);
  EXPECT_EQ(encode("").data, own.data);
  EXPECT_EQ(engine.stats().encoder_cache.hits, 4);
}

TEST(ItemOptionsOfAnEngine, FailTheirItemAlone) {
  Engine engine = Engine::load(kModel, {.device = "cpu", .num_threads = 2});
  const std::vector<MediaItem> items{photo(R"({"crop": 1})"), photo("")};
  const std::vector<Embedding> rows = engine.encode(items, {.on_error = OnError::kSkip});
  ASSERT_TRUE(rows[0].error);
  EXPECT_THAT(rows[0].error->what(), HasSubstr("photo_180x180.jpg: mm_processor_kwargs: crop"));
  EXPECT_FALSE(rows[1].error);
  EXPECT_NO_THROW(engine.check_item_options(Modality::kVideo, R"({"fps": 1})"));
  test::expect_error(ErrorCode::kUnsupported, "mm_processor_kwargs: crop",
                     [&] { engine.check_item_options(Modality::kImage, R"({"crop": 1})"); });
}

// Every option that a family declares is read by it: it refuses nonsense for a value, naming the
// option.
class DeclaredOptions : public ::testing::TestWithParam<std::string> {};

TEST_P(DeclaredOptions, AreReadByTheFamily) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(GetParam());
  const ItemOptionKeys keys = family_of(files).item_options;
  ItemProcessors processors(files, {}, TowerOutput::kRows);
  const auto check = [&](std::string_view key, Modality modality) {
    const std::string options = "{\"" + std::string(key) + "\": [[\"nonsense\"]]}";
    try {
      (void)processors.of(modality, options);
      ADD_FAILURE() << key << " is not read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("mm_processor_kwargs: " + std::string(key)));
    }
  };
  if (files.image_processor()) {
    for (const std::string_view key : keys.image) check(key, Modality::kImage);
  }
  if (files.video_processor()) {
    for (const std::string_view key : keys.video) check(key, Modality::kVideo);
  }
}

std::vector<std::string> checkpoints() {
  std::vector<std::string> folders;
  for (const std::string& root : test::golden_roots()) {
    for (const auto& entry : fs::directory_iterator(root)) {
      if (fs::exists(entry.path() / "preprocessor_config.json")) folders.push_back(entry.path());
    }
  }
  return folders;
}

INSTANTIATE_TEST_SUITE_P(Families, DeclaredOptions, ::testing::ValuesIn(checkpoints()),
                         [](const auto& model) {
                           return fs::path(model.param).filename().string() + "_" +
                                  std::to_string(model.index);
                         });

}  // namespace
}  // namespace fovea
