#include "serve/routes/vllm/routes.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "fovea/row_formats.h"
#include "serve/api_error.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/routes/reply_schemas.h"
#include "serve/rows/body_builder.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 6> kRowStoreStatsMembers{
    {{"entries", schema::integer, "Rows that are kept, by their keys"},
     {"bytes", schema::integer, "That they take"},
     {"capacity_bytes", schema::integer, "Most of them"},
     {"hits", schema::integer, "Keys that were found"},
     {"misses", schema::integer, "Keys that were not"},
     {"evictions", schema::integer, "Rows that had to go"}}};
constexpr ReplyObject kRowStoreStats{"RowStoreStats", kRowStoreStatsMembers};
constexpr std::array<ReplyMember, 5> kPublisherStatsMembers{
    {{"entries", schema::integer, "Files"},
     {"bytes", schema::integer, "That they take"},
     {"capacity_bytes", schema::integer, "Most of them; 0: any number"},
     {"published", schema::integer, "Files written"},
     {"pruned", schema::integer, "Files that had to go"}}};
constexpr ReplyObject kPublisherStats{"PublisherStats", kPublisherStatsMembers};
constexpr std::array<ReplyMember, 7> kEncoderCacheStatsMembers{
    {{"entries", schema::integer, "Items that are kept"},
     {"bytes", schema::integer, "That they take"},
     {"capacity_bytes", schema::integer, "Most of them"},
     {"hits", schema::integer, "Items that were there"},
     {"joins", schema::integer, "Items that another request was encoding"},
     {"misses", schema::integer, "Items that were encoded"},
     {"evictions", schema::integer, "Items that had to go"}}};
constexpr ReplyObject kEncoderCacheStats{"EncoderCacheStats", kEncoderCacheStatsMembers};
constexpr std::array<ReplyMember, 3> kCacheStatsMembers{
    {{"row_store", schema::reply<kRowStoreStats>, "Behind /v1/cache/{key}"},
     {"ec_dir", schema::or_null<schema::reply<kPublisherStats>>, "The folder for vLLM"},
     {"encoder_cache", schema::reply<kEncoderCacheStats>, "Of the engine"}}};
constexpr ReplyObject kCacheStats{"CacheStats", kCacheStatsMembers};

/// The file, without a copy of the rows.
Reply file_reply(const std::shared_ptr<const Embedding>& item, const std::shared_ptr<void>& room) {
  const StoredTensor tensor = stored_rows(*item, "ec_cache");
  BodyBuilder body;
  body.keep({tensor.data, item});
  write_safetensors(std::span(&tensor, 1), {{"format", "pt"}}, body.sink());
  return binary_reply(body, room);
}

/// Room in memory for rows that may be evicted while they are sent. @throws ApiError(429).
std::shared_ptr<void> take_room(Service& service, const Embedding& item) {
  std::shared_ptr<void> room = service.take_memory(item.data.size());
  if (room) return room;
  ApiError full(429, "queue_full", "there is no room for the reply now (--max-inflight-bytes)");
  full.retry_after_s = service.retry_after_s();
  throw full;
}

ApiError key_not_found() { return {404, "key_not_found", "there are no rows of this key", "key"}; }

void get_rows(Service& service, RowStore& store, Exchange& exchange, const std::string& key) {
  const std::shared_ptr<const Embedding> item = store.find(key);
  if (item == nullptr) throw key_not_found();
  // Other rows may be published under the same key. Those that the engine does not name have none.
  const std::string etag = item->key.empty() ? "" : "\"" + item->key + "\"";
  if (!etag.empty() && has_entity(exchange.request().headers, etag)) {
    Reply unchanged;
    unchanged.status = kNotModified;
    unchanged.headers.push_back({"ETag", etag});
    return exchange.reply(std::move(unchanged));
  }
  const bool is_sent = exchange.request().method != "HEAD";
  Reply reply = file_reply(item, is_sent ? take_room(service, *item) : nullptr);
  if (!etag.empty()) reply.headers.push_back({"ETag", etag});
  reply.headers.push_back({"X-Fovea-Format", "safetensors"});
  reply.headers.push_back(
      {"X-Fovea-Shape", std::to_string(item->rows) + "," + std::to_string(item->width)});
  exchange.reply(std::move(reply));
}

JsonObject store_json(const RowStoreStats& stats) {
  JsonObject json;
  json.set("entries", stats.entries);
  json.set("bytes", stats.bytes);
  json.set("capacity_bytes", stats.capacity_bytes);
  json.set("hits", stats.hits);
  json.set("misses", stats.misses);
  json.set("evictions", stats.evictions);
  return json;
}

JsonObject publisher_json(const PublisherStats& stats) {
  JsonObject json;
  json.set("entries", stats.entries);
  json.set("bytes", stats.bytes);
  json.set("capacity_bytes", stats.max_bytes);
  json.set("published", stats.published);
  json.set("pruned", stats.pruned);
  return json;
}

JsonObject encoder_json(const EncoderCacheStats& stats) {
  JsonObject json;
  json.set("entries", stats.items);
  json.set("bytes", stats.bytes);
  json.set("capacity_bytes", stats.capacity_bytes);
  json.set("hits", stats.hits);
  json.set("joins", stats.joins);
  json.set("misses", stats.misses);
  json.set("evictions", stats.evictions);
  return json;
}

Reply stats_reply(const Service& service, const RowStore& store, const Publisher* publisher) {
  JsonObject json;
  json.set("row_store", store_json(store.stats()));
  std::optional<JsonObject> directory;
  if (publisher != nullptr) directory = publisher_json(publisher->stats());
  json.set("ec_dir", directory);
  (void)service.model();  // says so if there is none yet
  // Not those of the engine itself, which could wait for a sub-batch.
  json.set("encoder_cache", encoder_json(service.engine_stats()->encoder_cache));
  return json_reply(json);
}

Route route(const char* method, const char* pattern, RouteKind kind, RouteText text,
            Handler handler) {
  return {.method = method,
          .pattern = pattern,
          .kind = kind,
          .handler = std::move(handler),
          .text = std::move(text)};
}

}  // namespace

std::string cache_path(std::string_view key) { return "/v1/cache/" + percent_encoded(key); }

std::vector<Route> cache_routes(Service& service, RowStore& store, const Publisher* publisher) {
  using Call = const std::shared_ptr<Exchange>&;
  std::vector<Route> routes;
  routes.push_back(get_route(
      "/v1/cache", {.summary = "What is kept", .gives = {{.schema = schema::reply<kCacheStats>}}},
      [&service, &store, publisher] { return stats_reply(service, store, publisher); }));
  routes.push_back(route("GET", "/v1/cache/{key}", RouteKind::kWork,
                         {.summary = "Rows that were published under a key, as safetensors",
                          .gives = {{.schema = schema::bytes, .type = kBinaryType}}},
                         [&service, &store](Call exchange, const PathArguments& arguments) {
                           get_rows(service, store, *exchange, arguments[0]);
                         }));
  routes.push_back(route("DELETE", "/v1/cache/{key}", RouteKind::kAdmin,
                         {.summary = "Forgets the rows of a key in memory; files of --ec-dir stay",
                          .gives = {{.schema = schema::object}}},
                         [&store](Call exchange, const PathArguments& arguments) {
                           if (!store.erase(arguments[0])) throw key_not_found();
                           exchange->reply(json_reply(JsonObject()));
                         }));
  routes.push_back(route(
      "POST", "/v1/cache/reset", RouteKind::kAdmin,
      {.summary =
           "Forgets all published rows in memory; files of --ec-dir and the encoder cache stay",
       .gives = {{.schema = schema::object}}},
      [&store](Call exchange, const PathArguments&) {
        store.clear();
        exchange->reply(json_reply(JsonObject()));
      }));
  return routes;
}

}  // namespace fovea::serve
