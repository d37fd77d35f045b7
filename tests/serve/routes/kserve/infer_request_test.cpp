#include "serve/routes/kserve/infer_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMaxItems = 1000;

SharedBytes bytes(const std::string& text) { return std::make_shared<const BodyBytes>(text); }

/// A body of JSON and what follows it.
InferRequest parse_infer(const std::string& json, const std::string& tail = {}) {
  return parse_infer_request(bytes(json + tail), json.size(), kMaxItems);
}

ApiError infer_refusal(const std::string& json, const std::string& tail = {}) {
  try {
    (void)parse_infer(json, tail);
  } catch (const ApiError& error) {
    return error;
  }
  return {0, "nothing was refused", ""};
}

/// A request with one input of this shape and, behind its type, other members.
std::string with_input(const std::string& shape, const std::string& rest) {
  return R"({"inputs": [{"name": "media", "datatype": "BYTES", "shape": )" + shape + rest + "}]}";
}

std::string binary_input(const std::string& shape, std::size_t size) {
  return with_input(shape, R"(, "parameters": {"binary_data_size": )" + std::to_string(size) + "}");
}

/// A request with these members beside a good input.
std::string with(const std::string& members) {
  return "{" + members + "," + with_input("[1]", R"(, "data": ["QUI="])").substr(1);
}

const std::string kTwoElements("\2\0\0\0ab\1\0\0\0c", 11);

TEST(InferRequest, SplitsBinaryElements) {
  const InferRequest request = parse_infer(binary_input("[2]", 11), kTwoElements);
  ASSERT_EQ(request.media.size(), 2U);
  const auto text = [](const MediaReference& media) {
    return std::string(media.bytes.begin(), media.bytes.end());
  };
  EXPECT_EQ(text(request.media[0]), "ab");
  EXPECT_EQ(text(request.media[1]), "c");
  EXPECT_EQ(request.media[1].param, "inputs[0].data[1]");
  EXPECT_NE(request.media[1].owner, nullptr);
  EXPECT_EQ(parse_infer(binary_input("[2, 1]", 11), kTwoElements).media.size(), 2U);
}

TEST(InferRequest, TakesTextsOfJson) {
  const SharedBytes body = bytes(with_input("[2]", R"(, "data": ["QUI=", "http://a"])"));
  const InferRequest request = parse_infer_request(body, std::nullopt, kMaxItems);
  ASSERT_EQ(request.media.size(), 2U);
  EXPECT_EQ(request.media[0].url, "QUI=");
  EXPECT_EQ(request.media[1].url, "http://a");
}

TEST(InferRequest, TakesABodyThatIsOneItem) {
  const InferRequest request = parse_infer_request(bytes("abc"), 0, kMaxItems);
  ASSERT_EQ(request.media.size(), 1U);
  EXPECT_EQ(request.media[0].bytes.size(), 3U);
  EXPECT_TRUE(request.binary);
}

TEST(InferRequest, RefusesLengthsThatAreNotExact) {
  EXPECT_THAT(infer_refusal(binary_input("[2]", 10), kTwoElements).what(), HasSubstr("11 follow"));
  EXPECT_THAT(infer_refusal(binary_input("[2]", 11), kTwoElements.substr(0, 10)).what(),
              HasSubstr("10 follow"));
  EXPECT_THAT(infer_refusal(binary_input("[2]", 10), kTwoElements.substr(0, 10)).what(),
              HasSubstr("0 are left"));
  EXPECT_THAT(infer_refusal(binary_input("[2]", 8), kTwoElements.substr(0, 8)).what(),
              HasSubstr("within a length"));
  EXPECT_THAT(infer_refusal(binary_input("[1]", 4), std::string(4, '\xff')).what(),
              HasSubstr("4294967295"));
  EXPECT_THAT(infer_refusal(binary_input("[3]", 11), kTwoElements).what(), HasSubstr("3 elements"));
  EXPECT_THAT(infer_refusal(with_input("[1]", R"(, "data": ["QUI="])"), "x").what(),
              HasSubstr("1 follow"));
  EXPECT_EQ(infer_refusal(binary_input("[1]", 0)).param(), "inputs[0].shape");
  EXPECT_EQ(infer_refusal(binary_input("[0]", 0)).param(), "inputs[0].data");
  EXPECT_EQ(
      infer_refusal(binary_input("[1]", 0).replace(binary_input("[1]", 0).rfind('0'), 1, "-1"))
          .param(),
      "inputs[0].parameters.binary_data_size");
  const SharedBytes body = bytes("{}");
  EXPECT_THROW((void)parse_infer_request(body, 3, kMaxItems), ApiError);
}

/// 4 MB that say of a million elements that they are empty.
TEST(InferRequest, CountsElementsBeforeItMakesThem) {
  const std::string zeros(4'000'000, '\0');
  const ApiError more = infer_refusal(binary_input("[1]", zeros.size()), zeros);
  EXPECT_EQ(more.param(), "inputs[0].shape");
  EXPECT_THAT(more.what(), HasSubstr("the shape has 1 elements, the data more"));
  EXPECT_EQ(infer_refusal(binary_input("[1000000]", zeros.size()), zeros).code(), "too_many_items");
  EXPECT_EQ(infer_refusal(binary_input("[1001]", 0)).code(), "too_many_items");
  EXPECT_EQ(infer_refusal(with_input("[1001]", R"(, "data": [])")).code(), "too_many_items");
  EXPECT_THAT(infer_refusal(with_input("[2]", R"(, "data": ["a", "b", 7])")).what(),
              HasSubstr("the shape has 2 elements, the data 3"));
}

TEST(InferRequest, BoundsTheOutputsOfARequest) {
  std::string outputs = R"({"name": "grid_thw"})";
  for (int i = 0; i < 16; ++i) outputs += R"(, {"name": "grid_thw"})";
  EXPECT_EQ(infer_refusal(with("\"outputs\": [" + outputs + "]")).param(), "outputs");
}

TEST(InferRequest, RefusesOtherInputs) {
  EXPECT_EQ(infer_refusal("{}").param(), "inputs");
  EXPECT_EQ(infer_refusal(R"({"inputs": []})").param(), "inputs");
  EXPECT_EQ(infer_refusal(R"({"inputs": [{}, {}]})").param(), "inputs");
  EXPECT_EQ(infer_refusal(R"({"inputs": [{"name": "pixel_values"}]})").param(), "inputs[0].name");
  EXPECT_EQ(infer_refusal(R"({"inputs": [{"name": "media", "datatype": "FP32"}]})").param(),
            "inputs[0].datatype");
  for (const char* shape : {"[]", "7", "[-1]", "[1.5]", "[4000000000]", "[1048576, 1048576]"}) {
    EXPECT_EQ(infer_refusal(with_input(shape, R"(, "data": [])")).param(), "inputs[0].shape")
        << shape;
  }
  EXPECT_EQ(infer_refusal(with_input("[1]", "")).param(), "inputs[0].data");
  EXPECT_EQ(infer_refusal(with_input("[1]", R"(, "data": [7])")).param(), "inputs[0].data[0]");
}

TEST(InferRequest, ReadsParameters) {
  const InferRequest request = parse_infer(with(
      R"("id": "7", "parameters": {"modality": "video", "dtype": "float16", "pooling": "mean",
         "priority": 3, "timeout": 1500, "binary_data_output": true})"));
  EXPECT_EQ(request.id, "7");
  EXPECT_EQ(request.media[0].modality, Modality::kVideo);
  EXPECT_EQ(request.type, ElementType::kFloat16);
  EXPECT_EQ(request.pooling, Pooling::kMean);
  EXPECT_EQ(request.timeout, std::chrono::microseconds(1500));
  EXPECT_TRUE(request.binary);
  EXPECT_FALSE(
      parse_infer(with(R"("parameters": {"dtype": "auto", "timeout": 0})")).type.has_value());
}

TEST(InferRequest, TakesATimeoutThatNoClockReaches) {
  const InferRequest request =
      parse_infer(with(R"("parameters": {"timeout": 9223372036854775807})"));
  const Clock::time_point now = Clock::now();
  EXPECT_GT(now + *request.timeout, now) << "it does not overflow";
}

TEST(InferRequest, RefusesParametersItCannotFollow) {
  EXPECT_EQ(infer_refusal(with(R"("parameters": {"dtype": "fp8_e4m3"})")).code(),
            "unsupported_dtype");
  EXPECT_EQ(infer_refusal(with(R"("parameters": {"dtype": "float64"})")).code(),
            "unsupported_dtype");
  EXPECT_EQ(infer_refusal(with(R"("parameters": {"modality": "audio"})")).param(),
            "parameters.modality");
  EXPECT_EQ(infer_refusal(with(R"("parameters": {"timeout": -1})")).param(), "parameters.timeout");
  EXPECT_EQ(infer_refusal(with(R"("parameters": 7)")).param(), "parameters");
}

TEST(InferRequest, ReadsOutputs) {
  const InferRequest request = parse_infer(with(R"("parameters": {"binary_data_output": true},
      "outputs": [{"name": "embeddings", "parameters": {"binary_data": false}},
                  {"name": "grid_thw"}])"));
  ASSERT_EQ(request.outputs.size(), 2U);
  EXPECT_FALSE(request.outputs[0].binary);
  EXPECT_TRUE(request.outputs[1].binary);
  EXPECT_EQ(infer_refusal(with(R"("outputs": [{"name": "logits"}])")).param(), "outputs[0].name");
  EXPECT_EQ(infer_refusal(with(R"("outputs": [{}])")).param(), "outputs[0].name");
  EXPECT_EQ(infer_refusal(with(R"("outputs": 7)")).param(), "outputs");
}

TEST(InferenceHeaderLength, IsANumber) {
  const auto length = [](const std::string& text) {
    return inference_header_length({{"inference-header-content-length", text}});
  };
  EXPECT_EQ(length("12"), 12U);
  EXPECT_EQ(inference_header_length({}), std::nullopt);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "99999999999999999999"}) {
    EXPECT_THROW((void)length(text), ApiError) << text;
  }
}

}  // namespace
}  // namespace fovea::serve
