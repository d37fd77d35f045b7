#include "serve/routes/fovea/encode_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Request request_of(const std::string& type, const std::string& body,
                   const std::string& query = "") {
  Request request;
  request.query = query;
  request.headers.push_back({"Content-Type", type});
  request.body = std::make_shared<const BodyBytes>(body);
  return request;
}

EncodeRequest read_json(const std::string& body, const EncodeRequestRules& rules = {}) {
  return read_encode_request(request_of("application/json; charset=utf-8", body), rules);
}

EncodeRequest read_bytes(const std::string& query, const std::string& body = "\x89PNG",
                         const std::string& type = "application/octet-stream") {
  return read_encode_request(request_of(type, body, query), {});
}

template <typename Call>
ApiError refusal_of(Call&& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

/// A body with one image and further members.
std::string with_image(const std::string& members) {
  return R"({"items":[{"type":"image","image":"data:,"}],)" + members + "}";
}

ApiError json_refusal(const std::string& body) {
  return refusal_of([&] { (void)read_json(body); });
}

TEST(ReadEncodeRequest, ReadsItemsOfJson) {
  const EncodeRequest request = read_json(R"({"model":"m","items":[
      {"type":"image","image":"data:image/png;base64,AA==","id":"x","uuid":"u"},
      {"type":"video","video":"https://example.org/a.mp4","fps":4},
      {"frames":["data:a","data:b"]}]})");
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.items.size(), 3U);
  EXPECT_EQ(request.items[0].media.url, "data:image/png;base64,AA==");
  EXPECT_EQ(request.items[0].media.param, "items[0].image");
  EXPECT_EQ(request.items[0].id, "x");
  EXPECT_EQ(request.items[0].uuid, "u");
  EXPECT_EQ(request.items[1].media.modality, Modality::kVideo);
  EXPECT_EQ(request.items[1].media.fps, 4);
  EXPECT_EQ(request.items[1].media.param, "items[1].video");
  EXPECT_THAT(request.items[2].media.frames, testing::ElementsAre("data:a", "data:b"));
  EXPECT_EQ(request.items[2].media.param, "items[2].frames");
  EXPECT_EQ(request.items[2].media.fps, std::nullopt);
}

TEST(ReadEncodeRequest, TakesTheMediaOfMessages) {
  const EncodeRequest request = read_json(R"({"messages":[{"role":"user","content":[
      {"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"data:a"},"uuid":"u"},
      {"type":"video_url","video_url":{"url":"data:b"}}]}]})");
  ASSERT_EQ(request.items.size(), 2U);
  EXPECT_EQ(request.items[0].media.url, "data:a");
  EXPECT_EQ(request.items[0].uuid, "u");
  EXPECT_EQ(request.items[1].media.modality, Modality::kVideo);
  EXPECT_THAT(request.items[1].media.param, HasSubstr("messages[0].content[2]"));
}

TEST(ReadEncodeRequest, ReadsAllOptions) {
  const EncodeRequest request = read_json(with_image(R"("processor_kwargs":{"min_pixels":4},
      "output":{"format":"raw","dtype":"fp8_e4m3","endianness":"big","pooling":"mean",
                "normalize":true,"deepstack":"main","naming":"hf","include":["timings"]},
      "cache":"bypass","priority":3,"timeout_ms":1500,"request_id":"r")"));
  EXPECT_EQ(request.output.format, ReplyFormat::kRaw);
  EXPECT_FALSE(request.output.dtype_is_auto);
  EXPECT_EQ(request.output.rows.type, ElementType::kFp8E4M3);
  EXPECT_EQ(request.output.rows.order, ByteOrder::kBig);
  EXPECT_EQ(request.output.rows.pooling, Pooling::kMean);
  EXPECT_TRUE(request.output.rows.normalize);
  EXPECT_EQ(request.output.rows.deepstack, Deepstack::kMain);
  EXPECT_EQ(request.output.naming, TensorNaming::kHf);
  EXPECT_TRUE(request.output.timings);
  EXPECT_FALSE(request.output.grid);
  EXPECT_FALSE(request.use_cache);
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(request.request_id, "r");
  ASSERT_EQ(request.items[0].media.options.size(), 1U);
  EXPECT_EQ(request.items[0].media.options.at("min_pixels").param, "processor_kwargs.min_pixels");
}

TEST(ReadEncodeRequest, HasDefaults) {
  const EncodeRequest request = read_json(with_image(R"("model":null)"));
  EXPECT_EQ(request.output.format, ReplyFormat::kJson);
  EXPECT_TRUE(request.output.dtype_is_auto);
  EXPECT_TRUE(request.output.grid);
  EXPECT_TRUE(request.use_cache);
  EXPECT_EQ(request.timeout, std::nullopt);
  EXPECT_THAT(request.items[0].media.options, IsEmpty());
}

TEST(ReadEncodeRequest, GivesSafetensorsToClientsThatAcceptThem) {
  Request request = request_of("application/json", with_image(R"("model":null)"));
  request.headers.push_back({"accept", "application/vnd.safetensors, */*"});
  EXPECT_EQ(read_encode_request(request, {}).output.format, ReplyFormat::kSafetensors);
  request.body = request_of("", with_image(R"("output":{"format":"torch"})")).body;
  EXPECT_EQ(read_encode_request(request, {}).output.format, ReplyFormat::kTorch);
}

TEST(ReadEncodeRequest, NamesWhatIsWrong) {
  struct Case {
    std::string body;
    const char* code;
    const char* param;
    const char* message;
  };
  const std::vector<Case> cases{
      {"{}", "missing_field", "items", "expected an array"},
      {R"({"itms":[]})", "unknown_field", "itms", "did you mean items?"},
      {R"({"items":[{"type":"image","img":"a"}]})", "unknown_field", "items[0].img",
       "unknown field"},
      {R"({"items":[]})", "invalid_value", "items", "expected an array of items"},
      {R"({"items":{}})", "invalid_value", "items", "expected an array of items"},
      {R"({"items":[1]})", "invalid_value", "items[0]", "expected an object"},
      {R"({"items":[{"type":"sound"}]})", "invalid_value", "items[0].type", "image, video"},
      {R"({"items":[{"type":"image"}]})", "missing_field", "items[0].image", "URL, or base64"},
      {R"({"items":[{"type":"video"}]})", "missing_field", "items[0].video", "a URL or base64"},
      {R"({"items":[{"image":"a","imgae":1}]})", "unknown_field", "items[0].imgae",
       "did you mean image?"},
      {R"({"items":[{"image":"a","fps":1}]})", "unknown_field", "items[0].fps", "unknown field"},
      {R"({"items":[{"video":"a","fps":0}]})", "invalid_value", "items[0].fps", "above 0, got 0"},
      {R"({"items":[{"video":"a","frames":["b"]}]})", "invalid_value", "items[0].frames",
       "give one of them"},
      {R"({"items":[{"frames":[]}]})", "invalid_value", "items[0].frames", "a list"},
      {R"({"items":[{"frames":[1]}]})", "invalid_value", "items[0].frames[0]",
       "expected text, got 1"},
      {R"({"items":[{"video":"a","num_frames":3}]})", "invalid_value", "items[0].num_frames",
       "fps or processor_kwargs say"},
      {R"({"items":[{"width":3,"height":4}]})", "unknown_field", "items[0].width", "unknown field"},
      {R"({"items":[{"image":"a","processor_kwargs":1}]})", "invalid_value",
       "items[0].processor_kwargs", "expected an object"},
      {with_image(R"("cache":"refresh")"), "invalid_value", "cache", "use, bypass"},
      {with_image(R"("timeout_ms":0)"), "invalid_value", "timeout_ms", "1 or more"},
      {with_image(R"("modle":"m")"), "unknown_field", "modle", "did you mean model?"},
      {with_image(R"("output":[])"), "invalid_value", "output", "an object"},
      {with_image(R"("output":{"format":"pickle"})"), "invalid_value", "output.format",
       "json, base64, torch, npy, safetensors, raw, got \"pickle\""},
      {with_image(R"("output":{"dtype":"int8"})"), "unsupported_dtype", "output.dtype", "float32"},
      {with_image(R"("output":{"include":"grid"})"), "invalid_value", "output.include", "a list"},
      {with_image(R"("output":{"include":["gird"]})"), "invalid_value", "output.include[0]",
       "grid, timestamps, part, timings"},
      {with_image(R"("output":{"include":[1]})"), "invalid_value", "output.include[0]", "got 1"},
      {with_image(R"("output":{"pool":1})"), "unknown_field", "output.pool", "unknown field"},
      {"[]", "invalid_json", "", "JSON object"},
      {with_image(R"("messages":[])"), "invalid_value", "messages", "give one of them"},
      {R"({"messages":[{"role":"user","content":"a"}]})", "invalid_value", "messages",
       "got text alone"},
      {R"({"messages":{}})", "invalid_value", "messages", "array"},
  };
  for (const Case& wrong : cases) {
    const ApiError error = json_refusal(wrong.body);
    EXPECT_EQ(error.status(), 400) << wrong.body;
    EXPECT_EQ(error.code(), wrong.code) << wrong.body;
    EXPECT_EQ(error.param(), wrong.param) << wrong.body;
    EXPECT_THAT(error.what(), HasSubstr(wrong.message)) << wrong.body;
  }
}

TEST(ReadEncodeRequest, NamesTheLimitOfItemsAndItsFlag) {
  const std::string two = R"({"items":[{"image":"a"},{"image":"b"}]})";
  EXPECT_EQ(read_json(two, {.max_items = 2}).items.size(), 2U);
  const ApiError error = refusal_of([&] { (void)read_json(two, {.max_items = 1}); });
  EXPECT_EQ(error.code(), "too_many_items");
  EXPECT_THAT(error.what(),
              HasSubstr("has at least 2 items; at most 1 are allowed (--max-items-per-request)"));
}

TEST(ReadEncodeRequest, LimitsTheItemsOfEachModality) {
  const std::string items = R"({"items": [{"image": "a"}, {"video": "b"}, {"image": "c"}]})";
  EXPECT_EQ(read_json(items, {.media = {.images = 2, .videos = 1}}).items.size(), 3U);
  const ApiError error = refusal_of([&] { (void)read_json(items, {.media = {.images = 1}}); });
  EXPECT_EQ(error.code(), "too_many_images");
  EXPECT_EQ(error.param(), "items[2].image");
}

TEST(ReadEncodeRequest, TakesSizesWhereTheyAreEnough) {
  const EncodeRequestRules rules{.takes_sizes = true};
  const EncodeRequest request = read_json(
      R"({"items":[{"type":"image","width":640,"height":480,"id":"x"},{"image":"a"},
                   {"type":"video","width":6,"height":4,"num_frames":8}]})",
      rules);
  ASSERT_EQ(request.items.size(), 3U);
  ASSERT_TRUE(request.items[0].size);
  EXPECT_EQ(request.items[0].size->width_px, 640);
  EXPECT_EQ(request.items[0].size->height_px, 480);
  EXPECT_EQ(request.items[0].media.param, "items[0]");
  EXPECT_FALSE(request.items[1].size);
  EXPECT_EQ(request.items[2].size->num_frames, 8);
  EXPECT_EQ(request.items[2].size->modality, Modality::kVideo);
  const auto refused_param = [&](const std::string& body) {
    return refusal_of([&] { (void)read_json(body, rules); }).param();
  };
  EXPECT_EQ(refused_param(R"({"items":[{"width":0,"height":4}]})"), "items[0].width");
  EXPECT_EQ(refused_param(R"({"items":[{"width":4}]})"), "items[0].height");
}

TEST(ReadEncodeRequest, TakesTheRateOfAnItemBeforeThatOfTheRequest) {
  const EncodeRequest request = read_json(R"({"processor_kwargs":{"fps":1,"max_frames":8},
      "items":[{"video":"a","fps":4},{"video":"b"},
               {"video":"c","fps":4,"processor_kwargs":{"fps":4.0}},{"frames":["d"],"fps":4}]})");
  EXPECT_EQ(request.items[0].media.fps, 4);
  EXPECT_EQ(options_text(request.items[0].media), R"({"max_frames":8})");
  EXPECT_EQ(options_text(request.items[1].media), R"({"fps":1,"max_frames":8})");
  EXPECT_EQ(options_text(request.items[2].media), R"({"fps":4.0,"max_frames":8})");
  EXPECT_EQ(options_text(request.items[3].media), R"({"fps":1,"max_frames":8})")
      << "says when the frames were, not which to take";
}

TEST(ReadEncodeRequest, RefusesARateBesideAnotherOrANumberOfFrames) {
  struct Case {
    const char* body;
    const char* param;
    const char* message;
  };
  const std::vector<Case> cases{
      {R"({"items":[{"video":"a","fps":4,"processor_kwargs":{"fps":1}}]})", "items[0].fps",
       "got 4, and 1 in items[0].processor_kwargs.fps"},
      {R"({"items":[{"video":"a","fps":4,"processor_kwargs":{"videos_kwargs":{"fps":1}}}]})",
       "items[0].fps", "items[0].processor_kwargs.videos_kwargs.fps"},
      {R"({"items":[{"video":"a","fps":4,"processor_kwargs":{"num_frames":8}}]})", "items[0].fps",
       "expected either fps or num_frames, got both"},
      {R"({"items":[{"image":"b"},{"video":"a","fps":4}],"processor_kwargs":{"num_frames":8}})",
       "items[1].fps", "expected either fps or num_frames, got both"},
  };
  for (const Case& wrong : cases) {
    const ApiError error = json_refusal(wrong.body);
    EXPECT_EQ(error.status(), 400) << wrong.body;
    EXPECT_EQ(error.code(), "invalid_value") << wrong.body;
    EXPECT_EQ(error.param(), wrong.param) << wrong.body;
    EXPECT_THAT(error.what(), HasSubstr(wrong.message)) << wrong.body;
  }
}

TEST(ReadEncodeRequest, TakesSizesWithFramesForVideos) {
  const EncodeRequestRules rules{.takes_sizes = true};
  const EncodeRequest request = read_json(
      R"({"items":[{"width":6,"height":4,"num_frames":8},{"width":6,"height":4,"fps":2},
                   {"width":6,"height":4}]})",
      rules);
  ASSERT_EQ(request.items.size(), 3U);
  EXPECT_EQ(request.items[0].size->modality, Modality::kVideo);
  EXPECT_EQ(request.items[0].size->num_frames, 8);
  EXPECT_EQ(request.items[1].size->modality, Modality::kVideo);
  EXPECT_EQ(request.items[1].size->num_frames, 1);
  EXPECT_EQ(request.items[2].size->modality, Modality::kImage);
  const auto refused_param = [&](const std::string& body) {
    return refusal_of([&] { (void)read_json(body, rules); }).param();
  };
  EXPECT_EQ(refused_param(R"({"items":[{"type":"image","width":6,"height":4,"num_frames":8}]})"),
            "items[0].num_frames");
  EXPECT_EQ(refused_param(R"({"items":[{"image":"a","fps":8}]})"), "items[0].fps");
}

TEST(ReadEncodeRequest, RefersToTheBytesOfABody) {
  Request request = request_of("image/png", "\x89PNG", "output.format=npy&id=x&uuid=u");
  const EncodeRequest read = read_encode_request(request, {});
  ASSERT_EQ(read.items.size(), 1U);
  EXPECT_EQ(read.items[0].media.bytes.data(), request.body->data());
  EXPECT_EQ(read.items[0].media.owner, request.body);
  EXPECT_EQ(read.items[0].media.param, "body");
  EXPECT_EQ(read.items[0].id, "x");
  EXPECT_EQ(read.items[0].uuid, "u");
  EXPECT_EQ(read.output.format, ReplyFormat::kNpy);
}

TEST(ReadEncodeRequest, GivesTheOptionsOfAQueryTheirTypes) {
  const EncodeRequest request = read_bytes(
      "output.normalize=true&output.include=grid,timings&timeout_ms=20&fps=0.5&model=7&id=1&"
      "processor_kwargs.max_pixels=4096&processor_kwargs.do_resize=false&"
      "processor_kwargs.videos_kwargs.min_pixels=64",
      "x", "video/mp4");
  EXPECT_TRUE(request.output.rows.normalize);
  EXPECT_TRUE(request.output.grid);
  EXPECT_TRUE(request.output.timings);
  EXPECT_EQ(request.timeout, std::chrono::milliseconds(20));
  EXPECT_EQ(request.items[0].media.fps, 0.5);
  EXPECT_EQ(request.model, "7");
  EXPECT_EQ(request.items[0].id, "1");
  const auto& options = request.items[0].media.options;
  EXPECT_EQ(options.at("max_pixels").json, "4096");
  EXPECT_EQ(options.at("do_resize").json, "false");
  EXPECT_EQ(options.at("min_pixels").json, "64");
}

TEST(ReadEncodeRequest, RefusesTheRateOfAnImage) {
  const ApiError error = refusal_of([] { (void)read_bytes("fps=2"); });
  EXPECT_EQ(error.param(), "fps");
  EXPECT_THAT(error.what(), HasSubstr("got an image"));
}

TEST(ReadEncodeRequest, RefusesTwoRatesOfAQuery) {
  const auto refused = [](const std::string& query) {
    return refusal_of([&] { (void)read_bytes(query, "x", "video/mp4"); });
  };
  EXPECT_THAT(
      refused("fps=2&processor_kwargs.fps=1").what(),
      AllOf(HasSubstr("fps: expected one rate, got 2"), HasSubstr("in processor_kwargs.fps")));
  EXPECT_EQ(refused("fps=2&processor_kwargs.num_frames=4").param(), "fps");
}

TEST(ReadEncodeRequest, RefusesOptionsOfAQueryThatAreNone) {
  EXPECT_EQ(refusal_of([] { (void)read_bytes("output.normalize=perhaps"); }).param(),
            "output.normalize");
  EXPECT_EQ(refusal_of([] { (void)read_bytes("fps=fast"); }).param(), "fps");
  EXPECT_EQ(refusal_of([] { (void)read_bytes("items=1"); }).code(), "unknown_field");
  EXPECT_EQ(refusal_of([] { (void)read_bytes("output=1"); }).param(), "output");
  EXPECT_EQ(refusal_of([] { (void)read_bytes("", ""); }).param(), "body");
}

TEST(ReadEncodeRequest, RefusesAQueryBesideABodyWithOptions) {
  const ApiError error = refusal_of([] {
    (void)read_encode_request(
        request_of("application/json", with_image(R"("model":"m")"), "output.format=raw"), {});
  });
  EXPECT_EQ(error.code(), "invalid_value");
  EXPECT_EQ(error.param(), "query");
}

TEST(ReadEncodeRequest, NamesTheTypesOfBytesForAQueryBesideNone) {
  Request untyped = request_of("", "\xff\xd8\xff", "output.format=npy");
  untyped.headers.clear();
  for (const Request& request :
       {untyped, request_of("application/x-www-form-urlencoded", "x", "output.format=npy")}) {
    const ApiError error = refusal_of([&] { (void)read_encode_request(request, {}); });
    EXPECT_EQ(error.status(), 415);
    EXPECT_THAT(error.what(), HasSubstr("image/*, video/* or application/octet-stream"));
  }
}

TEST(ReadEncodeRequest, TellsVideosFromImages) {
  const auto modality = [](const std::string& body, const std::string& type) {
    return read_bytes("", body, type).items[0].media.modality;
  };
  EXPECT_EQ(modality("x", "video/mp4"), Modality::kVideo);
  EXPECT_EQ(modality("x", "image/png"), Modality::kImage);
  const std::string any = "application/octet-stream";
  EXPECT_EQ(modality(std::string("\0\0\0\x18", 4) + "ftypisom", any), Modality::kVideo);
  EXPECT_EQ(modality("\x1a\x45\xdf\xa3.", any), Modality::kVideo);
  EXPECT_EQ(modality("RIFF....AVI ....", any), Modality::kVideo);
  EXPECT_EQ(modality("RIFF....WEBP....", any), Modality::kImage);
  for (const char* brand : {"avif", "avis", "heic", "heix", "mif1", "msf1"}) {
    const std::string image = std::string("\0\0\0\x1c", 4) + "ftyp" + brand + "....";
    EXPECT_EQ(modality(image, any), Modality::kImage) << brand;
  }
  EXPECT_EQ(modality(std::string("\0\0\0\x08", 4) + "ftyp", any), Modality::kVideo);
  EXPECT_EQ(modality("abc", any), Modality::kImage);
}

TEST(ReadEncodeRequest, RefusesOtherContentTypes) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "", "image"}) {
    const ApiError error =
        refusal_of([&] { (void)read_encode_request(request_of(type, "{}"), {}); });
    EXPECT_EQ(error.status(), 415) << type;
    EXPECT_EQ(error.code(), "unsupported_content_type") << type;
  }
}

TEST(ReadEncodeRequest, TakesABodyWithoutATypeForJson) {
  Request request = request_of("", with_image(R"("model":"m")"));
  request.headers.clear();
  EXPECT_EQ(read_encode_request(request, {}).items.size(), 1U);
}

std::string part(const std::string& name, const std::string& content,
                 const std::string& type = "") {
  return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n" +
         (type.empty() ? "" : "Content-Type: " + type + "\r\n") + "\r\n" + content + "\r\n";
}

EncodeRequest read_form(const std::string& parts, const EncodeRequestRules& rules = {}) {
  return read_encode_request(request_of("multipart/form-data; boundary=b", parts + "--b--"), rules);
}

TEST(ReadEncodeRequest, ReadsAForm) {
  const EncodeRequest request =
      read_form(part("file", "one", "image/png") + part("file", "two", "video/mp4") +
                part("options", R"({"output":{"format":"raw"},"fps":3})", "application/json"));
  ASSERT_EQ(request.items.size(), 2U);
  EXPECT_EQ(request.items[0].media.bytes.size(), 3U);
  EXPECT_EQ(request.items[0].media.param, "file[0]");
  EXPECT_EQ(request.items[1].media.modality, Modality::kVideo);
  EXPECT_EQ(request.items[1].media.fps, 3);
  EXPECT_EQ(request.output.format, ReplyFormat::kRaw);
}

TEST(ReadEncodeRequest, RefusesTwoRatesOfAForm) {
  const std::string options =
      part("options", R"({"fps":3,"processor_kwargs":{"fps":1}})", "application/json");
  EXPECT_EQ(read_form(part("file", "one", "image/png") + options).items.size(), 1U)
      << "of no concern to images";
  const ApiError error =
      refusal_of([&] { (void)read_form(part("file", "two", "video/mp4") + options); });
  EXPECT_EQ(error.param(), "fps");
  EXPECT_THAT(error.what(), HasSubstr("processor_kwargs.fps"));
}

TEST(ReadEncodeRequest, RefusesFormsThatAreNone) {
  const auto form_refusal = [](const std::string& parts, const EncodeRequestRules& rules = {}) {
    return refusal_of([&] { (void)read_form(parts, rules); });
  };
  const std::string file = part("file", "one");
  EXPECT_EQ(form_refusal("").code(), "missing_field");
  EXPECT_EQ(form_refusal(file + part("other", "x")).code(), "unknown_field");
  EXPECT_EQ(form_refusal(file + part("options", "{}") + part("options", "{}")).param(), "options");
  EXPECT_EQ(form_refusal(file + part("options", "{")).code(), "invalid_json");
  EXPECT_EQ(form_refusal(file + part("options", R"({"items":[]})")).code(), "unknown_field");
  EXPECT_EQ(form_refusal(part("file", "one", "text/plain")).code(), "unsupported_content_type");
  EXPECT_EQ(form_refusal(part("file", "")).param(), "file[0]");
  EXPECT_EQ(form_refusal(file + file, {.max_items = 1}).code(), "too_many_items");
  EXPECT_EQ(refusal_of([&] {
              (void)read_encode_request(request_of("multipart/form-data", file), {});
            }).code(),
            "invalid_value");
}

}  // namespace
}  // namespace fovea::serve
