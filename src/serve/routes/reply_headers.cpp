#include "serve/routes/reply_headers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>

#include "serve/rows/item_json.h"

namespace fovea::serve {
namespace {

using Items = std::span<const std::shared_ptr<const Embedding>>;

/// "hit=2": how many items have one of these values of a member.
template <class Use>
std::string counted(const char* name, Items items, Use Embedding::*member,
                    std::initializer_list<Use> values) {
  const auto count = std::ranges::count_if(items, [&](const auto& item) {
    return std::ranges::find(values, (*item).*member) != values.end();
  });
  return name + std::to_string(count);
}

std::string cache_text(Items items) {
  const auto part = [&](const char* name, std::initializer_list<CacheUse> values) {
    return counted(name, items, &Embedding::cache, values);
  };
  return part("hit=", {CacheUse::kHit}) + part(",join=", {CacheUse::kJoin}) +
         part(",miss=", {CacheUse::kMiss}) +
         part(",bypass=", {CacheUse::kBypass, CacheUse::kNotAsked});
}

std::string graph_text(Items items) {
  const auto part = [&](const char* name, GraphUse value) {
    return counted(name, items, &Embedding::graph, {value});
  };
  return part("hit=", GraphUse::kHit) + part(",partial=", GraphUse::kPartial) +
         part(",miss=", GraphUse::kMiss);
}

void append_duration(std::string& out, const char* name, double milliseconds) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), milliseconds,
                                 std::chars_format::fixed, 3);
  if (!out.empty()) out += ", ";
  out += name;
  out += ";dur=";
  out.append(text.data(), end.ptr);
}

std::string timing_text(const JobReply& reply, double fetch_ms, Clock::time_point arrival) {
  const StageTimes stages = total(reply.items);
  const std::chrono::duration<double, std::milli> since_arrival = Clock::now() - arrival;
  std::string text;
  append_duration(text, "fetch", fetch_ms);
  append_duration(text, "decode", stages.read_ms + stages.decode_ms);
  append_duration(text, "prep", stages.resize_ms + stages.pack_ms);
  append_duration(text, "queue", reply.queue_ms);
  append_duration(text, "encode", stages.encode_ms + stages.output_ms);
  append_duration(text, "total", since_arrival.count());
  return text;
}

}  // namespace

Headers encoding_headers(const JobReply& reply, double fetch_ms, Clock::time_point arrival) {
  return {{"X-Fovea-Rows", std::to_string(count_rows(reply.items))},
          {"X-Fovea-Cache", cache_text(reply.items)},
          {"X-Fovea-Graph", graph_text(reply.items)},
          {"Server-Timing", timing_text(reply, fetch_ms, arrival)}};
}

}  // namespace fovea::serve
