#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/batcher.h"
#include "fovea/stats.h"
#include "serve/metrics/metrics_text.h"
#include "serve/metrics/request_metrics.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricsText, WritesFamiliesAsPrometheusReadsThem) {
  const std::vector<Label> common{{"model", "m"}};
  MetricsText text(common);
  text.counter("a_total", "What a is.");
  text.sample(std::int64_t{3}, {{"code", "x"}});
  text.sample(0.25);
  text.gauge("b", "What b is.");
  text.sample(1e300);
  EXPECT_EQ(text.text(),
            "# HELP a_total What a is.\n# TYPE a_total counter\n"
            "a_total{model=\"m\",code=\"x\"} 3\na_total{model=\"m\"} 0.25\n"
            "# HELP b What b is.\n# TYPE b gauge\nb{model=\"m\"} 1e+300\n");
}

TEST(MetricsText, EscapesValuesOfLabels) {
  MetricsText text({});
  text.gauge("a", "b");
  text.sample(std::int64_t{1}, {{"git", "a\"b\\c\nd"}});
  EXPECT_THAT(text.text(), HasSubstr(R"(a{git="a\"b\\c\nd"} 1)"));
}

TEST(MetricsText, LeavesOutLabelsWithoutAValue) {
  MetricsText text({});
  text.gauge("a", "b");
  text.sample(std::int64_t{1}, {{"x", ""}, {"y", "z"}});
  EXPECT_THAT(text.text(), HasSubstr(R"(a{y="z"} 1)"));
}

TEST(TimeHistogram, CountsIntoBucketsThatAddUp) {
  TimeHistogram histogram;
  for (const double seconds : {0.0001, 0.0005, 0.3, 0.4, 100.0}) histogram.observe(seconds);
  MetricsText text({});
  text.histogram("t", "Times.");
  histogram.write(text, {{"s", "x"}});
  EXPECT_THAT(text.text(), HasSubstr("t_bucket{s=\"x\",le=\"0.0005\"} 2\n"));
  EXPECT_THAT(text.text(), HasSubstr("t_bucket{s=\"x\",le=\"0.25\"} 2\n"));
  EXPECT_THAT(text.text(), HasSubstr("t_bucket{s=\"x\",le=\"0.5\"} 4\n"));
  EXPECT_THAT(text.text(), HasSubstr("t_bucket{s=\"x\",le=\"60\"} 4\n"));
  EXPECT_THAT(text.text(), HasSubstr("t_bucket{s=\"x\",le=\"+Inf\"} 5\n"));
  EXPECT_THAT(text.text(), HasSubstr("t_count{s=\"x\"} 5\n"));
}

std::string text_of(const RequestMetrics& metrics) {
  MetricsText text({});
  metrics.write(text);
  return text.text();
}

TEST(RequestMetrics, CountsBytesOfMediaBySource) {
  RequestMetrics metrics;
  const MediaCounts counts{.body_bytes = 1, .data_bytes = 2, .http_bytes = 3, .file_bytes = 4};
  metrics.observe(counts);
  metrics.observe(counts);
  EXPECT_THAT(text_of(metrics), HasSubstr("fovea_media_bytes_total{source=\"body\"} 2\n"));
  EXPECT_THAT(text_of(metrics), HasSubstr("fovea_media_bytes_total{source=\"http\"} 6\n"));
  EXPECT_THAT(text_of(metrics), HasSubstr("fovea_media_bytes_total{source=\"file\"} 8\n"));
}

TEST(RequestMetrics, LabelsRoutesByPatternWhateverClientsType) {
  RequestMetrics metrics;
  const Route route{.method = "GET", .pattern = "/v1/cache/{key}", .kind = {}, .handler = {}};
  for (int i = 0; i < 100; ++i) {
    RequestHead head;
    head.path = "/v1/cache/" + std::to_string(i);
    metrics.observe(
        Served{.head = head, .route = &route, .status = 404, .error_code = "key_not_found"});
    metrics.observe(Served{.head = head, .route = nullptr, .status = 404});
  }
  const std::string text = text_of(metrics);
  EXPECT_THAT(text,
              HasSubstr("fovea_requests_total{route=\"/v1/cache/{key}\",status=\"404\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("fovea_requests_total{route=\"none\",status=\"404\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("fovea_errors_total{code=\"key_not_found\"} 100\n"));
  EXPECT_THAT(text, Not(HasSubstr("/v1/cache/7")));
}

TEST(RequestMetrics, CountsItemsByWhatBecameOfThem) {
  RequestMetrics metrics;
  auto item = std::make_shared<Embedding>();
  item->rows = 12;
  item->source_width_px = 10;
  item->source_height_px = 20;
  const std::vector<PlannedItem> items{PlannedItem(MediaItem{})};
  metrics.observe(JobReply{.items = {item}}, items);
  metrics.observe(JobReply{.error = std::make_exception_ptr(1)}, items);
  const std::string text = text_of(metrics);
  EXPECT_THAT(text, HasSubstr("fovea_items_total{modality=\"image\",result=\"ok\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fovea_items_total{modality=\"image\",result=\"error\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("fovea_rows_total{modality=\"image\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("fovea_input_pixels_total 200\n"));
  EXPECT_THAT(text, HasSubstr("fovea_stage_duration_seconds_count{stage=\"encode\"} 1\n"));
}

TEST(EngineMetrics, NameEveryCounterOnce) {
  MetricsText text({});
  write_metrics(BatcherStats{}, text);
  Stats stats;
  stats.paths.resize(1);
  stats.paths[0].name = "default";
  stats.miss_reasons["too_large"] = 4;
  write_metrics(stats, text);
  EXPECT_THAT(text.text(), HasSubstr("fovea_eager_fallback_total{reason=\"too_large\"} 4\n"));
  EXPECT_THAT(text.text(), HasSubstr("fovea_graph_replays_total{path=\"default\"} 0\n"));
  EXPECT_THAT(text.text(), HasSubstr("fovea_cache_queries_total{result=\"join\"} 0\n"));
}

TEST(EngineMetrics, TellOfSharedRowsWhereTheyAreShared) {
  Stats stats;
  MetricsText none({});
  write_metrics(stats, none);
  EXPECT_THAT(none.text(), Not(HasSubstr("fovea_shared_rows")));
  stats.encoder_cache.shared = {.is_asked = false, .hits = 1, .skipped = 2, .stored = 3};
  MetricsText text({});
  write_metrics(stats, text);
  EXPECT_THAT(text.text(), HasSubstr("fovea_shared_rows_up 0\n"));
  EXPECT_THAT(text.text(), HasSubstr("fovea_shared_rows_lookups_total{result=\"hit\"} 1\n"));
  EXPECT_THAT(text.text(), HasSubstr("fovea_shared_rows_lookups_total{result=\"skipped\"} 2\n"));
  EXPECT_THAT(text.text(), HasSubstr("fovea_shared_rows_writes_total{result=\"stored\"} 3\n"));
}

TEST(EngineMetrics, TellTheEnergyWhereItIsCounted) {
  const auto text_of_stats = [](const Stats& stats) {
    MetricsText text({});
    write_metrics(stats, text);
    return text.text();
  };
  Stats stats;
  EXPECT_THAT(text_of_stats(stats), Not(HasSubstr("energy")));
  stats.energy_joules = 1234.5;
  EXPECT_THAT(text_of_stats(stats), HasSubstr("# TYPE fovea_energy_joules_total counter\n"
                                              "fovea_energy_joules_total 1234.5\n"));
}

/// The value behind `name` and a space at the beginning of a line.
double value_of(const std::string& text, const std::string& name) {
  const std::size_t place = text.find("\n" + name + " ");
  return place == std::string::npos ? -1 : std::stod(text.substr(place + name.size() + 2));
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  MetricsText text({});
  write_process_metrics(text);
  EXPECT_GT(value_of(text.text(), "process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value_of(text.text(), "process_virtual_memory_bytes"),
            value_of(text.text(), "process_resident_memory_bytes"));
  EXPECT_GE(value_of(text.text(), "process_open_fds"), 3);
  EXPECT_GE(value_of(text.text(), "process_cpu_seconds_total"), 0);
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LT(value_of(text.text(), "process_start_time_seconds"), now + 2);
  EXPECT_GT(value_of(text.text(), "process_start_time_seconds"), now - 3600);
}

}  // namespace
}  // namespace fovea::serve
