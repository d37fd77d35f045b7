#include "serve/tracing/tracing_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "fovea/error.h"
#include "fovea/version.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse_variable(std::string_view name, const std::string& expected,
                                  std::string_view came) {
  throw Error(ErrorCode::kInvalidArgument,
              cat(name, ": expected ", expected, ", got \"", shortened(came, 100), '"'));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// The variables; what is empty counts as not set.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  [[nodiscard]] std::string get(const std::string& name) const {
    const char* const value = environment_(name.c_str());
    return value == nullptr ? "" : std::string(trimmed(value));
  }
  /// That of traces, or else that of all signals; with the name that it has.
  [[nodiscard]] std::pair<std::string, std::string> exporter(const std::string& end) const {
    const std::string own = "OTEL_EXPORTER_OTLP_TRACES_" + end;
    const std::string all = "OTEL_EXPORTER_OTLP_" + end;
    return get(own).empty() ? std::pair(all, get(all)) : std::pair(own, get(own));
  }
  /// A whole number, at least 1.
  template <class Number>
  void read(const std::string& name, const std::string& text, Number& number) const {
    if (text.empty()) return;
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value < 1) {
      refuse_variable(name, "a whole number above 0", text);
    }
    number = Number(value);
  }

 private:
  const Environment& environment_;
};

/// The pairs of "a=b,c=d", values percent-decoded. Source: W3C, Baggage, section 3.3.
std::vector<std::pair<std::string, std::string>> pairs_of(const std::string& name,
                                                          std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const std::string_view pair = trimmed(text.substr(0, text.find(',')));
    text.remove_prefix(
        std::min(text.size(), text.find(',') == text.npos ? text.size() : text.find(',') + 1));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string key(trimmed(pair.substr(0, equals)));
    const std::optional<std::string> value =
        equals == pair.npos ? std::nullopt : percent_decoded(trimmed(pair.substr(equals + 1)));
    if (key.empty() || !value) refuse_variable(name, "key=value,key=value", pair);
    pairs.emplace_back(key, *value);
  }
  return pairs;
}

bool is_off(const Variables& variables) {
  constexpr const char* kDisabled = "OTEL_SDK_DISABLED";
  const std::string disabled = to_lower(variables.get(kDisabled));
  if (disabled == "true") return true;
  if (!disabled.empty() && disabled != "false") {
    refuse_variable(kDisabled, "true or false", disabled);
  }
  constexpr const char* kExporter = "OTEL_TRACES_EXPORTER";
  const std::string exporter = variables.get(kExporter);
  if (!exporter.empty() && exporter != "otlp" && exporter != "none") {
    refuse_variable(kExporter, "otlp or none", exporter);
  }
  return exporter == "none";
}

OtlpEncoding encoding_of(const Variables& variables) {
  const auto [name, value] = variables.exporter("PROTOCOL");
  if (value == "http/json") return OtlpEncoding::kJson;
  if (!value.empty() && value != "http/protobuf") {
    refuse_variable(name, "http/protobuf or http/json", value);
  }
  return OtlpEncoding::kProtobuf;
}

/// Refuses what is set and not honoured.
void check_others(const Variables& variables) {
  if (const auto [name, value] = variables.exporter("COMPRESSION");
      !value.empty() && value != "none") {
    refuse_variable(name, "none: spans are sent as they are", value);
  }
  for (const char* const end : {"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"}) {
    const auto [name, value] = variables.exporter(end);
    if (!value.empty()) refuse_variable(name, "nothing: the system's certificates are used", value);
  }
  constexpr const char* kPropagators = "OTEL_PROPAGATORS";
  const std::string propagators = variables.get(kPropagators);
  if (!propagators.empty() && propagators.find("tracecontext") == std::string::npos) {
    refuse_variable(kPropagators, "a list with tracecontext", propagators);
  }
}

std::string url_of(const std::string& endpoint, const Variables& variables) {
  constexpr std::string_view kPath = "/v1/traces";
  std::string name = "--otlp-endpoint";
  std::string url = endpoint;
  bool is_base = true;
  if (url.empty()) {
    std::tie(name, url) = variables.exporter("ENDPOINT");
    is_base = name == "OTEL_EXPORTER_OTLP_ENDPOINT";
  }
  if (url.empty()) return url;
  if (!is_http_url(url) || !parse_url(url)) {
    refuse_variable(name, "an http or https URL, for example http://localhost:4318", url);
  }
  if (!is_base) return url;
  while (url.ends_with('/')) url.pop_back();
  return url + std::string(kPath);
}

TraceResource resource_of(const Variables& variables) {
  constexpr const char* kAttributes = "OTEL_RESOURCE_ATTRIBUTES";
  TraceResource resource{.attributes = {}, .version = version()};
  std::string service = variables.get("OTEL_SERVICE_NAME");
  for (auto& [name, value] : pairs_of(kAttributes, variables.get(kAttributes))) {
    if (name != "service.name") {
      resource.attributes.emplace_back(name, value);
    } else if (service.empty()) {
      service = value;
    }
  }
  resource.attributes.emplace_back("service.name", service.empty() ? "fovea" : service);
  resource.attributes.emplace_back("telemetry.sdk.name", "fovea");
  resource.attributes.emplace_back("telemetry.sdk.language", "cpp");
  resource.attributes.emplace_back("telemetry.sdk.version", version());
  return resource;
}

SamplerOptions sampler_of(const Variables& variables) {
  constexpr const char* kSampler = "OTEL_TRACES_SAMPLER";
  constexpr const char* kArgument = "OTEL_TRACES_SAMPLER_ARG";
  const std::string name = variables.get(kSampler);
  std::string_view rest = name;
  constexpr std::string_view kParent = "parentbased_";
  SamplerOptions sampler{.follows_parent = rest.empty() || rest.starts_with(kParent)};
  if (rest.starts_with(kParent)) rest.remove_prefix(kParent.size());
  if (rest.empty() || rest == "always_on") return sampler;
  sampler.share = 0;
  if (rest == "always_off") return sampler;
  if (rest != "traceidratio") {
    refuse_variable(kSampler,
                    "always_on, always_off or traceidratio, each also with parentbased_ in front",
                    name);
  }
  const std::string argument = variables.get(kArgument);
  sampler.share = 1;
  if (argument.empty()) return sampler;
  const char* const end = argument.data() + argument.size();
  const auto [stop, failure] = std::from_chars(argument.data(), end, sampler.share);
  if (failure != std::errc() || stop != end || !(sampler.share >= 0 && sampler.share <= 1)) {
    refuse_variable(kArgument, "a number from 0 to 1", argument);
  }
  return sampler;
}

}  // namespace

std::optional<TracingOptions> tracing_options(const std::string& endpoint,
                                              const Environment& environment) {
  const Variables variables(environment);
  if (is_off(variables)) return std::nullopt;
  TracingOptions options;
  options.url = url_of(endpoint, variables);
  if (options.url.empty()) return std::nullopt;
  check_others(variables);
  options.encoding = encoding_of(variables);
  const auto [headers_name, headers] = variables.exporter("HEADERS");
  for (const auto& [name, value] : pairs_of(headers_name, headers)) {
    options.headers.push_back({name, value});
  }
  options.resource = resource_of(variables);
  options.sampler = sampler_of(variables);
  const auto [timeout_name, timeout] = variables.exporter("TIMEOUT");
  variables.read(timeout_name, timeout, options.timeout);
  const auto read = [&](const char* name, auto& number) {
    variables.read(name, variables.get(name), number);
  };
  read("OTEL_BSP_SCHEDULE_DELAY", options.delay);
  read("OTEL_BSP_MAX_QUEUE_SIZE", options.max_queue);
  read("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", options.max_batch);
  return options;
}

}  // namespace fovea::serve
