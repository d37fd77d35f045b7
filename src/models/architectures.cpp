// From the names in config.json to a family, and what to say where there is none.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "models/registry.h"
#include "models/tower_library.h"

namespace fovea {

namespace {

/// Architectures that no family knows, by how their names begin, and the family whose tower is most
/// like theirs. The first that fits counts.
struct Kin {
  std::string_view begins;
  std::string_view family;
};

constexpr Kin kKin[] = {
    {"Qwen2_5", "qwen2_5_vl"},
    {"Qwen2", "qwen2_vl"},
    {"Qwen", "qwen3_vl"},
    {"ColQwen2_5", "qwen2_5_vl"},
    {"ColQwen2", "qwen2_vl"},
    {"ColQwen", "qwen3_vl"},
    {"BailingMoeV3VL", "qwen3_vl"},
    {"Cosmos3Edge", "lfm2_vl"},
    {"Cosmos3", "qwen3_vl"},
    {"Dots", "qwen2_vl"},
    {"KananaV", "qwen2_vl"},
    {"MiMoV2Omni", "qwen2_5_vl"},
    {"OpenPanguVL", "qwen2_5_vl"},
    {"InternS1_1", "qwen3_vl"},
    {"InternS2", "qwen3_vl"},
    {"Intern", "internvl"},
    {"Eagle2_5", "internvl"},
    {"H2OVL", "internvl"},
    {"LlamaNemotron", "internvl"},
    {"NVLM", "internvl"},
    {"SkyworkR1V", "internvl"},
    {"MiniMaxM3", "minimax_m3_vl"},
    {"Ernie4_5_VL", "ernie4_5_vl"},
    {"HunYuanVL", "hunyuan_vl"},
    {"Glm", "glm4v"},
    {"NemotronH", "nemotron_h_omni"},
    {"NemotronParse", "nemotron_h_omni"},
    {"RadioMBart", "nemotron_h_omni"},
    {"Nemotron", "internvl"},
    {"ColModernVBert", "idefics3"},
    {"ColUltraVBert", "idefics3"},
    {"ModernVBert", "idefics3"},
    {"Idefics3", "idefics3"},
    {"SmolVLM", "idefics3"},
    {"ColIdefics3", "idefics3"},
    {"ColSmol", "idefics3"},
    {"Cohere", "cohere_vision"},
    {"Pixtral", "mistral3"},
    {"DiffusionGemma", "gemma4"},
    {"EmbeddingGemma2", "gemma4"},
    {"Gemma4", "gemma4"},
    {"Gemma", "gemma3"},
    {"DeepseekVL", "deepseek_vl"},
    {"Phi3V", "phi4_multimodal"},
    {"Phi4ForCausalLMV", "lfm2_vl"},
    {"Phi4M", "phi4_multimodal"},
    {"Isaac", "lfm2_vl"},
    {"Kimi", "kimi_vl"},
    {"MiniCPM", "minicpmv4_6"},
    {"Llama4", "llama4"},
    {"Bee", "llava"},
    {"Granite4Vision", "llava"},
    {"Llava", "llava"},
    {"RForConditionalGeneration", "llava"},
    {"VideoLlava", "llava"},
    {"VipLlava", "llava"},
    {"Keye", "paddleocr_vl"},
    {"Molmo", "molmo2"},
    {"Deepseek", "deepseek_ocr"},
    {"UnlimitedOCR", "deepseek_ocr"},
    {"Step", "step3_vl"},
    {"CLIP", "clip"},
    {"MetaClip", "clip"},
    {"Siglip2", "siglip2"},
    {"Siglip", "siglip"},
    {"Dinov2", "dino"},
    {"DINOv3ViT", "dino"},
};

/// A name without case and underscores, in which spellings of it differ.
std::string letters(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_') result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

/// An architecture without the kind of its class: "Glm4vMoe" of "Glm4vMoeForConditionalGeneration".
std::string_view stem(std::string_view architecture) {
  return architecture.substr(0, std::min(architecture.rfind("For"), architecture.rfind("Model")));
}

/// The model_type of a configuration, and that of the model that it wraps, as a retriever does.
std::vector<std::string> model_types(const JsonView& root) {
  std::vector<std::string> types;
  for (const auto& object : {std::optional(root), root.find("vlm_config")}) {
    const auto type = object ? object->find("model_type") : std::nullopt;
    if (type) types.push_back(type->as_string());
  }
  return types;
}

/// The first architecture of a family that `accepts` holds for.
template <class Accepts>
std::optional<std::string_view> known_name(const Accepts& accepts) {
  for (const ModelFamily* family : model_families()) {
    for (const std::string_view name : family->architectures) {
      if (accepts(name)) return name;
    }
  }
  return std::nullopt;
}

bool has_name(const ModelFamily& family, std::string_view architecture) {
  return std::ranges::find(family.architectures, architecture) != family.architectures.end();
}

std::string refusal(std::string_view architecture) {
  const std::string_view nearest = nearest_family(architecture);
  std::string text = cat("architecture \"", architecture, "\" is not supported; ");
  if (!nearest.empty()) text += cat("the nearest family is ", nearest, "; ");
  text +=
      "docs/own_tower.md says how to run a tower of your own; supported families, whose names "
      "docs/models.md lists, are ";
  std::string_view last;  // one family may stand there twice
  for (const ModelFamily* family : model_families()) {
    if (family->name == last) continue;
    text += cat(last.empty() ? "" : ", ", family->name);
    last = family->name;
  }
  return text;
}

}  // namespace

std::string_view known_architecture(const checkpoint::HfConfig& files) {
  if (!files.tower.empty()) return load_tower_library(files.tower).architectures.front();
  const JsonView root = files.config.root();
  std::vector<std::string> names = files.architectures();
  for (const std::string& name : names) {
    if (const auto known = known_name([&](auto other) { return other == name; })) return *known;
  }
  for (const std::string& model_type : model_types(root)) {
    const auto is_meant = [wanted = letters(model_type)](std::string_view architecture) {
      return letters(stem(architecture)) == wanted;
    };
    if (const auto known = known_name(is_meant)) return *known;
    names.push_back(model_type);
  }
  FOVEA_CHECK(!names.empty(), kCorruptData, root.path(),
              ": expected architectures or a model_type, which say what the model is, got neither");
  throw Error(ErrorCode::kUnsupported, refusal(names.front()));
}

const ModelFamily& find_family(std::string_view architecture) {
  const ModelFamily* found = nullptr;
  for (const ModelFamily* family : model_families()) {
    if (!has_name(*family, architecture)) continue;
    if (family->tower.empty()) return *family;
    found = family;
  }
  FOVEA_CHECK(found != nullptr, kUnsupported, refusal(architecture));
  return *found;
}

ModelFamily family_of(const checkpoint::HfConfig& files) {
  if (!files.tower.empty()) return load_tower_library(files.tower);
  const std::string_view architecture = known_architecture(files);
  for (const ModelFamily* family : model_families()) {
    if (family->tower.empty() || !has_name(*family, architecture)) continue;
    const auto vision = files.config.root().find("vision_config");
    if (vision && vision->string_or("model_type", "") == family->tower) return *family;
  }
  return find_family(architecture);
}

std::string_view nearest_family(std::string_view architecture) {
  const std::string name = letters(architecture);
  for (const Kin& kin : kKin) {
    if (name.starts_with(letters(kin.begins))) return kin.family;
  }
  return {};
}

}  // namespace fovea
