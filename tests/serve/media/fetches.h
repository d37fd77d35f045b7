#pragma once

// Fetches as the tests make them: from servers on addresses of this host, of which one stands for
// the public internet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/media/fetcher.h"
#include "support/local_server.h"
#include "support/temporary_directory.h"

namespace fovea::serve {

inline test::LocalServer::Answer answer(const std::string& text) {
  return [text](int socket, const std::string& /*head*/) { test::send_text(socket, text); };
}

/// Says nothing until the client has gone.
inline void hang(int socket, const std::string& /*head*/) { test::wait_for_close(socket); }

inline HostAddresses addresses(std::initializer_list<const char*> texts) {
  HostAddresses host{.outcome = HostAddresses::Outcome::kFound, .addresses = {}};
  for (const char* text : texts) host.addresses.push_back(parse_address(text).value());
  return host;
}

/// 127.0.0.1 stands for the public internet, all else for our own network.
inline FetcherHooks hooks(LookupFunction ask = ask_system) {
  return {.ask = std::move(ask),
          .is_public = [](const Address& address) { return address.text() == "127.0.0.1"; }};
}

inline MediaSourceOptions options_for(const test::LocalServer& server) {
  MediaSourceOptions options;
  options.allowed_ports.push_back(server.port());
  options.connect_timeout = std::chrono::seconds(30);
  options.max_fetches = 2;
  return options;
}

inline Fetch fetch_of(const std::string& url) {
  return {.url = url,
          .modality = Modality::kImage,
          .max_bytes = 1000,
          .timeout = std::chrono::seconds(30),
          .bounds = {},
          .param = "items[0].image",
          .client = {}};
}

/// "200", or status and code of the error: "403 media_url_blocked".
inline std::string text_of(const std::exception_ptr& error) {
  if (!error) return "200";
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& refusal) {
    EXPECT_EQ(refusal.param(), "items[0].image");
    EXPECT_THAT(refusal.what(), testing::Not(::testing::HasSubstr("127.0.0")));
    return std::to_string(refusal.status()) + " " + refusal.code();
  }
}

inline std::future<std::string> start(Fetcher& fetcher, Fetch fetch) {
  const auto result = std::make_shared<std::promise<std::string>>();
  fetcher.fetch(std::move(fetch),
                [result](const Fetched& fetched, const std::exception_ptr& error) {
                  const std::string body(fetched.bytes.begin(), fetched.bytes.end());
                  result->set_value(error ? text_of(error) : "200 " + body);
                });
  return result->get_future();
}

inline std::string run(Fetcher& fetcher, const std::string& url) {
  return start(fetcher, fetch_of(url)).get();
}

/// The header of that name in a head; "none".
inline std::string header_in(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "none";
  const std::size_t begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

inline FetchHeaders headers_of_file(const std::string& json) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/headers.json";
  std::ofstream(path) << json;
  chmod(path.c_str(), 0600);
  FetchHeaders headers;
  headers.read(path);
  return headers;
}

}  // namespace fovea::serve
