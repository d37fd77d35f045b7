// Towers that are not Fovea's: the library of examples/own_tower in an engine, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "fovea/tower.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

std::string any_model() { return test::golden_folder("qwen2_vl", "golden.safetensors"); }

EngineOptions with_tower(const std::string& library = FOVEA_TEST_TOWER) {
  return {.device = "cpu", .num_threads = 2, .dummy_weights = true, .tower = library};
}

/// 4 x 3 patches, no two of them alike.
MediaItem image() {
  std::vector<std::uint8_t> rgb(64 * 48 * 3);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * 7 + i / 64);
  return image_rgb(std::move(rgb), 64, 48, "image");
}

void expect_refused(ErrorCode code, const std::string& message, const EngineOptions& options) {
  test::expect_error(code, message, [&] { (void)Engine::load(any_model(), options); });
  test::expect_error(code, message, [&] { (void)inspect(any_model(), options); });
  test::expect_error(code, message, [&] { (void)plan(any_model(), {}, options); });
}

TEST(TowerLibrary, EncodesACheckpointOfAnyArchitecture) {
  const std::vector<MediaItem> items{image(), image()};
  Engine engine = Engine::load(any_model(), with_tower());
  const std::vector<Embedding> rows = engine.encode(items);
  EXPECT_EQ(engine.report().architecture, "ExampleViT");
  EXPECT_EQ(rows[0].rows, 12);
  EXPECT_EQ(rows[0].width, 192);
  EXPECT_EQ(engine.stats().graph_hits, 2);
  EngineOptions eager = with_tower();
  eager.graphs.cudagraph_mm_encoder = false;
  EXPECT_EQ(Engine::load(any_model(), eager).encode(items)[1].data, rows[0].data);
  EngineOptions other_seed = with_tower();
  other_seed.seed = 1;
  EXPECT_NE(Engine::load(any_model(), other_seed).encode(items)[1].data, rows[0].data);
}

TEST(TowerLibrary, PlansAndListsItsTensors) {
  const ModelReport report = inspect(any_model(), with_tower());
  EXPECT_EQ(report.family, "tower");
  EXPECT_EQ(report.tensors.size(), 2u + 1u + 3u * 12u + 2u + 4u);
  const PackingPlan packing = plan(any_model(), std::vector<ItemSize>{{64, 48}}, with_tower());
  EXPECT_EQ(packing.items[0].rows, 12);
}

TEST(TowerLibrary, NamesTensorsThatACheckpointLacks) {
  EngineOptions options = with_tower();
  options.dummy_weights = false;
  test::expect_error(ErrorCode::kNotFound,
                     "45 of 45 tensors are missing or misshapen: patch.weight missing, expected",
                     [&] { (void)Engine::load(any_model(), options); });
}

TEST(TowerWeights, AreReadAtOnceOrRefusedByName) {
  const Backend backend = make_backend("cpu");
  const auto source = checkpoint::WeightSource::open(any_model());
  TowerWeights weights(source, *backend.device);
  const std::string name = "visual.blocks.0.norm1.weight";
  const std::vector<std::int64_t> stored = source.listing(name).value().shape;
  const Tensor norm = weights.f32(name, {stored[0]});
  EXPECT_EQ(norm.shape, Shape{stored[0]});
  EXPECT_GT(norm.view().as<float>()[0], 0);
  const auto refuses = [&](const std::string& message, auto&& call) {
    test::expect_error(ErrorCode::kNotFound, message, call);
  };
  refuses(name + " has shape", [&] { (void)weights.f32(name, {stored[0] + 8}); });
  TowerWeights others(source, *backend.device);
  refuses("absent.weight missing", [&] { (void)others.linear("absent", 8, 8); });
}

TEST(TowerLibrary, RowsInTheCacheAreKnownByItsBytes) {
  const auto fingerprint = [](const std::string& library) {
    EngineOptions options = with_tower(library);
    options.encoder_cache_bytes = 1 << 20;
    return Engine::load(any_model(), options).fingerprint();
  };
  const test::TemporaryDirectory folder;
  const std::string copy = folder / "libvit.so";
  std::filesystem::copy_file(FOVEA_TEST_TOWER, copy);
  EXPECT_EQ(fingerprint(copy), fingerprint(FOVEA_TEST_TOWER));
  std::filesystem::resize_file(copy, std::filesystem::file_size(copy) + 1);
  EXPECT_NE(fingerprint(copy), fingerprint(FOVEA_TEST_TOWER));
}

TEST(TowerLibrary, OptionsThatItCannotHonourAreRefused) {
  EngineOptions options = with_tower();
  options.quantization = Quantization::kInt8;
  expect_refused(ErrorCode::kUnsupported, "quantization: the tower ExampleViT of ", options);
  options = with_tower();
  options.media.max_pixels = 4096;
  expect_refused(ErrorCode::kUnsupported, "max_pixels: images of ExampleViT", options);
  options = with_tower();
  options.video_pruning_rate = 0.5;
  expect_refused(ErrorCode::kUnsupported, "videos of ExampleViT (family tower) are not pruned",
                 options);
}

TEST(TowerLibrary, FilesThatAreNoneAreRefusedBeforeTheirCodeRuns) {
  const test::TemporaryDirectory folder;
  expect_refused(ErrorCode::kNotFound, "tower: no file " + folder.path(),
                 with_tower(folder / "absent.so"));
  expect_refused(ErrorCode::kUnsupported, "is not the plugin \"tower\" of Fovea",
                 with_tower(any_model() + "/config.json"));
  const std::string copy = folder / "libvit.so";
  std::filesystem::copy_file(FOVEA_TEST_TOWER, copy);
  std::filesystem::permissions(copy, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  expect_refused(ErrorCode::kUnsupported, "is not trusted: other users can write to it",
                 with_tower(copy));
}

/// Expects that an engine says so of the tower with this mistake, at loading or encoding.
void expect_mistake(const std::string& mistake, ErrorCode code, const std::string& message) {
  SCOPED_TRACE(mistake);
  const test::TemporaryDirectory model;
  test::write_text(model / "config.json", "{}");
  test::write_text(model / "mistake", mistake);
  EngineOptions options = with_tower(FOVEA_TEST_ODD_TOWER);
  options.packing = PackingPolicy::kUnits;
  test::expect_error(code, message, [&] {
    const std::vector<MediaItem> items{image(), image()};
    (void)Engine::load(model.path(), options).encode(items);
  });
}

TEST(TowerLibrary, SizesThatDoNotFitEachOtherAreSaidBeforeTheyAreUsed) {
  constexpr auto kInternal = ErrorCode::kInternal;
  expect_mistake("no modality", kInternal, "the tower takes neither images nor videos");
  expect_mistake("no width", kInternal, "expected rows of whole embeddings, got 8 columns for one");
  expect_mistake("half an embedding", kInternal, "got 12 columns for one of 8");
  expect_mistake("wide items", kInternal, "rows of the path have 8 columns, those of items 16");
  expect_mistake("no unit", ErrorCode::kInvalidArgument,
                 "tokens of path \"default\" come in multiples of at least 1, got 0");
  expect_mistake("negative rows", kInternal, "image: the tower plans 4 patches, -5 rows");
  expect_mistake("negative tokens", kInternal, "-7 to 0 tokens of a path");
  for (const char* mistake : {"units of other rows", "units of other patches"}) {
    expect_mistake(mistake, kInternal, "image: the units that the tower plans do not make up its");
  }
  expect_mistake("units behind the pixels", kInternal, "begins at 100 of 4 bytes of pixels");
}

TEST(TowerLibrary, WhatItThrowsThatIsNoExceptionIsAnError) {
  for (const char* mistake :
       {"a number from its maker", "a number from a plan", "a number from a forward"}) {
    expect_mistake(mistake, ErrorCode::kInternal, "unexpected exception that is no std::exception");
  }
}

}  // namespace
}  // namespace fovea
