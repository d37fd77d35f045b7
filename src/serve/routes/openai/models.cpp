#include "serve/routes/routes.h"

#include <memory>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {
namespace {

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
  return {get_route("/v1/models", list), get_route("/models", list),
          get_route("/v1/models/{id}", one), get_route("/v1/models/{organisation}/{id}", one)};
}

}  // namespace fovea::serve
