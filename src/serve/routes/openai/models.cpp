#include "serve/routes/routes.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 4> kModelMembers{
    {{"id", schema::text, "Name that clients use"},
     {"object", schema::text, "model"},
     {"created", schema::integer, "When the server began, seconds since 1970"},
     {"owned_by", schema::text, "fovea"}}};
constexpr ReplyObject kModel{"Model", kModelMembers};
constexpr std::array<ReplyMember, 2> kModelsMembers{
    {{"object", schema::text, "list"},
     {"data", schema::list<schema::reply<kModel>>, "The one model"}}};
constexpr ReplyObject kModels{"Models", kModelsMembers};

JsonObject model_json(const Service& service, std::int64_t created) {
  return {{"id", service.options().served_name},
          {"object", "model"},
          {"created", created},
          {"owned_by", "fovea"}};
}

JsonObject list_json(const Service& service, std::int64_t created) {
  return {{"object", "list"}, {"data", JsonArray::of(model_json(service, created))}};
}

}  // namespace

std::vector<Route> model_routes(const Service& service) {
  const std::int64_t created = unix_seconds();
  const auto list = [&service, created] { return json_reply(list_json(service, created)); };
  const auto one = [&service, created](const PathArguments& names) {
    service.check_model_name(names.size() == 1 ? names[0] : names[0] + "/" + names[1]);
    return json_reply(model_json(service, created));
  };
  const RouteText all{.summary = "The model, in a list",
                      .gives = {{.schema = schema::reply<kModels>}}};
  const RouteText single{.summary = "The model", .gives = {{.schema = schema::reply<kModel>}}};
  return {get_route("/v1/models", all, list), get_route("/models", all, list),
          get_route("/v1/models/{id}", single, one),
          get_route("/v1/models/{organisation}/{id}", single, one)};
}

}  // namespace fovea::serve
