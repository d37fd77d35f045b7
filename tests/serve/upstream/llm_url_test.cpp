#include "serve/upstream/llm_url.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::serve {
namespace {

using Texts = std::vector<std::string>;

TEST(LlmUrl, IsAServer) {
  const std::vector<LlmUrl> urls =
      parse_llm_urls(Texts{"http://A:8000/", "https://b.example/prefix/"});
  ASSERT_EQ(urls.size(), 2U);
  EXPECT_EQ(urls[0].url, "http://a:8000");
  EXPECT_EQ(urls[1].url, "https://b.example:443/prefix");
  EXPECT_EQ(urls[0].name + urls[1].name, "");
}

TEST(LlmUrl, IsANameOfServersBehindDns) {
  const std::vector<LlmUrl> urls =
      parse_llm_urls(Texts{"dns+http://vllm.default.svc:8000", "DNS+https://B.example/p"});
  ASSERT_EQ(urls.size(), 2U);
  EXPECT_EQ(urls[0].url, "http://vllm.default.svc:8000");
  EXPECT_EQ(urls[0].name, "vllm.default.svc");
  EXPECT_EQ(urls[1].url, "https://b.example:443/p");
  EXPECT_EQ(urls[1].name, "b.example");
}

TEST(LlmUrl, IsRefusedIfItLeadsNowhere) {
  const auto refusal = [](const std::string& part, const Texts& texts) {
    fovea::test::expect_error(ErrorCode::kInvalidArgument, part,
                              [&] { (void)parse_llm_urls(texts); });
  };
  refusal("needs --llm", {});
  refusal("expected http://", {"localhost:8000"});
  refusal("expected http://", {"http://a", "http://user:key@b"});
  refusal("--llm dns+vllm:8000: expected dns+http://", {"dns+vllm:8000"});
  refusal("expected dns+http://", {"dns+dns+http://vllm:8000"});
  refusal("got 10.0.0.1, which is one", {"dns+http://10.0.0.1:8000"});
  refusal("got ::1, which is one", {"dns+http://[::1]:8000"});
  refusal("without a query", {"http://a/?x"});
  refusal("without /v1", {"http://a/v1/"});
  refusal("without /v1", {"dns+http://a/v1"});
  refusal("--llm http://a:80/: expected each server once", {"http://a", "http://a:80/"});
  refusal("expected each server once", {"dns+http://a", "http://a"});
}

}  // namespace
}  // namespace fovea::serve
