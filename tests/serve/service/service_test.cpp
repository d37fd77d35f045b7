#include "serve/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <iterator>

#include "serve/api_error.h"
#include "support/counted_file.h"
#include "support/options.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string kModel = FOVEA_TEST_GOLDEN_DIR "/qwen3_vl";

std::vector<std::uint8_t> photo() {
  std::ifstream file(kModel + "/images/photo_180x180.jpg", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ServiceOptions small() {
  ServiceOptions options;
  options.model = kModel;
  options.served_name = "m";
  options.engine.device = "cpu";
  options.engine.num_threads = 1;
  return options;
}

Job job_of(const Service& service, std::vector<MediaItem> items) {
  Job job;
  job.items = service.plan(std::move(items));
  return job;
}

Job one_photo(const Service& service) {
  return job_of(service, {image_bytes(photo(), "items[0]")});
}

MediaItem grey_image(std::int64_t side_px) {
  return image_rgb(std::vector<std::uint8_t>(static_cast<std::size_t>(3 * side_px * side_px)),
                   side_px, side_px, "grey");
}

JobReply encode(Service& service, Job job) {
  std::promise<JobReply> reply;
  service.encode(std::move(job), [&](JobReply done) { reply.set_value(std::move(done)); });
  return reply.get_future().get();
}

template <typename Call>
ApiError job_refusal(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

TEST(Service, GivesTheRowsOfTheEngine) {
  Service service(small());
  service.wait_loaded();
  ASSERT_EQ(service.state(), ServiceState::kReady) << service.problem();
  const JobReply reply = encode(service, one_photo(service));
  ASSERT_EQ(reply.items.size(), 1U);
  Engine engine = Engine::load(kModel, {.device = "cpu", .num_threads = 1});
  const MediaItem item = image_bytes(photo(), "photo");
  EXPECT_EQ(reply.items[0]->data, engine.encode(std::span(&item, 1))[0].data);
  EXPECT_EQ(service.model().dtype, RowDType::kBFloat16);
  EXPECT_EQ(service.model().report.width, reply.items[0]->width);
}

TEST(Service, HasAFingerprintOfWeightsAndMediaRules) {
  const auto fingerprint = [](const ServiceOptions& options) {
    Service service(options);
    service.wait_loaded();
    return service.model().fingerprint;
  };
  EXPECT_EQ(fingerprint(small()), "");  // reading all weights once more is for those with a cache
  ServiceOptions cached = small();
  cached.engine.encoder_cache_bytes = 1 << 20;
  const std::string first = fingerprint(cached);
  EXPECT_EQ(first.size(), 64U);
  cached.engine.encoder_cache_bytes = 2 << 20;
  EXPECT_EQ(fingerprint(cached), first);
  cached.engine.media.jpeg_scaling = true;
  EXPECT_NE(fingerprint(cached), first);
}

TEST(RowFingerprint, ChangesWithTheTowerAndWithOptionsThatTheTowerDoesNotSee) {
  EXPECT_EQ(row_fingerprint("", {}), "");
  const std::string before = row_fingerprint("tower", {});
  EXPECT_NE(row_fingerprint("another", {}), before);
  fovea::test::for_each_change(EngineOptions{}, [&](const std::string& name,
                                                    const OptionFacts& facts,
                                                    const EngineOptions& changed) {
    const bool is_of_tower = facts.effect == RowEffect::kNone || facts.effect == RowEffect::kModel;
    EXPECT_EQ(row_fingerprint("tower", changed) == before, is_of_tower) << name;
  });
}

TEST(Service, HoldsRoomForARepliesRowsUntilItIsSent) {
  Service service(small());
  service.wait_loaded();
  JobReply reply = encode(service, one_photo(service));
  const std::size_t rows = reply.items[0]->data.size();
  EXPECT_EQ(service.memory().used(), 2 * rows);
  reply = {};
  EXPECT_EQ(service.memory().used(), 0);
}

TEST(Service, RefusesWhatNeverHasRoomOtherwiseThanWhatHasNoneNow) {
  ServiceOptions options = small();
  options.max_inflight_bytes = 1000;
  Service tiny(options);
  tiny.wait_loaded();
  const ApiError error = job_refusal([&] { (void)encode(tiny, one_photo(tiny)); });
  EXPECT_EQ(error.code(), "response_too_large");
  EXPECT_THAT(error.what(), HasSubstr("--max-inflight-bytes"));

  Service service(small());
  service.wait_loaded();
  const std::shared_ptr<void> all = service.take_memory(service.memory().capacity() - 10);
  const ApiError full = job_refusal([&] { (void)encode(service, one_photo(service)); });
  EXPECT_EQ(full.status(), 429);
  EXPECT_GE(full.retry_after_s.value_or(0), 1);
}

TEST(Service, HoldsRoomForTheRowsOfAVideoAsSoonAsTheyAreKnown) {
  ServiceOptions options = small();
  options.max_inflight_bytes = (std::int64_t{64} << 20) + 1000;
  Service service(options);
  service.wait_loaded();
  const MediaItem clip = video_path(FOVEA_TEST_SOURCE_DIR "/tests/media/videos/ramp_h264.mp4");
  JobReply reply = encode(service, job_of(service, {clip}));
  if (reply.error) GTEST_SKIP() << "videos are not decoded here";
  const std::size_t rows = reply.items[0]->data.size();
  ASSERT_GT(rows, 1000);
  EXPECT_EQ(service.memory().used(), 2 * rows) << "what the estimate was too large by is free";
  reply = {};

  Job job = job_of(service, {clip});
  job.reply_factor = static_cast<double>(std::int64_t{64} << 20) / static_cast<double>(rows);
  const JobReply refused = encode(service, std::move(job));
  const ApiError error = job_refusal([&] { std::rethrow_exception(refused.error); });
  EXPECT_EQ(error.code(), "response_too_large");
  EXPECT_EQ(service.engine().stats().graph_hits + service.engine().stats().graph_misses, 1);
}

TEST(Service, StopsALongVideoWhoseClientLeavesAndGivesBackItsMemory) {
  ServiceOptions options = small();
  options.model = FOVEA_TEST_GOLDEN_DIR "/qwen2_5_vl";
  options.engine.packing = PackingPolicy::kUnits;
  Service service(options);
  service.wait_loaded();
  constexpr std::int64_t kFrames = 768;  // of 141 KiB resized: more than a window has room for
  std::vector<std::uint8_t> rgb(kFrames * 252 * 252 * 3);
  for (std::size_t i = 0; i < rgb.size(); i += 251) rgb[i] = static_cast<std::uint8_t>(i / 251);
  std::stop_source client;
  Job job = job_of(service, {video_rgb(std::move(rgb), kFrames, 252, 252, 2.0, "video")});
  const std::int64_t rows = job.items[0].rows().value();
  job.bounds.stop = client.get_token();
  std::promise<JobReply> reply;
  service.encode(std::move(job), [&](JobReply done) { reply.set_value(std::move(done)); });
  const auto encoded = [&] { return service.engine().stats().paths[0].live_rows; };
  while (encoded() == 0) std::this_thread::yield();
  client.request_stop();
  const std::exception_ptr gone = reply.get_future().get().error;
  EXPECT_EQ(job_refusal([&] { std::rethrow_exception(gone); }).status(), 499);
  while (service.batcher_stats().running_batches > 0) std::this_thread::yield();
  EXPECT_LT(encoded(), rows);
  EXPECT_EQ(service.batcher_stats().cancelled, 1);
  EXPECT_EQ(service.batcher_stats().bytes, 0);
  EXPECT_EQ(service.memory().used(), 0);
}

TEST(Service, RefusesImagesOfAPixelOrTwo) {
  Service service(small());
  service.wait_loaded();
  const auto grey = [](std::int64_t width, std::int64_t height) {
    return image_rgb(std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), 9),
                     width, height, "items[0].image");
  };
  const ApiError error =
      job_refusal([&] { (void)encode(service, job_of(service, {grey(64, 2)})); });
  EXPECT_EQ(error.code(), "image_too_small");
  EXPECT_EQ(error.status(), 422);
  EXPECT_EQ(error.param(), "items[0].image");
  EXPECT_STREQ(error.what(), "items[0].image: expected sides of at least 3 pixels, got 64 x 2");
  EXPECT_FALSE(encode(service, job_of(service, {grey(64, 3)})).error);
}

TEST(Service, FailsARequestForItsFirstBadItemAndNamesIt) {
  Service service(small());
  service.wait_loaded();
  const JobReply reply =
      encode(service, job_of(service, {image_bytes(photo(), "items[0].image"),
                                       image_bytes(std::vector<std::uint8_t>{0xff, 0xd8, 0xff},
                                                   "items[1].image")}));
  EXPECT_TRUE(reply.items.empty());
  const ApiError error = job_refusal([&] { std::rethrow_exception(reply.error); });
  EXPECT_EQ(error.param(), "items[1].image");
  EXPECT_EQ(error.code(), "decode_failed");
}

TEST(Service, PlansAnItemOnce) {
  Service service(small());
  service.wait_loaded();
  test::CountedFile file(kModel + "/images/photo_180x180.jpg");
  Job job = job_of(service, {image_file(file.path()), grey_image(64)});
  EXPECT_EQ(file.take_opens(), 1) << "for the header";
  const std::vector<PlannedItem> planned = job.items;
  const JobReply reply = encode(service, std::move(job));
  EXPECT_EQ(file.take_opens(), 1) << "for the pixels";
  ASSERT_EQ(reply.items.size(), 2);
  EXPECT_EQ(reply.items[0]->rows, planned[0].rows());
}

TEST(Service, TellsOfEveryJobThatIsComplete) {
  ServiceOptions options = small();
  std::atomic<int> told = 0;
  options.on_complete = [&](const JobReply& reply, std::span<const PlannedItem> items) {
    told += reply.error ? 100 : static_cast<int>(items.size());
  };
  Service service(options);
  service.wait_loaded();
  (void)encode(service, one_photo(service));
  (void)encode(service, job_of(service, {image_bytes(std::vector<std::uint8_t>{1}, "x")}));
  EXPECT_EQ(told, 101);
}

TEST(Service, RefusesBeforeTheModelIsLoadedAndAfterDraining) {
  Service service(small());
  const ServiceState first = service.state();
  if (first == ServiceState::kStarting) {
    EXPECT_EQ(job_refusal([&] { (void)service.model(); }).status(), 503);
  }
  service.wait_loaded();
  service.drain();
  EXPECT_EQ(service.state(), ServiceState::kDraining);
  const ApiError error = job_refusal([&] { (void)encode(service, one_photo(service)); });
  EXPECT_EQ(error.code(), "draining");
  EXPECT_EQ(error.retry_after_s, 1);
  EXPECT_NO_THROW((void)service.model());
}

TEST(Service, TakesWorkBetweenTheAnnouncementOfItsEndAndDraining) {
  Service service(small());
  service.wait_loaded();
  service.announce_end();
  EXPECT_EQ(service.state(), ServiceState::kDraining);
  EXPECT_NO_THROW(service.check_takes_work());
  EXPECT_FALSE(encode(service, one_photo(service)).error);
  service.drain();
  EXPECT_EQ(job_refusal([&] { service.check_takes_work(); }).code(), "draining");
}

TEST(Service, IsUnhealthyWithAReasonIfTheModelCannotBeLoaded) {
  ServiceOptions options = small();
  options.model = kModel + "/nowhere";
  Service service(options);
  service.wait_loaded();
  EXPECT_EQ(service.state(), ServiceState::kUnhealthy);
  EXPECT_THAT(service.problem(), HasSubstr("nowhere"));
  EXPECT_EQ(job_refusal([&] { (void)service.model(); }).code(), "unhealthy");
  // What clients read names no path of the server.
  EXPECT_EQ(std::string(job_refusal([&] { (void)service.model(); }).what()).find("nowhere"),
            std::string::npos);
}

TEST(Service, IsBusyAndNotUnhealthyWhileALargeItemTakesItsTime) {
  ServiceOptions options = small();
  options.stall_timeout = milliseconds(500);
  Service service(options);
  service.wait_loaded();
  std::stop_source seen;
  Job job = job_of(service, {grey_image(3000)});  // takes many seconds on any processor
  job.bounds.stop = seen.get_token();
  std::promise<void> done;
  service.encode(std::move(job), [&](const JobReply&) { done.set_value(); });
  auto ended = done.get_future();
  ServiceState state = ServiceState::kReady;
  while (state == ServiceState::kReady) {
    ASSERT_NE(ended.wait_for(milliseconds(1)), std::future_status::ready);
    state = service.state();
  }
  EXPECT_EQ(state, ServiceState::kBusy);
  EXPECT_NO_THROW(service.check_takes_work());
  seen.request_stop();
  ended.wait();
  EXPECT_EQ(service.state(), ServiceState::kReady);
}

TEST(Service, IsUnhealthyWhileNothingMoves) {
  ServiceOptions options = small();
  options.stall_timeout = milliseconds(0);  // shorter than any piece of work
  Service service(options);
  service.wait_loaded();
  std::promise<void> done;
  const std::vector<MediaItem> many(40, image_bytes(photo(), "x"));
  service.encode(job_of(service, many), [&](const JobReply&) { done.set_value(); });
  auto ended = done.get_future();
  bool was_unhealthy = false;
  while (ended.wait_for(std::chrono::microseconds(10)) != std::future_status::ready) {
    was_unhealthy = was_unhealthy || service.state() == ServiceState::kUnhealthy;
  }
  EXPECT_TRUE(was_unhealthy);
  EXPECT_EQ(service.state(), ServiceState::kReady);
}

TEST(Service, TakesTheLimitOnPatchesFromTheModelUnlessItIsGiven) {
  ServiceOptions options = small();
  options.engine.media.limits.max_patches_at_once = 7;
  {
    Service service(options);
    service.wait_loaded();
    EXPECT_EQ(service.model().media.limits.max_patches_at_once, 7);
  }
  options.engine.media.limits.max_patches_at_once = 0;
  Service service(options);
  service.wait_loaded();
  const MediaLimits& limits = service.model().media.limits;
  EXPECT_EQ(limits.max_patches_at_once, largest_item_patches(kModel));
  EXPECT_FALSE(encode(service, one_photo(service)).error);
}

TEST(Service, ChecksThatItEncodesBesideTheQueue) {
  ServiceOptions options = small();
  options.batcher.max_items = 1;
  Service service(options);
  service.wait_loaded();
  std::stop_source seen;
  Job job = job_of(service, {grey_image(2000)});
  job.bounds.stop = seen.get_token();
  std::promise<void> done;
  service.encode(std::move(job), [&](const JobReply&) { done.set_value(); });
  EXPECT_EQ(job_refusal([&] { (void)encode(service, one_photo(service)); }).status(), 429);
  std::promise<bool> works;
  service.check_encodes([&](bool result) { works.set_value(result); });
  EXPECT_EQ(service.batcher_stats().items, 1);
  seen.request_stop();
  done.get_future().wait();
  EXPECT_TRUE(works.get_future().get());
  service.drain();
  EXPECT_EQ(job_refusal([&] { service.check_encodes([](bool) {}); }).code(), "draining");
}

TEST(Service, EndsAJobWhoseClientHasLeft) {
  Service service(small());
  service.wait_loaded();
  std::stop_source gone;
  gone.request_stop();
  Job job = one_photo(service);
  job.bounds.stop = gone.get_token();
  const ApiError error = job_refusal([&] {
    const JobReply reply = encode(service, std::move(job));
    if (reply.error) std::rethrow_exception(reply.error);
  });
  EXPECT_EQ(error.status(), 499);
}

TEST(Service, AnswersEveryJobBeforeItStops) {
  std::atomic<int> answered = 0;
  {
    Service service(small());
    service.wait_loaded();
    for (int i = 0; i < 20; ++i) {
      service.encode(one_photo(service),
                     [&](const JobReply& reply) { answered += reply.error ? 100 : 1; });
    }
    service.stop(std::chrono::minutes(5));
  }
  EXPECT_EQ(answered, 20);
}

TEST(Service, SaysThatItStopsToWhoeverHasWaitedInVain) {
  constexpr std::int64_t kSide = 2000;  // takes seconds to encode on any processor
  Service service(small());
  service.wait_loaded();
  std::promise<JobReply> promise;
  std::vector<std::uint8_t> pixels(3 * kSide * kSide);
  service.encode(job_of(service, {image_rgb(std::move(pixels), kSide, kSide, "x")}),
                 [&](JobReply reply) { promise.set_value(std::move(reply)); });
  service.stop(milliseconds(0));
  const JobReply reply = promise.get_future().get();
  ASSERT_TRUE(reply.error);
  const ApiError error = job_refusal([&] { std::rethrow_exception(reply.error); });
  EXPECT_EQ(error.status(), 503);
  EXPECT_EQ(error.code(), "draining");
}

TEST(Service, KnowsItsModelByNameAndByDirectory) {
  const Service service(small());
  EXPECT_NO_THROW(service.check_model_name(""));
  EXPECT_NO_THROW(service.check_model_name("m"));
  EXPECT_NO_THROW(service.check_model_name(kModel));
  EXPECT_EQ(job_refusal([&] { service.check_model_name("other"); }).code(), "model_not_found");
}

}  // namespace
}  // namespace fovea::serve
