// In place of http.cpp where libcurl was not found.
#include "core/check.h"
#include "hub/http.h"

namespace fovea::hub {

struct HttpSession::Impl {};

std::string HttpHead::header(std::string_view /*name*/) const { return ""; }

HttpSession::HttpSession() {
  FOVEA_CHECK(false, kUnsupported,
              "this build downloads no models; install libcurl4-openssl-dev, configure with "
              "-DFOVEA_HUB=ON and build again, or use `hf download`");
}
HttpSession::~HttpSession() = default;

HttpEnd HttpSession::perform(const HttpRequest& /*request*/, const HttpEvents& /*events*/) {
  return {};
}

}  // namespace fovea::hub
