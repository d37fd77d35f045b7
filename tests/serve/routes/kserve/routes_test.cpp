#include "serve/routes/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "serve/routes/route_caller.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

using test::Answer;
using ::testing::HasSubstr;

test::Served& kserve_service() {
  static test::Served served;
  static const bool kReady = [] {
    const CallLimits limits{.max_items = 4, .max_json_values = 1'000'000};
    served.routes.add(kserve_routes({served.service, served.media, limits}));
    return true;
  }();
  EXPECT_TRUE(kReady);
  return served;
}

Answer get(const std::string& path) { return kserve_service().routes.get(path); }

/// One element of a binary tensor.
std::string element(const std::vector<std::uint8_t>& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string text(4, '\0');
  std::memcpy(text.data(), &size, 4);
  return text + std::string(bytes.begin(), bytes.end());
}

Json media_input(std::size_t items) {
  Json input;
  input["name"] = "media";
  input["datatype"] = "BYTES";
  input["shape"] = {items};
  return input;
}

/// An infer request as Triton's client sends it. @param more members of the request.
Answer infer_binary(const std::vector<std::vector<std::uint8_t>>& images, const Json& more) {
  std::string tail;
  for (const auto& image : images) tail += element(image);
  Json body = more;
  Json input = media_input(images.size());
  input["parameters"]["binary_data_size"] = tail.size();
  body["inputs"] = Json::array({input});
  const std::string json = fovea::test::to_text(body);
  return kserve_service().routes.call(
      "POST", "/v2/models/m/infer", json + tail,
      {{"Inference-Header-Content-Length", std::to_string(json.size())}});
}

Json all_binary() {
  return Json::parse(R"({"id": "7", "parameters": {"binary_data_output": true}})");
}

/// The JSON of a reply, and the tensors behind it by name.
struct Infer {
  explicit Infer(const Answer& answer) {
    std::size_t at = std::stoul(answer.header("Inference-Header-Content-Length"));
    json = Json::parse(answer.body.substr(0, at));
    for (const Json& output : json["outputs"]) {
      if (!output.contains("parameters")) continue;
      const auto size = output["parameters"]["binary_data_size"].get<std::size_t>();
      tensors[output["name"]] = answer.body.substr(at, size);
      at += size;
    }
    EXPECT_EQ(at, answer.body.size());
  }
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name) const {
    const std::string& bytes = tensors.at(name);
    std::vector<std::int64_t> values(bytes.size() / 8);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  Json json;
  std::map<std::string, std::string> tensors;
};

TEST(KserveRoutes, DescribeTheServerAndTheModel) {
  EXPECT_EQ(get("/v2").json()["name"], "fovea");
  EXPECT_THAT(get("/v2").json()["extensions"], testing::Contains("binary_tensor_data"));
  EXPECT_EQ(get("/v2/health/live").json()["live"], true);
  EXPECT_EQ(get("/v2/health/ready").json()["ready"], true);
  EXPECT_EQ(get("/v2/models/m/ready").json()["ready"], true);
  const Json model = get("/v2/models/m/versions/1").json();
  EXPECT_EQ(model, get("/v2/models/m").json());
  EXPECT_EQ(model["versions"], Json::array({"1"}));
  EXPECT_EQ(model["inputs"][0]["datatype"], "BYTES");
  EXPECT_EQ(model["outputs"][0]["datatype"], "BF16");
  EXPECT_EQ(model["outputs"][0]["shape"],
            (Json{-1, kserve_service().service.model().report.width}));
  EXPECT_EQ(model["outputs"][2]["name"], "grid_thw");
}

TEST(KserveRoutes, KnowOneModelOfOneVersion) {
  EXPECT_EQ(get("/v2/models/another").status, 404);
  EXPECT_THAT(get("/v2/models/m/versions/2").json()["error"], HasSubstr("model_not_found: "));
}

TEST(KserveRoutes, SayThatAModelIsNotThere) {
  test::Served broken(test::small_service("/nowhere"));
  broken.routes.add(kserve_routes({broken.service, broken.media}));
  EXPECT_EQ(broken.routes.get("/v2/health/live").status, 503);
  EXPECT_EQ(broken.routes.get("/v2/health/ready").status, 503);
  EXPECT_EQ(broken.routes.get("/v2/models/m/ready").status, 503);
  EXPECT_EQ(broken.routes.get("/v2/models/m").status, 503);
}

TEST(KserveRoutes, GiveTheRowsOfTheEngineBitByBit) {
  const Answer answer = infer_binary({test::photo(), test::shapes()}, all_binary());
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.content_type, "application/octet-stream");
  const Infer infer(answer);
  EXPECT_EQ(infer.json["id"], "7");
  EXPECT_EQ(infer.json["model_name"], "m");
  EXPECT_EQ(infer.json["model_version"], "1");
  const Embedding first = test::encoded(test::photo(), RowDType::kBFloat16);
  const Embedding second = test::encoded(test::shapes(), RowDType::kBFloat16);
  EXPECT_EQ(infer.json["outputs"][0]["datatype"], "BF16");
  EXPECT_EQ(infer.json["outputs"][0]["shape"], (Json{first.rows + second.rows, first.width}));
  const std::string& rows = infer.tensors.at("embeddings");
  ASSERT_EQ(rows.size(), first.data.size() + second.data.size());
  EXPECT_EQ(std::memcmp(rows.data(), first.data.data(), first.data.size()), 0);
  EXPECT_EQ(std::memcmp(rows.data() + first.data.size(), second.data.data(), second.data.size()),
            0);
  EXPECT_EQ(infer.integers("num_embeds"), (std::vector<std::int64_t>{first.rows, second.rows}));
  std::vector<std::int64_t> grids(first.grid_thw->begin(), first.grid_thw->end());
  grids.insert(grids.end(), second.grid_thw->begin(), second.grid_thw->end());
  EXPECT_EQ(infer.integers("grid_thw"), grids);
}

TEST(KserveRoutes, GiveNumbersAsJson) {
  Json body = Json::parse(R"({"parameters": {"dtype": "float32"}})");
  Json input = media_input(2);
  input["data"] = {test::base64_of(test::shapes()), test::data_url(test::shapes())};
  body["inputs"] = Json::array({input});
  const Answer answer = kserve_service().routes.post("/v2/models/m/infer", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Inference-Header-Content-Length"), "");
  const Embedding item = test::encoded(test::shapes(), RowDType::kFloat32);
  const Json outputs = answer.json()["outputs"];
  EXPECT_EQ(outputs[0]["datatype"], "FP32");
  EXPECT_EQ(outputs[0]["shape"], (Json{2 * item.rows, item.width}));
  const auto count = static_cast<std::size_t>(item.rows * item.width);
  ASSERT_EQ(outputs[0]["data"].size(), 2 * count);
  EXPECT_EQ(outputs[0]["data"][0].get<float>(), item.at(0, 0));
  EXPECT_EQ(outputs[0]["data"][count - 1].get<float>(), item.at(item.rows - 1, item.width - 1));
  EXPECT_EQ(outputs[0]["data"][count].get<float>(), item.at(0, 0));
  EXPECT_EQ(outputs[1]["data"], (Json{item.rows, item.rows}));
  EXPECT_EQ(outputs[2]["shape"], (Json{2, 3}));
}

TEST(KserveRoutes, GiveTheOutputsThatAreAskedFor) {
  const Json more = Json::parse(R"({"outputs": [
      {"name": "grid_thw", "parameters": {"binary_data": false}},
      {"name": "embeddings", "parameters": {"binary_data": true}}],
      "parameters": {"pooling": "mean", "dtype": "float16"}})");
  const Infer infer(infer_binary({test::shapes()}, more));
  ASSERT_EQ(infer.json["outputs"].size(), 2U);
  EXPECT_EQ(infer.json["outputs"][0]["data"].size(), 3U);
  EXPECT_EQ(infer.json["outputs"][1]["datatype"], "FP16");
  EXPECT_EQ(infer.json["outputs"][1]["shape"][0], 1);
}

TEST(KserveRoutes, TakeABodyThatIsAnImage) {
  const std::vector<std::uint8_t> bytes = test::shapes();
  const Answer answer = kserve_service().routes.call("POST", "/v2/models/m/versions/1/infer",
                                                     {bytes.begin(), bytes.end()},
                                                     {{"Inference-Header-Content-Length", "0"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Infer(answer).integers("num_embeds").size(), 1U);
}

TEST(KserveRoutes, RefuseWhatTheyCannotDo) {
  const auto error = [](const Answer& answer) {
    EXPECT_EQ(answer.status, 400);
    return answer.json()["error"].get<std::string>();
  };
  EXPECT_THAT(error(infer_binary({test::shapes()}, Json::object())),
              HasSubstr("unsupported_dtype: embeddings: JSON has no BF16"));
  const std::vector<std::vector<std::uint8_t>> five(5, test::shapes());
  EXPECT_THAT(error(infer_binary(five, all_binary())), HasSubstr("too_many_items"));
  EXPECT_THAT(error(kserve_service().routes.call("POST", "/v2/models/m/infer", "{}",
                                                 {{"Inference-Header-Content-Length", "x"}})),
              HasSubstr("Inference-Header-Content-Length"));
  const Answer broken = infer_binary({{1, 2, 3}}, all_binary());
  EXPECT_EQ(broken.status, 422);
  EXPECT_THAT(broken.body, HasSubstr("decode_failed"));
}

TEST(KserveRoutes, RefuseJsonOfTooManyNumbers) {
  test::Served small;
  small.routes.add(
      kserve_routes({small.service, small.media, {.max_items = 1, .max_json_values = 5}}));
  Json body = Json::parse(R"({"parameters": {"dtype": "float32"}})");
  Json input = media_input(1);
  input["data"] = {test::base64_of(test::shapes())};
  body["inputs"] = Json::array({input});
  EXPECT_THAT(small.routes.post("/v2/models/m/infer", body).body,
              HasSubstr("response_too_large_for_json"));
}

TEST(KserveRoutes, KeepTheTimeThatTheClientGives) {
  Json more = all_binary();
  more["parameters"]["timeout"] = 1;  // microsecond
  const Answer answer = infer_binary({test::shapes()}, more);
  EXPECT_EQ(answer.status, 504) << answer.body;
}

TEST(KserveRoutes, CountWhatTheModelHasDone) {
  (void)infer_binary({test::shapes()}, all_binary());
  Json stats;
  do {  // a batch is counted when it has ended, which is after its last reply
    stats = get("/v2/models/m/stats").json()["model_stats"][0];
  } while (stats["execution_count"] == 0);
  EXPECT_EQ(stats["name"], "m");
  EXPECT_GE(stats["inference_stats"]["success"]["count"].get<int>(), 1);
  EXPECT_GE(stats["execution_count"].get<int>(), 1);
}

TEST(KserveRoutes, HaveNoGridsWhereTheModelHasNone) {
  test::Served internvl(test::small_service(FOVEA_TEST_GOLDEN_DIR "/internvl"));
  internvl.routes.add(kserve_routes({internvl.service, internvl.media}));
  EXPECT_EQ(internvl.routes.get("/v2/models/m").json()["outputs"].size(), 2U);
  Json body = Json::parse(R"({"parameters": {"dtype": "float32"}})");
  Json input = media_input(1);
  input["data"] = {test::base64_of(test::shapes())};
  body["inputs"] = Json::array({input});
  EXPECT_EQ(internvl.routes.post("/v2/models/m/infer", body).json()["outputs"].size(), 2U);
  body["outputs"] = Json::parse(R"([{"name": "grid_thw"}])");
  EXPECT_EQ(internvl.routes.post("/v2/models/m/infer", body).status, 400);
}

}  // namespace
}  // namespace fovea::serve
