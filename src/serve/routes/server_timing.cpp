#include "serve/routes/server_timing.h"

#include <array>
#include <charconv>
#include <chrono>

#include "serve/rows/stages.h"

namespace fovea::serve {
namespace {

void append(std::string& out, const char* name, double milliseconds) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), milliseconds,
                                 std::chars_format::fixed, 3);
  if (!out.empty()) out += ", ";
  out += name;
  out += ";dur=";
  out.append(text.data(), end.ptr);
}

}  // namespace

std::string server_timing(double fetch_ms, const JobReply& reply, Clock::time_point arrival) {
  const StageTimes stages = total(reply.items);
  const std::chrono::duration<double, std::milli> since_arrival = Clock::now() - arrival;
  std::string text;
  append(text, "fetch", fetch_ms);
  append(text, "decode", stages.read_ms + stages.decode_ms);
  append(text, "prep", stages.resize_ms + stages.pack_ms);
  append(text, "queue", reply.queue_ms);
  append(text, "encode", stages.encode_ms + stages.output_ms);
  append(text, "total", since_arrival.count());
  return text;
}

}  // namespace fovea::serve
