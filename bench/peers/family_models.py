#!/usr/bin/env python3
"""Writes folders that families_gpu.py times: for a model of every family, of published size, config.json and the file of
its image processor, as transformers writes them.

    python3 bench/peers/family_models.py FOLDER [NAME,...]

Sizes are those of tests/configs, or of the configuration class of transformers where the published file is in a format
of its own, with what differs named below. Families that transformers does not have are not among them.
"""

import json
import shutil
import sys
from pathlib import Path

import transformers as T
from transformers.models.auto import modeling_auto as auto

CONFIGS = Path(__file__).parents[2] / "tests" / "configs"
QWEN3 = {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
         "size": {"shortest_edge": 65536, "longest_edge": 16777216}}
SO400M = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
          "num_attention_heads": 16, "patch_size": 14, "vision_use_head": False}
OCR2 = {"sam_config": {}, "encoder_config": {"hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2,
                                             "num_hidden_layers": 24, "intermediate_size": 4864}}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def square(side):
    return {"size": {"height": side, "width": side}}


def vision(folder, **more):
    return json.loads((CONFIGS / folder / "config.json").read_text(encoding="utf-8"))["vision_config"] | more


# Name: configuration (a folder of tests/configs, or a function that makes one), class of the image processor and what
# the published file says otherwise than the class; None: the file is in the folder.
MODELS = {
    "Qwen2-VL-7B": ("Qwen2-VL-7B-Instruct", None),
    "Qwen2.5-VL-7B": ("Qwen2.5-VL-7B-Instruct", None),
    "Qwen3-VL-32B": ("Qwen3-VL-32B-Instruct", ("Qwen2VLImageProcessor", QWEN3)),
    "Qwen3.5-9B": ("Qwen3.5-9B", ("Qwen2VLImageProcessor", QWEN3)),
    "GLM-4.1V-9B": ("GLM-4.1V-9B-Thinking", ("Glm4vImageProcessor", {})),
    "GLM-OCR": ("GLM-OCR", ("Glm46VImageProcessor", {})),
    "InternVL3-8B": ("InternVL3-8B-hf", ("GotOcr2ImageProcessor", square(448) | {"max_patches": 12})),
    "Kimi-K2.5": ("Kimi-K2.5", None),
    "Llama-4-Scout": ("Llama-4-Scout-17B-16E-Instruct", ("Llama4ImageProcessor", square(336))),
    "Gemma-3-4B": ("gemma-3-4b-it", ("Gemma3ImageProcessor", square(896))),
    "Mistral-Small-3.1": ("Mistral-Small-3.1-24B-Instruct-2503", None),
    "SmolVLM-2B": ("SmolVLM-Instruct", None),
    "Idefics3-8B": ("Idefics3-8B-Llama3", None),
    "Gemma-4-26B": ("gemma-4-26B-A4B-it", ("Gemma4ImageProcessor", {})),
    "PaddleOCR-VL": ("PaddleOCR-VL", ("PaddleOCRVLImageProcessor", {})),
    "Step-3.7-Flash": ("Step-3.7-Flash", ("Step3p7ImageProcessor", {})),
    "ERNIE-4.5-VL": (lambda: T.Ernie4_5_VLMoeConfig(), ("Ernie4_5_VLMoeImageProcessor", {})),
    "MiniCPM-V-4.6": ("MiniCPM-V-4.6", ("MiniCPMV4_6ImageProcessor", {})),
    "DeepSeek-OCR-2": (lambda: T.DeepseekOcr2Config(vision_config=OCR2, text_config={"hidden_size": 1280, "num_attention_heads": 10, "num_key_value_heads": 10, "mlp_layer_types": ["dense"], "num_hidden_layers": 1}), ("DeepseekOcr2ImageProcessor", {})),
    "LLaVA-1.5-7B": ("llava-1.5-7b-hf", None),
    "LLaVA-1.6-Mistral": ("llava-v1.6-mistral-7b-hf", None),
    "LLaVA-OneVision-7B": ("llava-onevision-qwen2-7b-ov-hf", None),
    "PaliGemma-448": ("paligemma-3b-pt-448", ("SiglipImageProcessor", square(448) | HALF)),
    "HunyuanOCR": (lambda: T.HunYuanVLConfig(vision_config=vision("HunyuanOCR"), text_config={
        "hidden_size": 1024, "head_dim": 32, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4] * 4}}),
                   ("HunYuanVLImageProcessor", {})),
    "Phi-4-multimodal": (lambda: T.Phi4MultimodalConfig(), ("Phi4MultimodalImageProcessor", {"dynamic_hd": 36})),
    "Molmo2-8B": ("Molmo2-8B", ("Molmo2ImageProcessor", {})),
    "DeepSeek-VL-1.3B": ("deepseek-vl-1.3b-chat", ("DeepseekVLImageProcessor", {})),
    "Nemotron-3-Omni": (lambda: T.NemotronH_Omni_Reasoning_V3_Config(audio_config=None),
                        ("NemotronH_Omni_Reasoning_V3ImageProcessor", {})),
    "MiniMax-M3": ("MiniMax-M3", ("MiniMaxM3VLImageProcessor", {})),
    "EXAONE-4.5-33B": ("EXAONE-4.5-33B", ("Qwen2VLImageProcessor", {})),
    "LFM2-VL": (lambda: T.Lfm2VlConfig(), ("Lfm2VlImageProcessor", {})),
    "Command-A-Vision": (lambda: T.Cohere2VisionConfig(), ("Cohere2VisionImageProcessor", {})),
    "Aya-Vision": (lambda: T.AyaVisionConfig(vision_config=SO400M | {"image_size": 364}),
                   ("GotOcr2ImageProcessor", square(364) | {"crop_to_patches": True, "max_patches": 12} | HALF)),
}

# Files of the processor of text and images that say how images are cut.
MORE_FILES = {"Mistral-Small-3.1": {"processor_config.json": {"patch_size": 14, "spatial_merge_size": 2}}}


def write(name, folder):
    config, processor = MODELS[name]
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(config, str):
        for file in (CONFIGS / config).glob("*.json"):
            shutil.copy(file, folder)
    else:
        made = config()
        made.save_pretrained(folder)
        path = folder / "config.json"
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept["architectures"] = [auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.get(made.model_type) or
                                 auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[made.model_type]]
        path.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    if processor:
        cls, values = processor
        getattr(T, cls)(**values).save_pretrained(folder)
    for file, content in MORE_FILES.get(name, {}).items():
        (folder / file).write_text(json.dumps(content), encoding="utf-8")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    for name in sys.argv[2].split(",") if len(sys.argv) == 3 else MODELS:
        write(name, Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
