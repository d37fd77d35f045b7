#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "serve/http/server.h"
#include "serve/log.h"
#include "serve/media/media_source.h"
#include "serve/routes/vllm/routes.h"
#include "serve/service/admission.h"
#include "serve/service/service.h"
#include "serve/tracing/tracing_options.h"
#include "serve/upstream/forwarder.h"

namespace fovea::serve {

/// Everything a server is made of. The defaults work.
struct ServeOptions {
  HttpOptions http;
  ServiceOptions service;
  MediaSourceOptions media;
  AdmissionOptions admission;
  std::string api_key_file;  ///< as keys_in() has it, read again at SIGHUP; empty: none
  /// More headers of fetches, as FetchHeaders::read() has them, read again at SIGHUP; empty: none.
  std::string media_headers_file;
  CallLimits limits;
  std::int64_t row_store_bytes = std::int64_t{1} << 30;  ///< of rows behind /v1/cache
  std::optional<PublisherOptions> publisher;             ///< absent: no folder is written to
  ChatOptions chat;
  LendOptions lend;                    ///< whose max_keys is that of `limits`
  std::optional<UpstreamOptions> llm;  ///< a proxy of these language models; absent: an encoder
  std::chrono::milliseconds drain_delay{0};
  std::chrono::milliseconds shutdown_timeout{30'000};
  std::optional<TracingOptions> tracing;  ///< absent: no spans are made
  std::string profile_dir;                ///< where profiles are written; empty: nowhere
  std::string build_id;                   ///< label `git` of fovea_build_info
  std::string address_file;               ///< gets the address once the server listens; empty: none
};

/// Serves until SIGTERM or SIGINT, then lets requests end. Blocks these signals and SIGHUP for the
/// calling thread and all it starts, so it is called first in a program.
///
/// Listens at once; the model loads in the background. A first signal: readiness falls, after
/// drain_delay nothing new is accepted, what runs gets its reply within shutdown_timeout. A second
/// one ends the process at once. SIGHUP reads keys, certificates and headers of fetches again.
/// @param log takes what happens, and must outlive the call.
/// @return 0 after a signal. @throws Error if the address cannot be had, options are wrong, or the
/// model cannot be loaded.
int serve(ServeOptions options, LogSink& log);

}  // namespace fovea::serve
