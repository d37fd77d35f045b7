#include "serve/routes/admin/routes.h"

#include <memory>

#include "serve/http/message.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {
std::vector<Route> profile_routes(Service& service, Trace& trace) {
  using Call = const std::shared_ptr<Exchange>&;
  const auto start = [&trace](Call exchange, const PathArguments&) {
    trace.start();
    exchange->reply(json_reply(JsonObject()));
  };
  const auto stop = [&service, &trace](Call exchange, const PathArguments&) {
    service.run([exchange, &trace] {
      send_reply(*exchange, [&] { return json_reply({{"file", trace.stop()}}); });
    });
  };
  return {
      {.method = "POST", .pattern = "/start_profile", .kind = RouteKind::kAdmin, .handler = start},
      {.method = "POST", .pattern = "/stop_profile", .kind = RouteKind::kAdmin, .handler = stop}};
}

}  // namespace fovea::serve
