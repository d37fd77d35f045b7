#include "serve/tracing/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "serve/tracing/collector.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using test::Collector;
using testing::HasSubstr;

TracingOptions options_to(const std::string& url) {
  return {.url = url,
          .headers = {{"api-key", "secret"}},
          .encoding = OtlpEncoding::kJson,  // as the collector of this test reads it
          .resource = {},
          .sampler = {},
          .delay = milliseconds(1)};
}

Span span_named(const std::string& name) {
  return {.context = {make_trace_id(), make_span_id(), true, {}},
          .parent_id = {},
          .name = name,
          .begin = {},
          .end = {}};
}

TEST(SpanExporter, SendsSpansWithTheHeadersOfItsOptions) {
  Collector collector;
  SpanExporter exporter(options_to(collector.url()));
  exporter.add(span_named("one"));
  EXPECT_EQ(collector.wait_for(1)[0]["name"], "one");
  const std::string head = collector.heads()[0];
  EXPECT_THAT(head, HasSubstr("POST /v1/traces HTTP/1.1"));
  EXPECT_THAT(head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(head, HasSubstr("api-key: secret"));
}

TEST(SpanExporter, SendsWhatThereIsWhenItEnds) {
  Collector collector;
  {
    TracingOptions options = options_to(collector.url());
    options.delay = std::chrono::hours(1);
    SpanExporter exporter(options);
    exporter.add(span_named("last"));
  }
  EXPECT_EQ(collector.spans().size(), 1U);
}

TEST(SpanExporter, SendsAFullBatchAtOnce) {
  Collector collector;
  TracingOptions options = options_to(collector.url());
  options.delay = std::chrono::hours(1);
  options.max_batch = 3;
  SpanExporter exporter(options);
  for (int i = 0; i < 3; ++i) exporter.add(span_named("n"));
  EXPECT_EQ(collector.wait_for(3).size(), 3U);
}

TEST(SpanExporter, TriesAgainWhatMaySucceedLater) {
  std::atomic<int> requests = 0;
  Collector collector([&] { return requests++ == 0 ? 503 : 200; });
  SpanExporter exporter(options_to(collector.url()));
  exporter.add(span_named("one"));
  EXPECT_EQ(collector.wait_for(1).size(), 1U);
  EXPECT_EQ(requests, 2);
}

/// Keeps the lines of a log.
class Lines final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) noexcept override {
    lines += std::string(line) + "\n";
  }
  std::string lines;
};

TEST(SpanExporter, CountsAndSaysOnceWhatIsRefused) {
  Collector collector([] { return 400; });
  Lines log;
  ExportStats stats;
  {
    SpanExporter exporter(options_to(collector.url()), &log);
    for (int i = 1; i <= 2; ++i) {
      exporter.add(span_named("n"));
      while (exporter.stats().not_sent < i) std::this_thread::yield();
    }
    stats = exporter.stats();
  }
  EXPECT_EQ(stats.sent, 0);
  EXPECT_EQ(collector.heads().size(), 2U) << "not tried again";
  EXPECT_EQ(log.lines, "tracing: spans are not taken by " + collector.url() + ": status 400\n");
}

TEST(SpanExporter, CountsAndSaysWhatLibcurlDoesNotSend) {
  constexpr std::size_t kMostBytes = 8'000'000;  // of an option
  Lines log;
  {
    SpanExporter exporter(options_to("http://127.0.0.1/" + std::string(kMostBytes, 'x')), &log);
    exporter.add(span_named("n"));
    for (int i = 0; i < 6000 && exporter.stats().not_sent == 0; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(exporter.stats().not_sent, 1);
  }
  EXPECT_THAT(log.lines.substr(log.lines.rfind("xx: ")), HasSubstr("libcurl refuses option"));
}

TEST(SpanExporter, DropsWhatComesWhileTheCollectorIsSlow) {
  std::promise<void> asked;
  std::promise<void> goes_on;
  std::atomic<int> requests = 0;
  Collector collector([&] {
    if (requests++ == 0) {
      asked.set_value();
      goes_on.get_future().wait();
    }
    return 200;
  });
  TracingOptions options = options_to(collector.url());
  options.max_queue = 2;
  SpanExporter exporter(options);
  exporter.add(span_named("first"));
  asked.get_future().wait();
  for (int i = 0; i < 5; ++i) exporter.add(span_named("more"));
  EXPECT_EQ(exporter.stats().queue_full, 3);
  goes_on.set_value();
  EXPECT_EQ(collector.wait_for(3).size(), 3U);
}

TEST(SpanExporter, AsksForSpansThatAreMadeLate) {
  Collector collector;
  {
    SpanExporter exporter(options_to(collector.url()), nullptr,
                          [](std::vector<Span>& spans, bool is_last) {
                            if (is_last) spans.push_back(span_named("late"));
                          });
  }
  ASSERT_EQ(collector.spans().size(), 1U);
  EXPECT_EQ(collector.spans()[0]["name"], "late");
}

}  // namespace
}  // namespace fovea::serve
