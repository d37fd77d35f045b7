#include "serve/tracing/tracing_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

using testing::HasSubstr;
using Values = std::map<std::string, std::string>;

std::optional<TracingOptions> read(const Values& values, const std::string& endpoint = "") {
  return tracing_options(endpoint, [&](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

/// With a collector.
TracingOptions with(const Values& values) { return *read(values, "http://localhost:4318"); }

std::string refusal(const Values& values, const std::string& endpoint = "http://localhost:4318") {
  try {
    (void)read(values, endpoint);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was refused";
}

std::string attribute(const TracingOptions& options, const std::string& name) {
  for (const auto& [key, value] : options.resource.attributes) {
    if (key == name) return std::get<std::string>(value);
  }
  return "none";
}

TEST(TracingOptions, AreNoneWithoutACollector) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"OTEL_SERVICE_NAME", "x"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", " "}}));
  EXPECT_FALSE(read({{"OTEL_SDK_DISABLED", "TRUE"}}, "http://c:4318"));
  EXPECT_FALSE(read({{"OTEL_TRACES_EXPORTER", "none"}}, "http://c:4318"));
}

TEST(TracingOptions, MakeTheUrlOfABase) {
  EXPECT_EQ(read({}, "http://c:4318")->url, "http://c:4318/v1/traces");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/"}})->url,
            "https://c/base/v1/traces");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}}, "http://d:1")->url,
            "http://d:1/v1/traces")
      << "the flag wins";
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                  {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://e/x"}})
                ->url,
            "http://e/x")
      << "that of traces is whole";
}

TEST(TracingOptions, ReadHeadersAndResource) {
  const TracingOptions options = with({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x = y"},
                                       {"OTEL_RESOURCE_ATTRIBUTES", "service.name=r,zone=z"},
                                       {"OTEL_EXPORTER_OTLP_TIMEOUT", "250"},
                                       {"OTEL_BSP_SCHEDULE_DELAY", "9"},
                                       {"OTEL_BSP_MAX_QUEUE_SIZE", "7"},
                                       {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3"}});
  ASSERT_EQ(options.headers.size(), 2U);
  EXPECT_EQ(options.headers[0].value, "a b");
  EXPECT_EQ(options.headers[1].name, "x");
  EXPECT_EQ(attribute(options, "service.name"), "r");
  EXPECT_EQ(attribute(options, "zone"), "z");
  EXPECT_EQ(options.timeout.count(), 250);
  EXPECT_EQ(options.delay.count(), 9);
  EXPECT_EQ(options.max_queue, 7U);
  EXPECT_EQ(options.max_batch, 3U);
  EXPECT_EQ(
      attribute(with({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=r"}, {"OTEL_SERVICE_NAME", "s"}}),
                "service.name"),
      "s");
  EXPECT_EQ(attribute(with({}), "service.name"), "fovea");
}

TEST(TracingOptions, ReadTheSampler) {
  const auto sampler = [](const char* name, const char* argument = "") {
    return with({{"OTEL_TRACES_SAMPLER", name}, {"OTEL_TRACES_SAMPLER_ARG", argument}}).sampler;
  };
  EXPECT_TRUE(sampler("").follows_parent);
  EXPECT_EQ(sampler("").share, 1);
  EXPECT_FALSE(sampler("always_on").follows_parent);
  EXPECT_EQ(sampler("always_off").share, 0);
  EXPECT_EQ(sampler("traceidratio", "0.25").share, 0.25);
  EXPECT_EQ(sampler("traceidratio").share, 1);
  EXPECT_TRUE(sampler("parentbased_traceidratio", "0.5").follows_parent);
  EXPECT_EQ(sampler("parentbased_always_off").share, 0);
}

TEST(TracingOptions, SendProtobufUnlessJsonIsAskedFor) {
  EXPECT_EQ(with({}).encoding, OtlpEncoding::kProtobuf);
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}}).encoding,
            OtlpEncoding::kProtobuf);
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"},
                  {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"}})
                .encoding,
            OtlpEncoding::kJson);
}

TEST(TracingOptions, RefuseByNameWhatTheyDoNotHonour) {
  for (const auto& [name, value] : Values{{"OTEL_TRACES_SAMPLER", "jaeger_remote"},
                                          {"OTEL_TRACES_EXPORTER", "zipkin"},
                                          {"OTEL_SDK_DISABLED", "maybe"},
                                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                                          {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/xml"},
                                          {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                                          {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/x"},
                                          {"OTEL_EXPORTER_OTLP_HEADERS", "novalue"},
                                          {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
                                          {"OTEL_BSP_MAX_QUEUE_SIZE", "many"},
                                          {"OTEL_RESOURCE_ATTRIBUTES", "a=%zz"},
                                          {"OTEL_PROPAGATORS", "b3"}}) {
    EXPECT_THAT(refusal({{name, value}}), HasSubstr(name)) << value;
  }
  EXPECT_THAT(refusal({{"OTEL_TRACES_SAMPLER", "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "2"}}),
              HasSubstr("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got \"2\""));
  EXPECT_THAT(refusal({}, "localhost:4318"), HasSubstr("--otlp-endpoint: expected an http"));
  EXPECT_EQ(refusal({{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
                     {"OTEL_EXPORTER_OTLP_COMPRESSION", "none"},
                     {"OTEL_PROPAGATORS", "tracecontext,baggage"}}),
            "nothing was refused");
}

}  // namespace
}  // namespace fovea::serve
