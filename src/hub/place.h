#pragma once

#include <string>
#include <string_view>

#include "fovea/hub.h"

namespace fovea::hub {

/// What the environment says about the hub.
struct Place {
  std::string
      endpoint;       ///< $HF_ENDPOINT, else "https://huggingface.co"; without a slash at its end
  std::string token;  ///< empty: none
  std::string token_file;  ///< where one is looked for without HF_TOKEN, for messages
  bool is_offline = false;
};

/// Reads the environment. @throws Error(kInvalidArgument) for an endpoint that is no URL, and for a
/// token that holds anything but visible characters, without its text.
[[nodiscard]] Place place_of_environment();

/// Folder of a repository in the cache: "models--<organisation>--<name>".
[[nodiscard]] std::string repository_folder(std::string_view name, HubKind kind);

/// Whether a text is the full number of a commit: 40 digits in base 16.
[[nodiscard]] bool is_commit(std::string_view text) noexcept;

/// Whether a branch or tag can be a path below refs/: no part of it is empty or "..".
[[nodiscard]] bool is_revision(std::string_view text) noexcept;

}  // namespace fovea::hub
