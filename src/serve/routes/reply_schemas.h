#pragma once

#include <array>

#include "serve/text/schema.h"

// What replies of several routes have in common.

namespace fovea::serve {

inline constexpr std::array<ReplyMember, 2> kUsageMembers{
    {{"prompt_tokens", schema::integer, "Rows of all items"},
     {"total_tokens", schema::integer, "The same"}}};
inline constexpr ReplyObject kUsage{"Usage", kUsageMembers};

/// The types of bodies that are no JSON.
inline constexpr std::string_view kBinaryType = "application/octet-stream";
inline constexpr std::string_view kTextType = "text/plain";

}  // namespace fovea::serve
