// Sizes of the encoder cache and of a step.
#include <algorithm>
#include <string_view>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "fovea/encoder_cache.h"
#include "fovea/log.h"
#include "fovea/tower/core/shape.h"

namespace fovea {

namespace {

void check_not_negative(std::string_view name, std::int64_t value) {
  FOVEA_CHECK(value >= 0, kInvalidArgument, name, ": expected at least 0, got ", value);
}

/// `rows` or, if that is more, those of the largest item.
std::int64_t room_for_item(std::string_view name, std::int64_t rows, bool is_set,
                           std::int64_t max_item_rows, LogSink* log) {
  if (rows >= max_item_rows) return rows;
  if (is_set) {
    log_to(log, LogLevel::kWarning,
           cat("encoder_cache.raised ", name, "=", rows, " to=", max_item_rows));
  }
  return max_item_rows;
}

}  // namespace

CacheBudgets cache_budgets(const CacheSettings& settings, LogSink* log) try {
  const std::int64_t compute =
      settings.max_batched_encoder_rows.value_or(settings.max_num_batched_tokens);
  const std::int64_t capacity = settings.encoder_cache_size.value_or(compute);
  check_not_negative("max_num_batched_tokens", settings.max_num_batched_tokens);
  check_not_negative("max_item_rows", settings.max_item_rows);
  check_not_negative("max_batched_encoder_rows", compute);
  check_not_negative("encoder_cache_size", capacity);
  FOVEA_CHECK(!settings.no_split || settings.max_item_rows <= settings.max_num_batched_tokens,
              kInvalidArgument, "items that must not be split have up to ", settings.max_item_rows,
              " rows, more than the ", settings.max_num_batched_tokens, " tokens of a step");
  if (settings.max_item_rows == 0) return {};
  return {.compute_rows = room_for_item("max_batched_encoder_rows", compute,
                                        settings.max_batched_encoder_rows.has_value(),
                                        settings.max_item_rows, log),
          .capacity_rows =
              room_for_item("encoder_cache_size", capacity, settings.encoder_cache_size.has_value(),
                            settings.max_item_rows, log)};
} catch (...) {
  rethrow_as_error();
}

std::optional<ProfileCounts> profile_counts(std::span<const ModalityBounds> modalities,
                                            const ProfileSettings& settings) try {
  check_not_negative("max_model_len", settings.max_model_len);
  check_not_negative("max_num_seqs", settings.max_num_seqs);
  check_not_negative("max_num_batched_tokens", settings.max_num_batched_tokens);
  const auto largest = std::ranges::max_element(modalities, {}, [](const ModalityBounds& of) {
    return std::pair(of.max_item_rows, std::string_view(of.name));
  });
  if (largest == modalities.end() || largest->max_item_rows == 0) return std::nullopt;
  const std::int64_t rows = largest->max_item_rows;
  check_not_negative("max_item_rows", rows);
  check_not_negative("max_per_prompt", largest->max_per_prompt);
  const std::int64_t budget =
      std::min(settings.budgets.compute_rows, settings.budgets.capacity_rows);
  const std::int64_t requests =
      settings.chunked_prefill
          ? settings.max_num_seqs
          : std::min(settings.max_num_seqs, settings.max_num_batched_tokens / rows);
  const std::int64_t per_prompt =
      std::max(std::min(largest->max_per_prompt, settings.max_model_len / rows), std::int64_t{1});
  const auto of_requests = checked_mul(requests, per_prompt);
  const std::int64_t per_batch = std::min(budget / rows, of_requests.value_or(budget / rows));
  return ProfileCounts{.modality = largest->name,
                       .items_per_prompt = per_prompt,
                       .items_per_batch = std::max(per_batch, std::int64_t{1})};
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
