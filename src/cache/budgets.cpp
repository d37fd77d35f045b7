// Sizes of the encoder cache and of a step.
#include <algorithm>
#include <string_view>

#include "core/check.h"
#include "fovea/encoder_cache.h"
#include "fovea/log.h"

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

CacheBudgets cache_budgets(const CacheSettings& settings, LogSink* log) {
  const std::int64_t compute =
      settings.max_batched_encoder_rows.value_or(settings.max_num_batched_tokens);
  const std::int64_t capacity = settings.encoder_cache_size.value_or(compute);
  check_not_negative("max_num_batched_tokens", settings.max_num_batched_tokens);
  check_not_negative("max_item_rows", settings.max_item_rows);
  check_not_negative("max_batched_encoder_rows", compute);
  check_not_negative("encoder_cache_size", capacity);
  if (settings.max_item_rows == 0) return {};
  return {.compute_rows = room_for_item("max_batched_encoder_rows", compute,
                                        settings.max_batched_encoder_rows.has_value(),
                                        settings.max_item_rows, log),
          .capacity_rows =
              room_for_item("encoder_cache_size", capacity, settings.encoder_cache_size.has_value(),
                            settings.max_item_rows, log)};
}

}  // namespace fovea
