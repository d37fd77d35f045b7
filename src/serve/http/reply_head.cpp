#include "serve/http/reply_head.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace fovea::serve {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Unknown";  // other statuses are as good without words
  }
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char character : value) {
    const auto code = static_cast<std::uint8_t>(character);
    head += code < 0x20 || code == 0x7f ? ' ' : character;
  }
  head += "\r\n";
}

std::string two_digits(int number) {
  return {static_cast<char>('0' + number / 10 % 10), static_cast<char>('0' + number % 10)};
}

}  // namespace

std::string http_date(std::time_t time) {
  // strftime() would follow the locale of the process.
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::string text(kDays.at(static_cast<std::size_t>(parts.tm_wday)));
  text += ", " + two_digits(parts.tm_mday) + " ";
  text += kMonths.at(static_cast<std::size_t>(parts.tm_mon));
  text += " " + std::to_string(parts.tm_year + 1900) + " " + two_digits(parts.tm_hour) + ":" +
          two_digits(parts.tm_min) + ":" + two_digits(parts.tm_sec) + " GMT";
  return text;
}

std::string reply_head(const Reply& reply, const ReplyFrame& frame) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  head.append(reason_of(reply.status)).append("\r\n");
  if (!frame.server.empty()) append_header(head, "Server", frame.server);
  append_header(head, "Date", http_date(frame.now));
  if (!frame.request_id.empty()) append_header(head, "X-Request-Id", frame.request_id);
  if (!reply.content_type.empty()) append_header(head, "Content-Type", reply.content_type);
  for (const Header& header : reply.headers) append_header(head, header.name, header.value);
  if (has_body(reply.status)) append_header(head, "Content-Length", std::to_string(reply.size()));
  append_header(head, "Connection", frame.keep_alive ? "keep-alive" : "close");
  return head += "\r\n";
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace fovea::serve
