// Every family of vision towers that Fovea knows, on one screen.
#include "models/registry.h"

#include <array>

#include "models/clip/model.h"
#include "models/cohere_vision/model.h"
#include "models/deepseek_ocr/model.h"
#include "models/deepseek_ocr2/model.h"
#include "models/deepseek_vl/model.h"
#include "models/deepseek_vl2/model.h"
#include "models/dino/model.h"
#include "models/ernie4_5_vl/model.h"
#include "models/gemma3/model.h"
#include "models/gemma4/model.h"
#include "models/glm4v/model.h"
#include "models/hunyuan_vl/model.h"
#include "models/idefics3/model.h"
#include "models/internvl/model.h"
#include "models/kimi_k25/model.h"
#include "models/kimi_vl/model.h"
#include "models/lfm2_vl/model.h"
#include "models/llama4/model.h"
#include "models/llava/model.h"
#include "models/minicpmv4_6/model.h"
#include "models/minimax_m3_vl/model.h"
#include "models/mistral3/model.h"
#include "models/molmo2/model.h"
#include "models/nemotron_h_omni/model.h"
#include "models/paddleocr_vl/model.h"
#include "models/paligemma/model.h"
#include "models/phi4_multimodal/model.h"
#include "models/qwen2_5_vl/model.h"
#include "models/qwen2_vl/model.h"
#include "models/qwen3_vl/model.h"
#include "models/siglip/model.h"
#include "models/siglip2/model.h"
#include "models/step3_vl/model.h"
#include "models/step3p7/model.h"

namespace fovea {

std::span<const ModelFamily* const> model_families() noexcept {
  static const std::array families{
      &qwen2_vl::family(),
      &qwen2_5_vl::family(),
      &qwen3_vl::family(),
      &glm4v::family(),
      &glm4v::canvas_family(),
      &internvl::chat_family(),
      &internvl::native_family(),
      &kimi_vl::family(),
      &kimi_k25::family(),
      &llama4::family(),
      &deepseek_ocr::family(),
      &step3_vl::family(),
      &step3p7::family(),
      &gemma3::family(),
      &paligemma::family(),
      &deepseek_vl::family(),
      &cohere_vision::cohere2_family(),
      &cohere_vision::aya_family(),
      &mistral3::family(),
      &mistral3::pixtral_family(),
      &mistral3::light_on_ocr_family(),
      &paddleocr_vl::family(),
      &lfm2_vl::family(),
      &idefics3::family(),
      &idefics3::smolvlm_family(),
      &hunyuan_vl::family(),
      &deepseek_ocr2::family(),
      &gemma4::family(),
      &nemotron_h_omni::family(),
      &clip::family(),
      &clip::vision_family(),
      &siglip::family(),
      &siglip2::family(),
      &dino::v2_family(),
      &dino::v3_family(),
      &minicpmv4_6::family(),
      &minimax_m3_vl::family(),
      &llava::family(),
      &llava::next_family(),
      &llava::onevision_family(),
      &ernie4_5_vl::family(),
      &deepseek_vl2::family(),
      &molmo2::family(),
      &phi4_multimodal::family(),
  };
  return families;
}

}  // namespace fovea
