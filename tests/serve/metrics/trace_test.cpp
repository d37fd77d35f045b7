#include "serve/metrics/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "serve/api_error.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

std::string code_of(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const ApiError& error) {
    return error.code();
  }
}

JobReply job() {
  const auto item = std::make_shared<Embedding>();
  item->rows = 7;
  item->times.encode_ms = 3;
  JobReply reply;
  reply.items = {item, item};
  reply.queue_ms = 5;
  reply.run_ms = 10;
  reply.batch_items = 4;
  return reply;
}

void serve_one(Trace& trace) {
  const Route route{.method = "GET", .pattern = "/v1/cache/{key}", .kind = {}, .handler = {}};
  RequestHead head;
  head.id = "a \"request\"";
  trace.observe(Served{.head = head,
                       .route = &route,
                       .status = 200,
                       .error_code = {},
                       .bytes_in = 1,
                       .bytes_out = 2,
                       .duration = std::chrono::milliseconds(20)});
}

Json stopped(Trace& trace, const test::TemporaryDirectory& folder) {
  return Json::parse(test::read_text(folder / trace.stop()));
}

TEST(Trace, NotesRequestsAndJobsBetweenItsStartAndItsEnd) {
  const test::TemporaryDirectory folder;
  Trace trace(folder.path());
  serve_one(trace);  // nobody profiles yet
  trace.start();
  serve_one(trace);
  trace.observe(job());
  const Json events = stopped(trace, folder).at("traceEvents");
  ASSERT_EQ(events.size(), 8U);  // the request; the job, its wait and its batch; begin and end
  EXPECT_EQ(events[0].at("ph"), "b");
  EXPECT_EQ(events[1].at("ph"), "e");
  EXPECT_EQ(events[0].at("name"), "GET /v1/cache/{key}");
  EXPECT_EQ(events[0].at("args").at("id"), "a \"request\"");
  const auto ms_of = [&](std::size_t i) {
    return (events[i + 1].at("ts").get<std::int64_t>() - events[i].at("ts").get<std::int64_t>()) /
           1000;
  };
  EXPECT_EQ(ms_of(0), 20);
  EXPECT_EQ(ms_of(2), 15);
  EXPECT_EQ(ms_of(4), 5);
  EXPECT_EQ(ms_of(6), 10);
  EXPECT_EQ(events[2].at("args").at("rows"), 14);
  EXPECT_EQ(events[6].at("name"), "batch");
  EXPECT_EQ(events[6].at("args").at("batch_items"), 4);
  EXPECT_EQ(events[6].at("args").at("stages_ms").at("encode"), 6);
  EXPECT_NE(events[0].at("id"), events[2].at("id"));
}

TEST(Trace, EveryProfileIsAFileOfItsOwn) {
  const test::TemporaryDirectory folder;
  Trace trace(folder.path());
  trace.start();
  trace.observe(job());
  EXPECT_EQ(stopped(trace, folder).at("traceEvents").size(), 6U);
  trace.start();
  EXPECT_EQ(stopped(trace, folder).at("traceEvents").size(), 0U) << "nothing is left of the first";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(Trace, CountsWhatIsTooMuchToKeep) {
  const test::TemporaryDirectory folder;
  Trace trace(folder.path(), 3);
  trace.start();
  for (int i = 0; i < 4; ++i) serve_one(trace);
  const Json json = stopped(trace, folder);
  EXPECT_EQ(json.at("traceEvents").size(), 6U);
  EXPECT_EQ(json.at("otherData").at("dropped_spans"), 1);
}

TEST(Trace, RefusesWhatMakesNoSense) {
  const test::TemporaryDirectory folder;
  Trace nowhere("");
  EXPECT_EQ(code_of([&] { nowhere.start(); }), "profiling_off");
  Trace trace(folder.path());
  EXPECT_EQ(code_of([&] { (void)trace.stop(); }), "no_profile");
  trace.start();
  EXPECT_EQ(code_of([&] { trace.start(); }), "profile_running");
  Trace lost(folder / "none");
  lost.start();
  EXPECT_EQ(code_of([&] { (void)lost.stop(); }), "profile_not_written");
  EXPECT_EQ(code_of([&] { (void)lost.stop(); }), "no_profile") << "it has ended";
}

}  // namespace
}  // namespace fovea::serve
