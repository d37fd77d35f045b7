#include "serve/routes/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "core/check.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using ::testing::HasSubstr;

/// The value of a text that outlives all conversations.
JsonView view_of(const std::string& json) {
  static std::deque<JsonDocument> documents;
  return documents.emplace_back(JsonDocument::parse(json, "messages")).root();
}

Conversation parse(const std::string& json) {
  return parse_conversation(view_of(json), "messages");
}

/// The conversation of one user message with these parts.
Conversation parts(const std::string& content) {
  return parse(R"([{"role": "user", "content": )" + content + "}]");
}

ApiError refusal(const std::string& content) {
  try {
    (void)parts(content);
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

TEST(ParseConversation, TakesMediaInOrderAndSaysWhereTheyStand) {
  const Conversation media = parse(R"([
    {"role": "system", "content": "look"},
    {"role": "user", "content": [
      {"type": "text", "text": "at"},
      {"type": "image_url", "image_url": {"url": "data:a", "detail": "low"}, "uuid": "u1"},
      "plain text",
      {"type": "video_url", "video_url": "http://b"}]},
    {"role": "assistant", "content": null, "tool_calls": []},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:c"}]}])");
  ASSERT_EQ(media.size(), 3U);
  EXPECT_EQ(media[0].reference.url, "data:a");
  EXPECT_EQ(media[0].reference.modality, Modality::kImage);
  EXPECT_EQ(media[0].reference.param, "messages[1].content[1].image_url");
  EXPECT_EQ(media[0].param, "messages[1].content[1]");
  EXPECT_EQ(media[0].uuid, "u1");
  EXPECT_EQ(media[1].reference.modality, Modality::kVideo);
  EXPECT_EQ(media[1].reference.param, "messages[1].content[3].video_url");
  EXPECT_FALSE(media[1].uuid.has_value());
  EXPECT_EQ(media[2].reference.url, "data:c");
}

TEST(ParseConversation, TellsPartsWithoutTypeByTheirMembers) {
  const Conversation media = parts(R"([{"image_url": {"url": "data:a"}}, {"text": "b"}])");
  ASSERT_EQ(media.size(), 1U);
  EXPECT_EQ(media[0].reference.url, "data:a");
}

TEST(ParseConversation, TakesASinglePart) {
  EXPECT_EQ(parts(R"({"type": "image_url", "image_url": "data:a"})").size(), 1U);
}

TEST(ParseConversation, HasNoMediaWithoutMessages) { EXPECT_TRUE(parse("[]").empty()); }

TEST(ParseConversation, RefusesWhatItCannotEncode) {
  const ApiError embeds = refusal(R"([{"type": "image_embeds", "image_embeds": "AAAA"}])");
  EXPECT_EQ(embeds.status(), 400);
  EXPECT_EQ(embeds.param(), "messages[0].content[0].type");
  EXPECT_THAT(embeds.what(), HasSubstr("takes none"));
  EXPECT_THAT(refusal(R"([{"type": "input_audio", "input_audio": {}}])").what(),
              HasSubstr("no sound"));
  EXPECT_THAT(refusal(R"([{"type": "file", "file": {}}])").what(), HasSubstr("got \"file\""));
  EXPECT_EQ(refusal(R"([{}])").code(), "invalid_value");
}

TEST(ParseConversation, RefusesAnImageAndAVideoInOnePart) {
  const ApiError untyped = refusal(R"([{"image_url": "data:a", "video_url": "data:b"}])");
  EXPECT_EQ(untyped.param(), "messages[0].content[0].video_url");
  EXPECT_THAT(untyped.what(), HasSubstr("comes with image_url"));
  EXPECT_EQ(
      refusal(R"([{"type": "video_url", "image_url": "data:a", "video_url": "data:b"}])").param(),
      "messages[0].content[0].image_url");
  EXPECT_EQ(parts(R"([{"image_url": "data:a", "video_url": null}])").size(), 1U);
}

TEST(ParseConversation, RefusesMediaWithoutUrl) {
  const ApiError cached = refusal(R"([{"type": "image_url", "image_url": null, "uuid": "u"}])");
  EXPECT_EQ(cached.code(), "missing_field");
  EXPECT_EQ(cached.param(), "messages[0].content[0].image_url");
  EXPECT_EQ(refusal(R"([{"type": "image_url", "image_url": {"detail": "low"}}])").code(),
            "missing_field");
  EXPECT_EQ(refusal(R"([{"type": "image_url", "image_url": 7}])").code(), "invalid_value");
  EXPECT_EQ(refusal(R"([{"type": "image_url", "image_url": {"url": 7}}])").code(), "invalid_value");
}

TEST(ParseConversation, TakesOptionsOfItemsBesideThemAndInTheirUrl) {
  for (const char* name :
       {"min_pixels", "max_pixels", "resized_height", "resized_width", "fps", "num_frames"}) {
    const std::string member = R"(")" + std::string(name) + R"(": 64)";
    for (const char* type : {"image_url", "video_url"}) {
      const std::string start = R"([{"type": ")" + std::string(type) + R"(", ")" + type;
      const std::string where = "messages[0].content[0].";
      const auto option = [&](const std::string& content) {
        return parts(content.c_str())[0].reference.options.at(name);
      };
      const ItemOption beside = option(cat(start, R"(": {"url": "data:a"}, )", member, "}]"));
      EXPECT_EQ(beside.json, "64");
      EXPECT_EQ(beside.param, where + name);
      const ItemOption inside = option(cat(start, R"(": {"url": "data:a", )", member, "}}]"));
      EXPECT_EQ(inside.param, where + type + "." + name);
    }
  }
  EXPECT_EQ(parts(R"([{"image_url": "data:a", "mm_processor_kwargs": {"max_pixels": 7}}])")[0]
                .reference.options.at("max_pixels")
                .param,
            "messages[0].content[0].mm_processor_kwargs.max_pixels");
  EXPECT_TRUE(parts(R"([{"image_url": "data:a", "max_pixels": null, "cache_control": {}}])")[0]
                  .reference.options.empty());
  EXPECT_EQ(refusal(R"([{"image_url": "data:a", "media_io_kwargs": {}}])").param(),
            "messages[0].content[0].media_io_kwargs");
}

TEST(ParseConversation, RefusesTextWhereItWouldCount) {
  const auto param = [](const char* content) {
    const JsonView messages =
        view_of(R"([{"role": "user", "content": )" + std::string(content) + "}]");
    try {
      (void)parse_conversation(messages, "messages", {.text = TextRule::kRefused});
    } catch (const ApiError& error) {
      EXPECT_EQ(error.code(), "text_not_supported");
      return error.param();
    }
    return std::string();
  };
  EXPECT_EQ(param(R"([{"image_url": "data:a"}, {"type": "text", "text": "b"}])"),
            "messages[0].content[1].text");
  EXPECT_EQ(param(R"([{"text": "b"}])"), "messages[0].content[0].text");
  EXPECT_EQ(param(R"(["b"])"), "messages[0].content[0]");
  EXPECT_EQ(param(R"("b")"), "messages[0].content");
  EXPECT_EQ(param(R"([{"image_url": "data:a"}, {"type": "text", "text": ""}])"), "");
  EXPECT_EQ(param(R"([{"image_url": "data:a", "text": "b"}])"), "messages[0].content[0].text");
}

TEST(ParseConversation, CountsMediaBeforeItMakesThem) {
  std::string parts = R"([{"content": ["text")";
  for (int i = 0; i < 4; ++i) parts += R"(, {"image_url": "a"})";
  const JsonView messages = view_of(parts + "]}]");
  EXPECT_EQ(parse_conversation(messages, "messages", {.max_items = 4}).size(), 4U);
  const auto code = [](auto&& call) {
    try {
      (void)call();
    } catch (const ApiError& error) {
      return error.code();
    }
    return std::string();
  };
  EXPECT_EQ(code([&] { return parse_conversation(messages, "messages", {.max_items = 3}); }),
            "too_many_items");
  EXPECT_EQ(
      code([] { return parse_conversations(view_of("[[],[],[]]"), "input", {.max_items = 2}); }),
      "too_many_items");
}

TEST(ParseConversation, RefusesOtherShapes) {
  EXPECT_EQ(refusal("7").param(), "messages[0].content");
  EXPECT_EQ(refusal("[7]").param(), "messages[0].content[0]");
  EXPECT_THROW((void)parse("{}"), ApiError);
  EXPECT_THROW((void)parse("[7]"), ApiError);
}

TEST(ParseConversations, TakesOneOrSeveral) {
  const std::string one = R"([{"content": [{"image_url": "data:a"}]}])";
  EXPECT_EQ(parse_conversations(view_of(one), "messages").size(), 1U);
  const auto two = parse_conversations(view_of("[" + one + "," + one + "]"), "messages");
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1][0].param, "messages[1][0].content[0]");
  EXPECT_THROW((void)parse_conversations(view_of("[" + one + ", 7]"), "messages"), ApiError);
}

}  // namespace
}  // namespace fovea::serve
