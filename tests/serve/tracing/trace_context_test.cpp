#include "serve/tracing/trace_context.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fovea::serve {
namespace {

constexpr const char* kTraceId = "0af7651916cd43dd8448eb211c80319c";
constexpr const char* kSpanId = "b7ad6b7169203331";

std::string parent_text(const std::string& flags = "01", const std::string& version = "00") {
  return version + "-" + kTraceId + "-" + kSpanId + "-" + flags;
}

TEST(TraceContextIn, ReadsBothHeaders) {
  const auto context = trace_context_in(
      {{"Traceparent", parent_text()}, {"tracestate", "a=1"}, {"TraceState", "b=2"}});
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_id, kTraceId);
  EXPECT_EQ(context->span_id, kSpanId);
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(context->state, "a=1,b=2");
  EXPECT_FALSE(trace_context_in({{"traceparent", parent_text("00")}})->is_sampled);
  EXPECT_TRUE(trace_context_in({{"traceparent", parent_text("03")}})->is_sampled)
      << "the last bit says";
}

TEST(TraceContextIn, TakesLaterVersions) {
  for (const std::string& later :
       {parent_text("01", "cc"), parent_text("01-what the future holds", "cc")}) {
    EXPECT_TRUE(trace_context_in({{"traceparent", later}})) << later;
  }
}

TEST(TraceContextIn, IgnoresWhatIsNone) {
  const std::string zeros(32, '0');
  for (const std::string& text :
       {std::string(), std::string("00"), parent_text("01", "ff"), parent_text("01", "0g"),
        parent_text("1"), parent_text("0x"), parent_text("01-more"), parent_text("01."),
        parent_text("01.more", "cc"), "00-" + zeros + "-" + kSpanId + "-01",
        std::string("00-") + kTraceId + "-0000000000000000-01",
        "00-" + std::string("0AF7651916CD43DD8448EB211C80319C") + "-" + kSpanId + "-01",
        std::string("00-") + kTraceId + "_" + kSpanId + "-01"}) {
    EXPECT_FALSE(trace_context_in({{"traceparent", text}})) << text;
  }
  EXPECT_FALSE(trace_context_in({{"traceparent", parent_text()}, {"traceparent", parent_text()}}));
  EXPECT_FALSE(trace_context_in({{"tracestate", "a=1"}})) << "alone it means nothing";
}

TEST(TraceContextIn, LeavesAStateOutThatIsTooLongOrNone) {
  std::string members = "a0=1";
  for (int i = 1; i < 33; ++i) members += ",a" + std::to_string(i) + "=1";
  for (const std::string& state : {members, "a=" + std::string(511, 'x'), std::string("none")}) {
    const auto context = trace_context_in({{"traceparent", parent_text()}, {"tracestate", state}});
    ASSERT_TRUE(context) << state;
    EXPECT_EQ(context->state, "") << state;
  }
}

TEST(SetTraceContext, ReplacesThoseOfTheClient) {
  Headers headers{{"TraceParent", "x"}, {"Accept", "y"}, {"tracestate", "z"}};
  set_trace_context(headers, {kTraceId, kSpanId, false, "a=1"});
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].name, "Accept");
  EXPECT_EQ(headers[1].value, parent_text("00"));
  EXPECT_EQ(headers[2].value, "a=1");
  set_trace_context(headers, {kTraceId, kSpanId, true, ""});
  EXPECT_EQ(headers.size(), 2U) << "no state, no header";
}

TEST(MakeId, GivesOthersEachTime) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    ids.insert(make_trace_id());
    ids.insert(make_span_id());
    EXPECT_TRUE(trace_context_in(
        {{"traceparent", traceparent_of({make_trace_id(), make_span_id(), true, {}})}}));
  }
  EXPECT_EQ(ids.size(), 200U);
}

}  // namespace
}  // namespace fovea::serve
