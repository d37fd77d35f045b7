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

Route get(const char* pattern, Handler handler) {
  return {.method = "GET",
          .pattern = pattern,
          .kind = RouteKind::kService,
          .handler = std::move(handler)};
}

}  // namespace

std::vector<Route> model_routes(const Service& service) {
  const std::int64_t created = unix_seconds();
  const auto list = [&service, created](const std::shared_ptr<Exchange>& exchange,
                                        const PathArguments&) {
    exchange->reply(json_reply(list_json(service, created)));
  };
  const auto one = [&service, created](const std::shared_ptr<Exchange>& exchange,
                                       const PathArguments& arguments) {
    const std::string id = arguments.size() == 1 ? arguments[0] : arguments[0] + "/" + arguments[1];
    service.check_model_name(id);
    exchange->reply(json_reply(model_json(service, created)));
  };
  std::vector<Route> routes;
  routes.push_back(get("/v1/models", list));
  routes.push_back(get("/models", list));
  routes.push_back(get("/v1/models/{id}", one));
  routes.push_back(get("/v1/models/{organisation}/{id}", one));
  return routes;
}

}  // namespace fovea::serve
