#include "serve/routes/processing_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

/// The options of a body that outlives them.
class Read {
 public:
  explicit Read(const std::string& body) : json_(parse_json_object(body)) {
    Fields fields(json_->root(), "");
    options = read_processing_options(fields, service());
  }
  ProcessingOptions options;

 private:
  SharedJson json_;
};

std::string refused_param(const std::string& body) {
  return refusal([&] { (void)Read(body); }).param();
}

/// "16777216": the bound of the golden model.
std::string max_pixels() {
  const auto& facts = service().model().report.facts;
  const auto pixels =
      std::ranges::find(facts, "image pixels", [](const auto& fact) { return fact.first; });
  return pixels->second.substr(pixels->second.find("..") + 2);
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
  const Read processor(R"({"mm_processor_kwargs": {"max_pixels": )" + max_pixels() + "}}");
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
  EXPECT_EQ(refused_param(R"({"mm_processor_kwargs": {"max_pixels": 7}})"),
            "mm_processor_kwargs.max_pixels");
  EXPECT_EQ(refused_param(R"({"mm_processor_kwargs": {"size": {"shortest_edge": 7}}})"),
            "mm_processor_kwargs.size.shortest_edge");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"image": {"image_mode": "L"}}})"),
            "media_io_kwargs.image.image_mode");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"video": {"fps": -1}}})"),
            "media_io_kwargs.video.fps");
  EXPECT_EQ(refused_param(R"({"media_io_kwargs": {"video": {"num_frames": 8}}})"),
            "media_io_kwargs.video.num_frames");
  const ApiError bound =
      refusal([] { (void)Read(R"({"mm_processor_kwargs": {"max_pixels": 7}})"); });
  EXPECT_THAT(bound.what(), HasSubstr(max_pixels() + " for all requests, got 7"));
}

TEST(ReadProcessingOptions, RefuseMembersThatStandBesideTheirPlace) {
  EXPECT_EQ(refused_param(R"({"fps": 1})"), "fps");
  EXPECT_EQ(refused_param(R"({"extra_body": {}})"), "extra_body");
}

TEST(RefuseProcessingMembers, NamesTheMember) {
  const auto refused = [](const char* part) {
    const SharedJson json = parse_json_object(part);
    Fields fields(json->root(), "messages[0]");
    return refusal([&] { refuse_processing_members(fields); }).param();
  };
  EXPECT_EQ(refused(R"({"type": "text"})"), "");
  EXPECT_EQ(refused(R"({"max_pixels": 7})"), "messages[0].max_pixels");
  EXPECT_EQ(refused(R"({"mm_processor_kwargs": {}})"), "messages[0].mm_processor_kwargs");
}

TEST(CheckProcessorKwargs, TakesTheOptionsOfTheEngine) {
  const std::string same = R"({"max_pixels": )" + max_pixels() + R"(, "min_pixels": null,
                              "images_kwargs": {"size": {"longest_edge": )" +
                           max_pixels() + "}}}";
  const SharedJson json = parse_json_object(same);
  EXPECT_NO_THROW(check_processor_kwargs(json->root(), "x", service()));
  const SharedJson other = parse_json_object(R"({"images_kwargs": {"crop": true}})");
  EXPECT_EQ(refusal([&] { check_processor_kwargs(other->root(), "x", service()); }).param(),
            "x.images_kwargs.crop");
}

}  // namespace
}  // namespace fovea::serve
