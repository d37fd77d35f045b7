#include "serve/routes/llm/rewritten_body.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "support/expect_error.h"

namespace fovea::serve {
namespace {

std::string rewritten(const std::string& json, std::vector<ReplacedPart> parts) {
  const JsonDocument document = JsonDocument::parse(json, "body");
  return rewritten_body(document.root(), std::move(parts));
}

TEST(RewrittenBody, ReplacesPartsWhereTheyStand) {
  EXPECT_EQ(rewritten(R"({"a": 1, "messages": [{"role": "u", "content": [1, {"x": 2}, "t"]},
                          {"content": [{"x": 3}], "z": null}], "b": []})",
                      {{"messages[0].content[1]", "P"}, {"messages[1].content[0]", "Q"}}),
            R"({"a":1,"messages":[{"role":"u","content":[1,P,"t"]},)"
            R"({"content":[Q],"z":null}],"b":[]})");
}

TEST(RewrittenBody, ReplacesAPartThatStandsAlone) {
  EXPECT_EQ(rewritten(R"({"messages":[{"content":{"x":1}}]})", {{"messages[0].content", "P"}}),
            R"({"messages":[{"content":P}]})");
}

TEST(RewrittenBody, KeepsAllOtherValues) {
  const std::string body =
      R"({"seed":9223372036854775807,"big":18446744073709551615,"t":0.1,"e":1e-07,"n":null,)"
      R"("o":{"messages":[{"content":[1]}]},"s":"\u0001\"\\","messages":[1,"x",{"content":"y"}]})";
  EXPECT_EQ(rewritten(body, {}), body);
}

TEST(RewrittenBody, LeavesOutMembersOfTheRequestAlone) {
  const JsonDocument document = JsonDocument::parse(
      R"({"a":1,"b":2,"messages":[{"a":3,"content":"x"}],"c":4,"a2":{"a":5}})", "body");
  constexpr std::array<std::string_view, 2> kLeftOut{"a", "c"};
  EXPECT_EQ(rewritten_body(document.root(), {}, kLeftOut),
            R"({"b":2,"messages":[{"a":3,"content":"x"}],"a2":{"a":5}})");
}

TEST(RewrittenBody, FindsThePlaceOfEveryPart) {
  fovea::test::expect_error(ErrorCode::kInternal, "messages[0].content[1]", [] {
    (void)rewritten(R"({"messages":[{"content":[1]}]})", {{"messages[0].content[1]", "P"}});
  });
}

}  // namespace
}  // namespace fovea::serve
