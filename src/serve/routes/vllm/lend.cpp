// Rows that the engine has in memory of a GPU, for processes of the same host: the reply says where
// they lie, and they stay there while it lasts.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "serve/api_error.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/http/reply_stream.h"
#include "serve/routes/vllm/routes.h"
#include "serve/rows/element_type.h"
#include "serve/text/base64.h"
#include "serve/text/json.h"
#include "serve/text/object_table.h"
#include "serve/text/schema.h"

namespace fovea::serve {
namespace {

struct LendBody : BodyObject {
  std::optional<std::vector<std::string_view>> keys;
};
constexpr std::array<Member<LendBody>, 1> kLendMembers{
    {{&LendBody::keys,
      {.name = "keys",
       .about = "Under which rows were published, as in /v1/cache/{key}",
       .is_required = true}}}};
constexpr ObjectTable<LendBody> kLendBody{"LendBody", kLendMembers, Others::kRefused};

constexpr std::array<ReplyMember, 3> kMemoryMembers{
    {{"gpu", schema::text, "The UUID of the GPU"},
     {"handle", schema::text, "A cudaIpcMemHandle_t in base64"},
     {"bytes", schema::integer, "Of the memory"}}};
constexpr ReplyObject kMemory{"LentMemory", kMemoryMembers};
constexpr std::array<ReplyMember, 5> kPlaceMembers{
    {{"memory", schema::integer, "Which of `memories`"},
     {"offset", schema::integer, "Of the first byte in it"},
     {"bytes", schema::integer, "Of the rows, one after the other"},
     {"dtype", schema::text, "Of the elements"},
     {"shape", schema::list<schema::integer>, "Rows and width"}}};
constexpr ReplyObject kPlace{"LentItem", kPlaceMembers};
constexpr std::array<ReplyMember, 3> kLentMembers{
    {{"memories", schema::list<schema::reply<kMemory>>, "Of the GPUs of this server"},
     {"items", schema::map<schema::or_null<schema::reply<kPlace>>>,
      "By their keys; null: not in memory of a GPU, or not known"},
     {"lasts_ms", schema::integer, "Milliseconds from the request on that the rows stay"}}};
constexpr ReplyObject kLent{"LentRows", kLentMembers};

/// The route with all that it refers to.
struct Lending {
  Lending(RowLending with, const LendOptions& given)
      : parts(std::move(with)),
        options(given),
        places(static_cast<std::size_t>(given.max_at_once)) {}

  RowLending parts;
  LendOptions options;
  Budget places;  // one for each reply
};

/// What a reply holds while it lasts.
struct Lent {
  std::shared_ptr<Lending> lending;  // outlives the place
  Budget::Ticket place;
  Clock::time_point until;
  std::shared_ptr<const void> pins = nullptr;
};

/// The keys of a request, each once.
std::vector<std::string> read_keys(const Lending& lending, const Request& request) {
  const SharedJson body = parse_json_object(request.text(), request.body);
  const LendBody parsed = read_object(kLendBody, body->root());
  const std::size_t most = lending.options.max_keys;
  if (parsed.keys->size() > most) {
    throw ApiError(400, "too_many_items",
                   "expected at most " + std::to_string(most) + " keys, got " +
                       std::to_string(parsed.keys->size()) + " (--max-items-per-request)",
                   "keys");
  }
  std::vector<std::string> keys(parsed.keys->begin(), parsed.keys->end());
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Budget::Ticket take_place(Lending& lending) {
  if (auto place = lending.places.try_take(1)) return *std::move(place);
  ApiError full(429, "queue_full",
                "rows are lent to " + std::to_string(lending.options.max_at_once) +
                    " requests already (--lend-rows)");
  full.retry_after_s = 1;
  throw full;
}

/// Under which the engine has the rows of published keys; empty: under none.
std::vector<std::string> cache_keys(RowStore& store, std::span<const std::string> keys) {
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const std::shared_ptr<const Embedding> item = store.find(key);
    found.push_back(item != nullptr ? item->cache_key : "");
  }
  return found;
}

JsonObject memory_json(const DeviceMemoryName& memory) {
  return {{"gpu", memory.gpu},
          {"handle", to_base64(std::as_bytes(std::span(memory.handle)))},
          {"bytes", memory.bytes}};
}

JsonObject place_json(const LentItem& item) {
  const ElementType type = element_type(item.dtype);
  const auto elements = static_cast<std::size_t>(item.rows * item.width);
  return {{"memory", item.memory},
          {"offset", item.offset_bytes},
          {"bytes", elements * size_of(type)},
          {"dtype", to_string(type)},
          {"shape", std::array{item.rows, item.width}}};
}

/// One line.
std::string lent_text(const LentRows& rows, std::span<const std::string> keys,
                      const LendOptions& options) {
  JsonArray memories;
  for (const DeviceMemoryName& memory : rows.memories) memories.add(memory_json(memory));
  JsonObject items;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::optional<JsonObject> place;
    if (rows.items[i]) place = place_json(*rows.items[i]);
    items.set(keys[i], place);
  }
  const JsonObject json{
      {"memories", memories}, {"items", items}, {"lasts_ms", options.most_time.count()}};
  return to_json_text(json) + "\n";
}

void reply_with(LentRows rows, const std::shared_ptr<Lent>& lent, std::span<const std::string> keys,
                Exchange& exchange) {
  lent->pins = std::move(rows.pins);
  const auto stream = std::make_shared<ReplyStream>([lent](bool wants_more) {
    if (wants_more) return;
    lent->pins.reset();
    lent->place = {};  // before the next request of this connection
  });
  Reply reply{.status = 200, .content_type = "application/json"};
  reply.stream = ReplyStream::reading_end(stream);
  reply.stream_until = lent->until;
  const LendOptions& options = lent->lending->options;
  (void)stream->put(lent_text(rows, keys, options));  // nobody has closed it
  exchange.reply(std::move(reply));
}

void lend(const std::shared_ptr<Lending>& lending, const std::shared_ptr<Exchange>& exchange) {
  const RowLending& parts = lending->parts;
  const std::vector<std::string> keys = read_keys(*lending, exchange->request());
  const auto lent = std::make_shared<Lent>();
  lent->lending = lending;
  lent->place = take_place(*lending);
  lent->until = Clock::now() + lending->options.most_time;
  const std::vector<std::string> names = cache_keys(parts.store, keys);
  if (auto rows = parts.try_lend(names)) {
    return reply_with(*std::move(rows), lent, keys, *exchange);
  }
  parts.run_task([lent, keys, names, exchange] {
    try {
      reply_with(lent->lending->parts.lend(names), lent, keys, *exchange);
    } catch (...) {
      exchange->fail();
    }
  });
}

}  // namespace

Route lend_route(RowLending parts, const LendOptions& options) {
  const auto lending = std::make_shared<Lending>(std::move(parts), options);
  return {.method = "POST",
          .pattern = "/v1/cache/lend",
          .kind = RouteKind::kWork,
          .handler = [lending](const std::shared_ptr<Exchange>& exchange,
                               const PathArguments&) { lend(lending, exchange); },
          .is_instant = true,
          .text = {.summary = "Where rows lie in memory of a GPU, for processes of the same host",
                   .takes = {{.schema = schema::body<kLendBody>}},
                   .gives = {{.schema = schema::reply<kLent>}},
                   .about = "One line of JSON comes at once. The reply then stays open, and the "
                            "rows stay in their place until the client closes the connection, "
                            "or sends its next request or an empty line over it, or lasts_ms have "
                            "passed.",
                   .example = R"(--no-buffer --json '{"keys": ["photo-1"]}')"}};
}

}  // namespace fovea::serve
