// fovea inspect on the configuration of every published size: tensors, parameters, bytes, rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "integration/run_program.h"
#include "support/json.h"

namespace fovea::test {
namespace {

/// What `--vectors` changes.
struct PublishedVectors {
  std::int64_t parameters = 0;  ///< 0: the family makes no vectors
  std::int64_t width = 0;
};

struct Published {
  const char* name;  ///< folder below tests/configs
  std::int64_t tensors;
  std::int64_t parameters;
  std::int64_t width;  ///< columns of a row, deepstack levels included
  std::int64_t rows;   ///< of an image of 1920 x 1080
  PublishedVectors vectors = {};
};

/// Tensors and parameters are those of the modules of transformers 5.17, made on the meta device
/// from these files; the shapes of all tensors were compared, too. The authors' format of InternVL
/// stores q, k and v as one, Qwen2.5-Omni as three. The numbers of EXAONE and GLM-OCR are sums over
/// the tensors of their modules in transformers 5.24; from Kimi-VL on, but for Llama 4, they are
/// sums over the tensors that docs/reference lists, of Idefics3, SmolVLM and LLaVA those of the
/// modules of transformers 5.24 that run; DeepSeek-OCR's (without the patch embedding of
/// CLIP, which nothing reads) is also the size of its file. With vectors the parameters of encoders
/// for retrieval are those of the modules of transformers 5.24.
constexpr Published kPublished[] = {
    {"Qwen2-VL-2B-Instruct", 391, 665271296, 1536, 2691},
    {"Qwen2-VL-7B-Instruct", 391, 675759104, 3584, 2691},
    {"Qwen2-VL-72B-Instruct", 391, 699356672, 8192, 2691},
    {"Qwen2.5-VL-3B-Instruct", 390, 668684288, 2048, 2691},
    {"Qwen2.5-VL-7B-Instruct", 390, 676550144, 3584, 2691},
    {"Qwen2.5-VL-32B-Instruct", 390, 688841984, 5120, 2691},
    {"Qwen2.5-VL-72B-Instruct", 390, 704573696, 8192, 2691},
    {"Qwen2.5-Omni-3B", 390, 668684288, 2048, 2691},
    {"Qwen2.5-Omni-7B", 390, 676550144, 3584, 2691},
    {"EXAONE-4.5-33B", 342, 1286482944, 5120, 1222},
    {"Qwen3-VL-2B-Instruct", 315, 406957056, 8192, 2040},
    {"Qwen3-VL-4B-Instruct", 315, 415347712, 10240, 2040},
    {"Qwen3-VL-30B-A3B-Instruct", 351, 538631408, 8192, 2040},
    {"Qwen3-VL-235B-A22B-Instruct", 351, 576388336, 16384, 2040},
    {"Qwen3-VL-8B-Instruct", 351, 576388336, 16384, 2040},
    {"Qwen3-VL-32B-Instruct", 351, 595266800, 20480, 2040},
    {"Qwen3-Omni-30B-A3B-Instruct", 351, 538631408, 8192, 2040},
    {"Qwen3.5-0.8B", 153, 100592896, 1024, 2040},
    {"Qwen3.5-2B", 297, 331416576, 2048, 2040},
    {"Qwen3.5-4B", 297, 333514240, 2560, 2040},
    {"Qwen3.5-35B-A3B", 333, 446571248, 2048, 2040},
    {"Qwen3.5-9B", 333, 456010480, 4096, 2040},
    {"Qwen3.5-27B", 333, 460730096, 5120, 2040},
    {"GLM-OCR", 347, 434120192, 1536, 2691},
    {"GLM-4.5V", 181, 858681856, 4096, 2691},
    {"GLM-4.1V-9B-Thinking", 181, 892498432, 4096, 2691},
    {"GLM-4.6V-Flash", 181, 892498432, 4096, 2691},
    {"InternVL2-1B", 346, 308495104, 896, 2304},
    {"InternVL2-2B", 346, 316607488, 2048, 2304},
    {"InternVL2-4B", 346, 326046720, 3072, 2304},
    {"InternVL2-8B", 346, 337583104, 4096, 2304},
    {"InternVL2-26B", 595, 5652925824, 6144, 2304},
    {"InternVL2-40B", 595, 5679666560, 7168, 2304},
    {"InternVL2-Llama3-76B", 595, 5708504448, 8192, 2304},
    {"InternVL2_5-1B", 346, 308495104, 896, 2304},
    {"InternVL2_5-2B", 346, 316607488, 2048, 2304},
    {"InternVL2_5-4B", 346, 316607488, 2048, 2304},
    {"InternVL2_5-8B", 346, 337583104, 4096, 2304},
    {"InternVL2_5-38B", 595, 5628282240, 5120, 2304},
    {"InternVL2_5-26B", 595, 5652925824, 6144, 2304},
    {"InternVL2_5-78B", 595, 5708504448, 8192, 2304},
    {"InternVL3-1B", 346, 308495104, 896, 2304},
    {"InternVL3-2B", 346, 312674304, 1536, 2304},
    {"InternVL3-8B", 346, 331552768, 3584, 2304},
    {"InternVL3-9B", 346, 337583104, 4096, 2304},
    {"InternVL3-14B", 346, 351216640, 5120, 2304},
    {"InternVL3-38B", 595, 5628282240, 5120, 2304},
    {"InternVL3-78B", 595, 5708504448, 8192, 2304},
    {"InternVL3-1B-hf", 442, 308495104, 896, 2304},
    {"InternVL3-2B-hf", 442, 312674304, 1536, 2304},
    {"InternVL3-8B-hf", 442, 331552768, 3584, 2304},
    {"InternVL3-14B-hf", 442, 351216640, 5120, 2304},
    {"InternVL3-38B-hf", 685, 5628282240, 5120, 2304},
    {"InternVL3-78B-hf", 685, 5708504448, 8192, 2304},
    {"InternVL3_5-1B", 346, 309265408, 1024, 2304},
    {"InternVL3_5-2B", 346, 316607488, 2048, 2304},
    {"InternVL3_5-30B-A3B", 346, 316607488, 2048, 2304},
    {"InternVL3_5-4B", 346, 321064960, 2560, 2304},
    {"InternVL3_5-GPT-OSS-20B-A4B-Preview", 346, 324117120, 2880, 2304},
    {"InternVL3_5-8B", 346, 337583104, 4096, 2304},
    {"InternVL3_5-14B", 346, 351216640, 5120, 2304},
    {"InternVL3_5-241B-A28B", 595, 5605735808, 4096, 2304},
    {"InternVL3_5-38B", 595, 5628282240, 5120, 2304},
    {"InternVL3_5-1B-HF", 442, 309265408, 1024, 2304},
    {"InternVL3_5-2B-HF", 442, 316607488, 2048, 2304},
    {"InternVL3_5-30B-A3B-HF", 442, 316607488, 2048, 2304},
    {"InternVL3_5-4B-HF", 442, 321064960, 2560, 2304},
    {"InternVL3_5-8B-HF", 442, 337583104, 4096, 2304},
    {"InternVL3_5-14B-HF", 442, 351216640, 5120, 2304},
    {"InternVL3_5-241B-A28B-HF", 685, 5605735808, 4096, 2304},
    {"InternVL3_5-38B-HF", 685, 5628282240, 5120, 2304},
    {"Kimi-VL-A3B-Instruct", 335, 447545840, 2048, 1032},
    {"Kimi-K2.5", 335, 471143920, 7168, 2691},
    {"Llama-4-Maverick-17B-128E-Instruct", 554, 871932416, 5120, 2304},
    {"Llama-4-Scout-17B-16E-Instruct", 554, 871932416, 5120, 2304},
    {"DeepSeek-OCR", 475, 400770048, 1280, 483},
    {"step3", 766, 4675381760, 7168, 817},
    {"Step-3.7-Flash", 667, 1981014784, 4096, 817},
    {"Step3-VL-10B", 667, 1981014784, 4096, 817},
    {"gemma-3-4b-it", 439, 419816304, 2560, 256},
    {"gemma-3-12b-it", 439, 421290864, 3840, 256},
    {"gemma-3-27b-it", 439, 423060336, 5376, 256},
    {"paligemma-3b-pt-224", 439, 414803696, 2048, 256},
    {"paligemma-3b-pt-448", 439, 415688432, 2048, 1024},
    {"paligemma-3b-pt-896", 439, 419227376, 2048, 4096},
    {"deepseek-vl-1.3b-chat", 393, 309984256, 2048, 576},
    {"Mistral-Small-3.1-24B-Instruct-2503", 222, 438958080, 5120, 1705},
    {"pixtral-12b", 222, 434957312, 5120, 2304},
    {"PaddleOCR-VL", 443, 438947440, 1024, 2691},
    {"Idefics3-8B-Llama3", 438, 431800560, 4096, 2197},
    {"SmolVLM-256M-Instruct", 198, 93510912, 576, 832},
    {"SmolVLM-500M-Instruct", 198, 98229504, 960, 832},
    {"SmolVLM-Instruct", 438, 434220912, 2048, 1053},
    {"SmolVLM2-256M-Video-Instruct", 198, 93510912, 576, 832},
    {"SmolVLM2-500M-Video-Instruct", 198, 98229504, 960, 832},
    {"SmolVLM2-2.2B-Instruct", 438, 434220912, 2048, 1053},
    {"HunyuanOCR", 446, 457197040, 1024, 2076},
    {"DeepSeek-OCR-2", 473, 454385280, 1280, 545},
    {"gemma-4-E2B-it", 659, 168544704, 1536, 264},
    {"gemma-4-26B-A4B-it", 356, 572794416, 2816, 264},
    {"Nemotron-3-Nano-Omni-30B-A3B-Reasoning", 391, 813524480, 2688, 2040},
    {"MiniCPM-V-4.6", 459, 548266416, 1024, 578},
    {"MiniMax-M3", 523, 865567232, 6144, 576},
    {"llava-1.5-7b-hf", 377, 311888896, 4096, 576},
    {"llava-1.5-13b-hf", 377, 322376704, 5120, 576},
    {"llava-v1.6-mistral-7b-hf", 378, 311892992, 4096, 1948},
    {"llava-v1.6-vicuna-7b-hf", 378, 311892992, 4096, 1948},
    {"llava-v1.6-vicuna-13b-hf", 378, 322381824, 5120, 1948},
    {"llava-v1.6-34b-hf", 378, 349650944, 7168, 1948},
    {"llava-onevision-qwen2-0.5b-ov-hf", 424, 399583136, 896, 7269},
    {"llava-onevision-qwen2-7b-ov-hf", 424, 414730016, 3584, 7269},
    {"llava-onevision-qwen2-72b-ov-hf", 424, 474316064, 8192, 7269},
    {"ERNIE-4.5-VL-28B-A3B-PT", 402, 774658560, 2560, 2691},
    {"deepseek-vl2-tiny", 335, 420529008, 1280, 1807},
    {"deepseek-vl2-small", 335, 426626928, 2048, 1807},
    {"deepseek-vl2", 335, 431347568, 2560, 1807},
    {"Molmo2-8B", 414, 470443472, 4096, 1162},
    {"Phi-4-multimodal-instruct", 425, 411069856, 3072, 3918},
    {"LFM2-VL-450M", 203, 96338688, 1024, 2300},
    {"LFM2-VL-1.6B", 443, 429702896, 2048, 2300},
    {"aya-vision-8b", 441, 440204272, 4096, 1521},
    {"aya-vision-32b", 441, 484252656, 8192, 1521},
    {"command-a-vision-07-2025", 441, 809945328, 12288, 3328},
    {"clip-vit-base-patch32", 197, 87454464, 768, 50, {87849216, 512}},
    {"clip-vit-base-patch16", 197, 85797888, 768, 197, {86192640, 512}},
    {"clip-vit-large-patch14", 389, 303177728, 1024, 257, {303966208, 768}},
    {"clip-vit-large-patch14-336", 389, 303505408, 1024, 577, {304293888, 768}},
    {"siglip-base-patch16-224", 197, 85797120, 768, 196, {92884224, 768}},
    {"siglip-large-patch16-256", 389, 303361024, 1024, 256, {315956224, 1024}},
    {"siglip-so400m-patch14-384", 437, 412987248, 1152, 729, {428225600, 1152}},
    {"siglip2-so400m-patch16-512", 437, 413534448, 1152, 1024, {428772800, 1152}},
    {"siglip2-giant-opt-patch16-384", 645, 1135329792, 1536, 576, {1163659776, 1536}},
    {"siglip2-base-patch16-naflex", 197, 85843200, 768, 252, {92930304, 768}},
    {"siglip2-so400m-patch16-naflex", 437, 412649712, 1152, 252, {427888064, 1152}},
    {"dinov2-small", 222, 22056192, 384, 257, {22056192, 384}},
    {"dinov2-base", 222, 86579712, 768, 257, {86579712, 768}},
    {"dinov2-large", 438, 304367616, 1024, 257, {304367616, 1024}},
    {"dinov2-giant", 726, 1136479232, 1536, 257, {1136479232, 1536}},
    {"dinov2-with-registers-large", 439, 304371712, 1024, 261, {304371712, 1024}},
    {"dinov3-vits16-pretrain-lvd1689m", 210, 21596160, 384, 201, {21596160, 384}},
    {"dinov3-vits16plus-pretrain-lvd1689m", 234, 28692480, 384, 201, {28692480, 384}},
    {"dinov3-vitb16-pretrain-lvd1689m", 210, 85659648, 768, 201, {85659648, 768}},
    {"dinov3-vitl16-pretrain-lvd1689m", 414, 303128576, 1024, 201, {303128576, 1024}},
    {"dinov3-vith16plus-pretrain-lvd1689m", 614, 840591360, 1280, 201, {840591360, 1280}},
    {"dinov3-vit7b16-pretrain-lvd1689m", 766, 6716358656, 4096, 201, {6716358656, 4096}},
};

std::string configs() { return FOVEA_TEST_SOURCE_DIR "/tests/configs"; }

Json inspect(const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{
      "inspect",  configs() + "/" + name, "--load-format", "dummy", "--json", "--image",
      "1920x1080"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramResult result = run_fovea(words);
  expect_success(result);
  return Json::parse(result.out);
}

class InspectPublished : public ::testing::TestWithParam<Published> {};

TEST_P(InspectPublished, TensorsParametersAndBytesAreThoseOfTheCheckpoint) {
  const Json report = inspect(GetParam().name);
  EXPECT_EQ(report["tensors"].size(), static_cast<std::size_t>(GetParam().tensors));
  EXPECT_EQ(report["parameters"], GetParam().parameters);
  EXPECT_EQ(report["weight_bytes"], 2 * GetParam().parameters) << "stored as bfloat16";
  EXPECT_EQ(report["width"], GetParam().width);
  EXPECT_EQ(report["plan"]["items"][0]["rows"], GetParam().rows);
  std::set<std::string> names;
  for (const Json& tensor : report["tensors"]) {
    EXPECT_TRUE(names.insert(tensor["name"].get<std::string>()).second) << tensor["name"];
    EXPECT_EQ(tensor["dtype"], "BF16");
  }
}

class InspectEncoders : public InspectPublished {};

TEST_P(InspectEncoders, VectorsHaveTheParametersOfTheCheckpoint) {
  const Json report = inspect(GetParam().name, {"--vectors"});
  EXPECT_EQ(report["parameters"], GetParam().vectors.parameters);
  EXPECT_EQ(report["width"], GetParam().vectors.width);
  EXPECT_EQ(report["plan"]["items"][0]["rows"], 1);
}

std::vector<Published> encoders() {
  std::vector<Published> found;
  std::ranges::copy_if(kPublished, std::back_inserter(found),
                       [](const Published& one) { return one.vectors.parameters != 0; });
  return found;
}

std::string test_name(const ::testing::TestParamInfo<Published>& info) {
  std::string name = info.param.name;
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Sizes, InspectPublished, ::testing::ValuesIn(kPublished), test_name);
INSTANTIATE_TEST_SUITE_P(Sizes, InspectEncoders, ::testing::ValuesIn(encoders()), test_name);

TEST(InspectPublishedFolders, AreAllInTheTable) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(configs())) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  }
  std::set<std::string> listed;
  for (const Published& published : kPublished) listed.insert(published.name);
  EXPECT_EQ(folders, listed);
}

}  // namespace
}  // namespace fovea::test
