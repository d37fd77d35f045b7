#include "serve/routes/server_timing.h"

#include <array>
#include <charconv>
#include <chrono>

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
  double decode = 0;
  double prep = 0;
  double encode = 0;
  for (const std::shared_ptr<const Embedding>& item : reply.items) {
    decode += item->times.read_ms + item->times.decode_ms;
    prep += item->times.resize_ms + item->times.pack_ms;
    encode += item->times.encode_ms + item->times.output_ms;
  }
  const std::chrono::duration<double, std::milli> total = Clock::now() - arrival;
  std::string text;
  append(text, "fetch", fetch_ms);
  append(text, "decode", decode);
  append(text, "prep", prep);
  append(text, "queue", reply.queue_ms);
  append(text, "encode", encode);
  append(text, "total", total.count());
  return text;
}

}  // namespace fovea::serve
