#include "serve/routes/processing_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "serve/routes/conversation.h"
#include "serve/routes/route_caller.h"
#include "serve/rows/rows_fixture.h"

namespace fovea::serve {
namespace {

using test::refusal;
using testing::HasSubstr;

const Service& service() {
  static test::Served served;
  return served.service;
}

struct Body : BodyObject, ProcessingMembers {};
constexpr auto kMembers = joined<Body>(kProcessingMembers);
constexpr ObjectTable<Body> kBody{"Body", kMembers};

/// The options of a body that outlives them.
class Read {
 public:
  explicit Read(const std::string& body) : json_(parse_json_object(body)) {
    options = read_processing_options(read_object(kBody, json_->root()), service());
  }
  ProcessingOptions options;

 private:
  SharedJson json_;
};

std::string refused_param(const std::string& body) {
  return refusal([&] { (void)Read(body); }).param();
}

/// An item with the options of a part, and then those of its request.
MediaReference item_with(const std::string& part, const char* body = "{}",
                         Modality modality = Modality::kImage) {
  const std::string kind = std::string(to_string(modality)) + "_url";
  const std::string members = part == "{}" ? "}" : "," + part.substr(1);
  const SharedJson whole = parse_json_object(R"({"messages": [{"content": [{"type": ")" + kind +
                                             R"(", ")" + kind + R"(": "u")" + members + "]}]}");
  MediaReference item =
      parse_conversation(whole->root().at("messages"), "messages").at(0).reference;
  apply_options(Read(body).options, service(), item);
  return item;
}

std::string refused_option(const char* part, const char* body = "{}",
                           Modality modality = Modality::kImage) {
  return refusal([&] { (void)item_with(part, body, modality); }).param();
}

TEST(ReadProcessingOptions, AreNoneWithoutMembers) {
  for (const char* body : {"{}", R"({"mm_processor_kwargs": {}, "media_io_kwargs": {}})",
                           R"({"mm_processor_kwargs": null})"}) {
    const Read read(body);
    EXPECT_FALSE(read.options.concern(Modality::kImage)) << body;
    EXPECT_FALSE(read.options.concern(Modality::kVideo)) << body;
    EXPECT_EQ(read.options.fps, std::nullopt);
  }
}

TEST(ReadProcessingOptions, ConcernTheMediaThatTheyNameOrAll) {
  const Read processor(R"({"mm_processor_kwargs": {"max_pixels": 100352}})");
  EXPECT_TRUE(processor.options.concern(Modality::kImage));
  EXPECT_TRUE(processor.options.concern(Modality::kVideo));
  const Read image(R"({"media_io_kwargs": {"image": {"image_mode": "RGB"}}})");
  EXPECT_TRUE(image.options.concern(Modality::kImage));
  EXPECT_FALSE(image.options.concern(Modality::kVideo));
  const Read video(R"({"media_io_kwargs": {"video": {"fps": 0.5}}})");
  EXPECT_FALSE(video.options.concern(Modality::kImage));
  EXPECT_TRUE(video.options.concern(Modality::kVideo));
  EXPECT_EQ(video.options.fps, 0.5);
}

TEST(ReadProcessingOptions, RefuseWhatTheEngineDoesNotEncodeWith) {
  EXPECT_EQ(refused_param(R"({"mm_processor_kwargs": 7})"), "mm_processor_kwargs");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"image": {"image_mode": "L"}}})"),
            "media_io_kwargs.image.image_mode");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"video": {"fps": -1}}})"),
            "media_io_kwargs.video.fps");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"video": {"num_frames": 8}}})"),
            "media_io_kwargs.video.num_frames");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"video": 3}})"), "media_io_kwargs.video");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"audio": {}}})"), "media_io_kwargs.audio");
}

TEST(ReadProcessingOptions, RefuseMembersThatStandBesideTheirPlace) {
  EXPECT_EQ(refused_param(R"({"fps": 1})"), "fps");
  EXPECT_EQ(refused_param(R"({"extra_body": {}})"), "extra_body");
}

TEST(ParseConversation, NamesTheOptionWhereTheRouteTakesNoneOfParts) {
  const auto refused = [](const std::string& members) {
    const SharedJson json =
        parse_json_object(R"({"messages": [{"content": [{"image_url": "u")" + members + "}]}]}");
    return refusal([&] {
             (void)parse_conversation(json->root().at("messages"), "messages",
                                      {.takes_options = false});
           })
        .param();
  };
  EXPECT_EQ(refused(""), "");
  EXPECT_EQ(refused(R"(, "max_pixels": 7)"), "messages[0].content[0].max_pixels");
  EXPECT_EQ(refused(R"(, "mm_processor_kwargs": {})"),
            "messages[0].content[0].mm_processor_kwargs");
}

TEST(ApplyOptions, TakesThoseOfThePartBeforeThoseOfTheRequest) {
  EXPECT_EQ(options_text(item_with("{}")), "");
  const char* body = R"({"mm_processor_kwargs": {
      "max_pixels": 200000, "min_pixels": 70000, "images_kwargs": {"min_pixels": 80000},
      "videos_kwargs": {"size": {"shortest_edge": 4096, "longest_edge": 100000}}}})";
  EXPECT_EQ(options_text(item_with("{}", body)), R"({"max_pixels":200000,"min_pixels":80000})");
  EXPECT_EQ(options_text(item_with(R"({"max_pixels": 90000, "mm_processor_kwargs":
                                       {"max_pixels": 95000, "min_pixels": 66000}})",
                                   body)),
            R"({"max_pixels":90000,"min_pixels":66000})");
  EXPECT_EQ(options_text(item_with("{}", body, Modality::kVideo)),
            R"({"max_pixels":200000,"min_pixels":70000,)"
            R"("size":{"shortest_edge":4096,"longest_edge":100000}})");
}

TEST(ApplyOptions, LeavesTheRateOfAnItemThatHasOne) {
  const Read read(R"({"media_io_kwargs": {"video": {"fps": 0.5}}})");
  MediaReference item{.modality = Modality::kVideo};
  apply_options(read.options, service(), item);
  EXPECT_EQ(item.fps, 0.5);
  item.fps = 4;
  apply_options(read.options, service(), item);
  EXPECT_EQ(item.fps, 4);
}

TEST(ApplyOptions, RefusesWhatTheModelDoesNotTakeAndNamesWhereItStands) {
  const ApiError unknown = refusal([] {
    (void)item_with("{}", R"({"mm_processor_kwargs": {"images_kwargs": {"num_crops": 4}}})");
  });
  EXPECT_EQ(unknown.status(), 400);
  EXPECT_EQ(unknown.param(), "mm_processor_kwargs.images_kwargs.num_crops");
  EXPECT_THAT(unknown.what(), HasSubstr("qwen3_vl take size, min_pixels, max_pixels"));
  EXPECT_EQ(refused_option(R"({"resized_height": 64})"), "messages[0].content[0].resized_height");
  EXPECT_EQ(refused_option(R"({"size": {"shortest_edge": 64, "longest_edge": "big"}})"),
            "messages[0].content[0].size.longest_edge");
  EXPECT_EQ(refused_option(R"({"max_pixels": 7})"), "messages[0].content[0].max_pixels");
  EXPECT_EQ(refused_option(R"({"num_frames": -1})", "{}", Modality::kVideo),
            "messages[0].content[0].num_frames");
  EXPECT_EQ(refused_option(R"({"processor_kwargs": {}})"),
            "messages[0].content[0].processor_kwargs");
}

TEST(ApplyOptions, LetsItemsRepeatWhatTheCheckpointSays) {
  EXPECT_EQ(refused_option(R"({"do_resize": true})"), "");
  EXPECT_EQ(refused_option(R"({"do_resize": false})"), "messages[0].content[0].do_resize");
}

}  // namespace
}  // namespace fovea::serve
