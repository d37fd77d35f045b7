#include "serve/routes/routes.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/connections.h"
#include "serve/http/message.h"
#include "serve/routes/fovea/encode_request.h"
#include "serve/routes/processing_options.h"
#include "serve/routes/reply_schemas.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 10> kPlanItemMembers{
    {{"index", schema::integer, "Place in the request"},
     {"id", schema::text, "As the request has it", false},
     {"object", schema::text, "plan.item"},
     {"modality", schema::text, "image or video"},
     {"source_size", schema::list<schema::integer>, "Width and height in pixels"},
     {"resized_size", schema::list<schema::integer>, "Likewise, after resizing"},
     {"num_frames", schema::integer, "1 of an image"},
     {"grid_thw", schema::list<schema::integer>, "Patches in time, height and width", false},
     {"patches", schema::integer, "That enter the tower"},
     {"num_embeds", schema::integer, "Rows that come out"}}};
constexpr ReplyObject kPlanItem{"PlannedItem", kPlanItemMembers};
constexpr std::array<ReplyMember, 5> kBatchMembers{
    {{"replica", schema::integer, "That encodes it"},
     {"items", schema::list<schema::integer>, "Their places"},
     {"tokens", schema::list<schema::integer>, "Of each path"},
     {"budgets", schema::list<schema::or_null<schema::integer>>, "Of each path; null: eager"},
     {"padded", schema::list<schema::integer>, "Tokens of each path that nobody reads"}}};
constexpr ReplyObject kBatch{"PlannedBatch", kBatchMembers};
constexpr std::array<ReplyMember, 4> kPackingMembers{
    {{"paths", schema::list<schema::text>, "Of the tower"},
     {"token_budgets", schema::list<schema::list<schema::integer>>, "Of the graphs of each path"},
     {"max_items_per_batch", schema::integer, "Of each graph"},
     {"batches", schema::list<schema::reply<kBatch>>, "In order"}}};
constexpr ReplyObject kPacking{"Packing", kPackingMembers};
constexpr std::array<ReplyMember, 6> kPlanReplyMembers{
    {{"object", schema::text, "plan"},
     {"model", schema::text, "Its name"},
     {"width", schema::integer, "Of a row"},
     {"data", schema::list<schema::reply<kPlanItem>>, "The items in order"},
     {"packing", schema::reply<kPacking>, "How they are packed"},
     {"usage", schema::reply<kUsage>, "Rows"}}};
constexpr ReplyObject kPlanReply{"Plan", kPlanReplyMembers};

/// The size of an item as its header has it. @throws ApiError that names the item otherwise.
ItemSize size_of_media(const PlannedItem& planned, const Service& service) {
  if (const std::optional<ItemInfo> info = planned.info()) {
    return {.width_px = info->source_width_px,
            .height_px = info->source_height_px,
            .num_frames = info->num_frames,
            .modality = info->modality};
  }
  const MediaItem& item = planned.media();
  const auto* const encoded = std::get_if<EncodedFrames>(&item.source);
  if (item.modality == Modality::kVideo && encoded == nullptr) {
    throw ApiError(422, "unsupported_media",
                   item.name +
                       ": the frames of a video are known once it is decoded; plan with "
                       "width, height and num_frames",
                   item.name);
  }
  const MediaOptions& media = service.options().engine.media;
  try {
    const auto first = encoded == nullptr ? item.content() : encoded->frames.front().view();
    ItemSize size = probe_image(first, item.name, media);
    size.num_frames = item.num_frames();
    size.modality = item.modality;
    return size;
  } catch (const Error& error) {
    throw item_error(error, item, media);
  }
}

/// Checks a size alone, so that a refusal names its item.
void check_size(const Engine& engine, const EncodeItem& item) {
  try {
    (void)engine.plan(std::span(&*item.size, 1));
  } catch (const Error& error) {
    throw to_api_error(error, item.media.param);
  }
}

JsonObject item_json(const EncodeItem& item, const ItemInfo& info, std::size_t index) {
  JsonObject json;
  json.set("index", index);
  if (!item.id.empty()) json.set("id", item.id);
  json.set("object", "plan.item");
  json.set("modality", to_string(info.modality));
  json.set("source_size", JsonArray::of(info.source_width_px, info.source_height_px));
  json.set("resized_size", JsonArray::of(info.resized_width_px, info.resized_height_px));
  json.set("num_frames", info.num_frames);
  if (info.grid_thw) json.set("grid_thw", *info.grid_thw);
  json.set("patches", info.patches);
  json.set("num_embeds", info.rows);
  return json;
}

JsonObject batch_json(const PlannedBatch& batch) {
  JsonObject json;
  json.set("replica", batch.replica);
  json.set("items", batch.items);
  json.set("tokens", batch.tokens);
  json.set("budgets", batch.budgets);
  json.set("padded", batch.padded);
  return json;
}

JsonObject packing_json(const PackingPlan& plan) {
  JsonObject json;
  json.set("paths", plan.paths);
  json.set("token_budgets", plan.token_budgets);
  json.set("max_items_per_batch", plan.max_items_per_batch);
  JsonArray batches;
  for (const PlannedBatch& batch : plan.batches) batches.add(batch_json(batch));
  json.set("batches", batches);
  return json;
}

/// @param items all with sizes.
Reply plan_reply(const Service& service, const std::vector<EncodeItem>& items,
                 const CallBounds& bounds) {
  const Engine& engine = service.engine();
  std::vector<ItemSize> sizes;
  for (const EncodeItem& item : items) {
    check_size(engine, item);
    sizes.push_back(*item.size);
  }
  const PackingPlan plan = engine.plan(sizes, bounds);
  std::int64_t rows = 0;
  JsonArray data;
  for (std::size_t i = 0; i < items.size(); ++i) {
    data.add(item_json(items[i], plan.items[i], i));
    rows += plan.items[i].rows;
  }
  return json_reply({{"object", "plan"},
                     {"model", service.options().served_name},
                     {"width", engine.report().width},
                     {"data", data},
                     {"packing", packing_json(plan)},
                     {"usage", usage_of(rows)}});
}

/// Gives the items that are media their sizes, and all sizes the options of their items.
void measure(const Service& service, std::vector<MediaItem> media, const CallBounds& bounds,
             std::vector<EncodeItem>& items) {
  const std::vector<PlannedItem> planned = service.engine().plan_items(std::move(media), bounds);
  auto next = planned.begin();
  for (EncodeItem& item : items) {
    if (!item.size) item.size = size_of_media(*next++, service);
    item.size->mm_processor_kwargs = options_text(item.media);
  }
}

void handle_plan(const Encoder& encoder, const std::shared_ptr<Exchange>& exchange) {
  const Request& request = exchange->request();
  EncodeRequest parsed = read_encode_request(
      request,
      {.max_items = encoder.limits.max_items, .takes_sizes = true, .media = encoder.limits.media});
  const Service& service = encoder.service;
  service.check_model_name(parsed.model);
  for (const EncodeItem& item : parsed.items) check_item_options(item.media, service);
  CallBounds bounds{.stop = exchange->gone(), .deadline = request.deadline};
  if (parsed.timeout)
    bounds.deadline = std::min(bounds.deadline, request.arrival + *parsed.timeout);
  std::vector<MediaReference> references;
  for (EncodeItem& item : parsed.items) {
    if (!item.size) references.push_back(item.media);
  }
  const auto items = std::make_shared<std::vector<EncodeItem>>(std::move(parsed.items));
  encoder.media.resolve(
      std::move(references), bounds, client_name(request),
      [&service, exchange, items, bounds](ResolvedMedia media, const std::exception_ptr& error) {
        send_reply(*exchange, [&] {
          if (error) std::rethrow_exception(error);
          measure(service, std::move(media.items), bounds, *items);
          return plan_reply(service, *items, bounds);
        });
      });
}

}  // namespace

Route plan_route(const Encoder& encoder) {
  return {.method = "POST",
          .pattern = "/v1/plan",
          .kind = RouteKind::kWork,
          .handler = [encoder](const std::shared_ptr<Exchange>& exchange,
                               const PathArguments&) { handle_plan(encoder, exchange); },
          .text = {.summary = "Sizes, grids, rows and packing of items, without encoding them",
                   .takes = {{.schema = plan_schema},
                             {.schema = encode_form_schema, .type = "multipart/form-data"},
                             {.schema = schema::bytes, .type = kBinaryType}},
                   .gives = {{.schema = schema::reply<kPlanReply>}},
                   .parameters = encode_parameters,
                   .about = kWhereOptionsStand,
                   .example = R"(--json '{"items": [{"width": 640, "height": 480}]}')"}};
}

}  // namespace fovea::serve
