#include "serve/routes/plan.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/clients.h"
#include "serve/routes/encode_request.h"
#include "serve/routes/json_reply.h"
#include "serve/routes/processing_options.h"
#include "serve/service/item_error.h"

namespace fovea::serve {
namespace {

/// The size of an item as its header has it.
/// @param info what the engine could tell. @throws ApiError that names the item otherwise.
ItemSize size_of_media(const MediaItem& item, const std::optional<ItemInfo>& info,
                       const Service& service) {
  if (info) {
    return {.width_px = info->source_width_px,
            .height_px = info->source_height_px,
            .num_frames = info->num_frames,
            .modality = info->modality};
  }
  if (item.modality == Modality::kVideo && item.frames.empty()) {
    throw ApiError(422, "unsupported_media",
                   item.name +
                       ": the frames of a video are known once it is decoded; plan with "
                       "width, height and num_frames",
                   item.name);
  }
  const MediaOptions& media = service.options().engine.media;
  try {
    const auto first = item.frames.empty() ? item.content() : item.frames.front();
    ItemSize size = probe_image(first, item.name, media);
    size.num_frames = item.num_frames;
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

Json item_json(const EncodeItem& item, const ItemInfo& info, std::size_t index) {
  Json json;
  json["index"] = index;
  if (!item.id.empty()) json["id"] = item.id;
  json["object"] = "plan.item";
  json["modality"] = info.modality == Modality::kVideo ? "video" : "image";
  json["source_size"] = {info.source_width_px, info.source_height_px};
  json["resized_size"] = {info.resized_width_px, info.resized_height_px};
  json["num_frames"] = info.num_frames;
  if (info.grid_thw) json["grid_thw"] = *info.grid_thw;
  json["patches"] = info.patches;
  json["num_embeds"] = info.rows;
  return json;
}

Json batch_json(const PlannedBatch& batch) {
  Json json;
  json["replica"] = batch.replica;
  json["items"] = batch.items;
  json["tokens"] = batch.tokens;
  json["budgets"] = Json::array();
  for (const std::optional<std::int64_t>& budget : batch.budgets)
    json["budgets"].push_back(budget ? Json(*budget) : Json());
  json["padded"] = batch.padded;
  return json;
}

Json packing_json(const PackingPlan& plan) {
  Json json;
  json["paths"] = plan.paths;
  json["token_budgets"] = plan.token_budgets;
  json["max_items_per_batch"] = plan.max_items_per_batch;
  json["batches"] = Json::array();
  for (const PlannedBatch& batch : plan.batches) json["batches"].push_back(batch_json(batch));
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
  Json reply;
  reply["object"] = "plan";
  reply["model"] = service.options().served_name;
  reply["width"] = engine.report().width;
  reply["data"] = Json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    reply["data"].push_back(item_json(items[i], plan.items[i], i));
    rows += plan.items[i].rows;
  }
  reply["packing"] = packing_json(plan);
  reply["usage"] = {{"prompt_tokens", rows}, {"total_tokens", rows}};
  return json_reply(reply);
}

/// Gives the items that are media their sizes.
void measure(const Service& service, const std::vector<MediaItem>& media, const CallBounds& bounds,
             std::vector<EncodeItem>& items) {
  const std::vector<std::optional<ItemInfo>> infos = service.engine().plan_ahead(media, bounds);
  std::size_t next = 0;
  for (EncodeItem& item : items) {
    if (item.size) continue;
    item.size = size_of_media(media[next], infos[next], service);
    ++next;
  }
}

void handle_plan(const Encoder& encoder, const CallLimits& limits,
                 const std::shared_ptr<Exchange>& exchange) {
  const Request& request = exchange->request();
  EncodeRequest parsed = read_encode_request(
      request, {.max_items = limits.max_items, .takes_sizes = true, .media = limits.media});
  const Service& service = encoder.service;
  service.check_model_name(parsed.model);
  for (const ProcessorOptions& options : parsed.processor)
    check_processor_kwargs(options.options, options.path, service);
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
          measure(service, media.items, bounds, *items);
          return plan_reply(service, *items, bounds);
        });
      });
}

}  // namespace

Route plan_route(const Encoder& encoder, const CallLimits& limits) {
  return {.method = "POST",
          .pattern = "/v1/plan",
          .kind = RouteKind::kWork,
          .handler = [encoder, limits](const std::shared_ptr<Exchange>& exchange,
                                       const PathArguments&) {
            handle_plan(encoder, limits, exchange);
          }};
}

}  // namespace fovea::serve
