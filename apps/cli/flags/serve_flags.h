#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flags/cli11.h"
#include "flags/configuration.h"
#include "flags/flags.h"
#include "serve/serve.h"

namespace fovea::cli {

/// The place where rows are published.
struct PublishFlags {
  serve::PublisherOptions options;
  std::string hash = "blake3";
};

/// The command line of `fovea serve`; texts become options once all of them are there.
struct ServeFlags {
  EngineFlags engine;
  PublishFlags publish;
  Configuration configuration;
  serve::ServeOptions options;
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  std::string tls_client_certs = "none";
  std::string url_policy = "public";
  std::string allowed_domains;
  std::vector<std::string> media_headers;
  std::string media_proxy;
  std::string media_no_proxy;
  std::string media_proxy_lookup = "here";
  serve::CorsOptions cors;
  std::int64_t delay_us = 1000;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string otlp_endpoint;
};

/// Adds all flags of `fovea serve`, whose values go to `flags`, which must outlive the verb.
void add_serve_flags(CLI::App& verb, ServeFlags& flags);

/// Adds all flags of `fovea proxy`: those of `fovea serve` but for places where rows are found, and
/// its language models.
void add_proxy_flags(CLI::App& verb, ServeFlags& flags);

}  // namespace fovea::cli
