"""What tiny_models.py makes: a model of every family that a plugin or an adapter has a tower for."""

import dataclasses

from text_prompts import COHERE, GEMMA, GLM, INTERNVL, INTERNVL_CHAT, KIMI, KIMI_K25, LIGHTON, MISTRAL, PADDLE, PALI, QWEN

CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

# Of language models: two layers, heads of 32, and of a mixture 4 experts, 2 of them for a token.
TEXT = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 32, "max_position_embeddings": 4096,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "norm_topk_prob": True}


def rope(*sections, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": list(sections), **more}}


QWEN2_TEXT = {**TEXT, **rope(4, 6, 6)}
QWEN3_TEXT = {**TEXT, "num_attention_heads": 4, "num_key_value_heads": 2, **rope(6, 5, 5, mrope_interleaved=True)}
# None of its layers has linear attention: that of vLLM for CPUs takes bfloat16 alone.
QWEN3_5_TEXT = {
    **TEXT, "layer_types": ["full_attention"] * 2, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "partial_rotary_factor": 0.25,
    **rope(2, 1, 1, mrope_interleaved=True, partial_rotary_factor=0.25),
}  # fmt: skip
GLM_TEXT = {**TEXT, **rope(2, 3, 3, partial_rotary_factor=0.5)}
GLM_EXPERTS = {
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 64, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 1, "use_qk_norm": False,
}  # fmt: skip

QWEN2_VISION = {"depth": 3, "embed_dim": 128, "hidden_size": 64, "num_heads": 2, "patch_size": 14}
QWEN2_5_VISION = {
    "depth": 4, "hidden_size": 128, "intermediate_size": 208, "num_heads": 2, "out_hidden_size": 64, "patch_size": 14,
    "fullatt_block_indexes": [1, 3], "window_size": 112,
}  # fmt: skip
QWEN3_5_VISION = {
    "depth": 4, "hidden_size": 128, "intermediate_size": 256, "num_heads": 2, "num_position_embeddings": 144,
    "out_hidden_size": 64, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh",
}  # fmt: skip
QWEN3_VISION = {**QWEN3_5_VISION, "deepstack_visual_indexes": [0, 1]}
GLM_VISION = {
    "depth": 3, "hidden_size": 128, "intermediate_size": 192, "num_heads": 2, "out_hidden_size": 64, "patch_size": 14,
    "image_size": 112,
}  # fmt: skip
GLM_OCR_VISION = {**GLM_VISION, "attention_bias": True}
INTERNVL_VISION = {
    "num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2, "attention_bias": True,
    "image_size": [56, 56], "patch_size": [14, 14],
}  # fmt: skip
INTERNVL_CHAT_VISION = {
    "model_type": "intern_vit_6b", "num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2,
    "image_size": 56, "patch_size": 14, "hidden_act": "gelu", "layer_norm_eps": 1e-6, "norm_type": "layer_norm", "num_channels": 3,
    "qk_normalization": False, "qkv_bias": True, "initializer_factor": 1.0,
}  # fmt: skip
QIANFAN_VISION = {**INTERNVL_CHAT_VISION, "model_type": "qianfan_ocr_vision"}
KIMI_VISION = {
    "model_type": "moonvit", "num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2,
    "init_pos_emb_height": 14, "init_pos_emb_width": 14, "merge_kernel_size": [2, 2], "patch_size": 14,
}  # fmt: skip
# Published checkpoints have names with vt_ and init_; vLLM reads those that transformers writes.
KIMI_K25_SIZES = {"num_hidden_layers": 3, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 256}
KIMI_K25_TABLE = {"pos_emb_height": 14, "pos_emb_width": 14, "pos_emb_time": 4}
KIMI_K25_VISION = {
    **KIMI_K25_SIZES, **{f"vt_{name}": size for name, size in KIMI_K25_SIZES.items()},
    **KIMI_K25_TABLE, **{f"init_{name}": size for name, size in KIMI_K25_TABLE.items()},
    "model_type": "kimi_k25_vision", "patch_size": 14, "merge_kernel_size": [2, 2], "pos_emb_type": "divided_fixed",
    "video_attn_type": "spatial_temporal", "merge_type": "sd2_tpool", "mm_projector_type": "patchmerger", "mm_hidden_size": 128,
    "projector_hidden_act": "gelu", "projector_ln_eps": 1e-5, "text_hidden_size": 64,
}  # fmt: skip
KIMI_TEXT = {
    **TEXT, "model_type": "deepseek_v2", "num_key_value_heads": 2, "kv_lora_rank": 32, "q_lora_rank": None,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32, "first_k_dense_replace": 2, "moe_layer_freq": 1,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "topk_method": "greedy",
}  # fmt: skip
SIGLIP_VISION = {
    "num_hidden_layers": 3, "hidden_size": 144, "intermediate_size": 272, "num_attention_heads": 2,
    "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6, "vision_use_head": False,
}  # fmt: skip
SIGLIP_NAMES = {"vision_tower.": "vision_tower.vision_model."}
PIXTRAL_VISION = {
    "model_type": "pixtral", "num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 240, "num_attention_heads": 2,
    "head_dim": 64, "hidden_act": "silu", "image_size": 280, "patch_size": 14,
}  # fmt: skip
GEMMA_TEXT = {**TEXT, "model_type": "gemma3_text", "query_pre_attn_scalar": 32, "sliding_window": 1024}
INTERNVL_VIEWS = {"size": {"height": 56, "width": 56}, "crop_to_patches": True, "min_patches": 1, "max_patches": 12, **IMAGENET}

# What published configurations say and vLLM reads, but transformers does not know.
OMNI_POSITIONS = {"image_size": 192, "apply_vit_abs_pos_embed": True}

# Of models that hear, too. Nobody speaks to them here.
AUDIO = {
    "d_model": 32, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "encoder_layers": 1, "max_source_positions": 32,
    "num_mel_bins": 16, "output_dim": 64,
}  # fmt: skip
FEATURES = {
    "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 16, "sampling_rate": 16000, "n_fft": 400,
    "hop_length": 160,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Family:
    """The names of transformers' classes begin with `classes`; those of the processors with the others."""

    classes: str
    text: dict
    vision: dict
    processor: str
    image_processor: str = "Qwen2VL"
    video_processor: str = "Qwen2VL"
    normalization: dict = dataclasses.field(default_factory=lambda: CLIP)
    placeholders: dict = dataclasses.field(default_factory=lambda: QWEN)
    most_images: int = 4  # of a prompt, as vLLM takes them
    most_videos: int = 2
    audio: dict = dataclasses.field(default_factory=dict)  # of models whose parts are below `thinker_config`
    renamed: dict = dataclasses.field(default_factory=dict)  # parts of names of tensors: those of published checkpoints
    transposed_experts: bool = False  # in published checkpoints, which vLLM expects, but not as transformers has and writes them
    weight: float = 0.1  # standard deviation of the tower's: so large that pictures decide about words
    config: dict = dataclasses.field(default_factory=dict)  # more of config.json
    files: dict = dataclasses.field(default_factory=dict)  # of the processors, in the place of those for grids of patches
    roles: dict = dataclasses.field(default_factory=dict)  # attributes of the tokenizer: special tokens by name
    vendor: str = ""  # function of tiny_vendor_models.py; of models that transformers cannot make
    words: list = dataclasses.field(default_factory=list)  # that are tokens of their own, beside the special ones
    ids: dict = dataclasses.field(default_factory=dict)  # numbers of config.json: special tokens by name, where the form does not say
    chunk_frames: int = 0  # of models to which images and pieces of videos, so many frames each, are the same kind
    architecture: str = ""  # the class in vLLM, where its name does not begin with `classes`


def glm(classes, text, vision, processor):
    """Of GLM: vLLM takes one video in a prompt."""
    return Family(classes, text, vision, processor, processor, processor, placeholders=GLM, most_videos=1)


def qwen3(classes, text, vision, **more):
    return Family(classes, text, vision, "Qwen3VL", video_processor="Qwen3VL", normalization=HALF, **more)


def images_alone(classes, text, vision, placeholders, processors=None, image_processor=None, image=None, processor=None, **more):
    """Of a family without videos: `image` is what the image processor reads, `processor` what the other one does."""
    processors = processors or classes
    files = {
        "preprocessor_config.json": {"image_processor_type": f"{image_processor or processors}ImageProcessor", **(image or {})},
        "processor_config.json": processor or {},
    }
    return Family(classes, text, vision, processors, placeholders=placeholders, most_videos=0, files=files, **more)


def vendor_chat(architecture, text, vision, videos=None, **config):
    """Of InternVL's authors, and of those who took their files."""
    config |= {
        "downsample_ratio": 0.5, "dynamic_image_size": True, "force_image_size": 56, "max_dynamic_patch": 12,
        "min_dynamic_patch": 1, "ps_version": "v2", "select_layer": -1, "use_thumbnail": True,
    }  # fmt: skip
    return Family(
        "", {**TEXT, "model_type": text}, vision, "", placeholders=INTERNVL_CHAT, vendor="internvl_chat", architecture=architecture,
        config=config, most_videos=2 if videos else 0,
        files={"preprocessor_config.json": {"image_processor_type": "CLIPImageProcessor", **IMAGENET}},
        roles={"start_image_token": "<img>", "end_image_token": "</img>", "image_token": "<IMG_CONTEXT>", **(videos or {})},
    )  # fmt: skip


FAMILIES = {
    "qwen2_vl": Family("Qwen2VL", QWEN2_TEXT, QWEN2_VISION, "Qwen2VL"),
    "qwen2_5_vl": Family("Qwen2_5_VL", QWEN2_TEXT, QWEN2_5_VISION, "Qwen2_5_VL"),
    "qwen3_vl": qwen3("Qwen3VL", QWEN3_TEXT, QWEN3_VISION),
    "qwen3_vl_moe": qwen3("Qwen3VLMoe", {**QWEN3_TEXT, **EXPERTS}, QWEN3_VISION, transposed_experts=True),
    "qwen3_5": qwen3("Qwen3_5", QWEN3_5_TEXT, QWEN3_5_VISION),
    "qwen3_5_moe": qwen3("Qwen3_5Moe", {**QWEN3_5_TEXT, **EXPERTS, "shared_expert_intermediate_size": 64}, QWEN3_5_VISION),
    "glm4v": glm("Glm4v", GLM_TEXT, GLM_VISION, "Glm4v"),
    "glm4v_moe": glm("Glm4vMoe", {**GLM_TEXT, **GLM_EXPERTS}, GLM_VISION, "Glm4v"),
    "qwen2_5_omni": Family("Qwen2_5Omni", QWEN2_TEXT, QWEN2_5_VISION, "Qwen2_5Omni", audio=AUDIO),
    "qwen3_omni_moe": Family(
        "Qwen3OmniMoe", {**QWEN3_TEXT, **EXPERTS, "tie_word_embeddings": False}, {**QWEN3_VISION, **OMNI_POSITIONS},
        "Qwen3OmniMoe", normalization=HALF, audio={**AUDIO, "downsample_hidden_size": 16},
    ),  # fmt: skip
    "internvl": Family(
        "InternVL", {**TEXT, "model_type": "qwen2"}, INTERNVL_VISION, "InternVL", placeholders=INTERNVL,
        architecture="InternS1ForConditionalGeneration",
        config={"image_seq_length": 4},
        files={
            "preprocessor_config.json": {"image_processor_type": "GotOcr2ImageProcessor", **INTERNVL_VIEWS},
            "video_preprocessor_config.json": {"video_processor_type": "InternVLVideoProcessor", **INTERNVL_VIEWS},
            "processor_config.json": {"image_seq_length": 4},
        },
        roles={
            "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        ids={"image_token_id": "<IMG_CONTEXT>"},
    ),  # fmt: skip
    "internvl_chat": vendor_chat(
        "InternVLChatModel", "qwen2", INTERNVL_CHAT_VISION, model_type="internvl_chat", videos={"video_token": "<|video_pad|>"},
        auto_map={"AutoConfig": "tiny_vendor_code.InternVLChatConfig"},
    ),
    "kimi_vl": Family(
        "", KIMI_TEXT, KIMI_VISION, "KimiVL", placeholders=KIMI, most_videos=0, vendor="kimi_vl",
        architecture="KimiVLForConditionalGeneration", config={"model_type": "kimi_vl"},
        files={
            "preprocessor_config.json": {
                "image_processor_type": "KimiVLImageProcessor", "in_token_limit": 256, "merge_kernel_size": [2, 2],
                "pad_input": True, "patch_size": 14, **HALF,
                "auto_map": {
                    "AutoImageProcessor": "tiny_vendor_code.KimiVLImageProcessor",
                    "AutoProcessor": "tiny_vendor_code.KimiVLProcessor",
                },
            },
        },
        roles={
            "start_image_token": "<|media_start|>", "content_token": "<|media_content|>", "image_token": "<|media_pad|>",
            "end_image_token": "<|media_end|>",
        },
    ),  # fmt: skip
    "kimi_k25": Family(
        "", KIMI_TEXT, KIMI_K25_VISION, "", placeholders=KIMI_K25, vendor="kimi_k25", chunk_frames=4,
        architecture="KimiK25ForConditionalGeneration", config={"model_type": "kimi_k25", "projection_hidden_size": 128},
        files={
            "preprocessor_config.json": {
                "media_proc_cfg": {
                    "patch_size": 14, "merge_kernel_size": 2, "temporal_merge_kernel_size": 4, "in_patch_limit": 256,
                    "patch_limit_on_one_side": 512, "in_patch_limit_each_frame": 256, "in_patch_limit_video": None,
                    "fixed_output_tokens": None, "sample_fps": 2.0, "max_num_frames_each_video": None, **HALF,
                },
            },
        },
        roles={"start_image_token": "<|media_start|>", "image_token": "<|media_pad|>", "end_image_token": "<|media_end|>"},
        ids={
            "image_token_id": "<|media_pad|>", "vision_start_token_id": "<|media_start|>",
            "vision_end_token_id": "<|media_end|>",
        },
        words=["<|media_content|>"],
    ),  # fmt: skip
    "gemma3": images_alone(
        "Gemma3", GEMMA_TEXT, {**SIGLIP_VISION, "image_size": 112, "patch_size": 14}, GEMMA,
        config={"mm_tokens_per_image": 16}, words=["\n" * count for count in range(1, 5)], renamed=SIGLIP_NAMES,
        image={"size": {"height": 112, "width": 112}, "resample": 2, **HALF},
        processor={"image_seq_length": 16},
        roles={"boi_token": "<start_of_image>", "image_token": "<image_soft_token>", "eoi_token": "<end_of_image>"},
        ids={
            "boi_token_index": "<start_of_image>", "image_token_index": "<image_soft_token>", "eoi_token_index": "<end_of_image>",
        },
    ),
    "mistral3": images_alone(
        "Mistral3", {**TEXT, "model_type": "mistral"}, PIXTRAL_VISION, MISTRAL, "Pixtral",
        config={"spatial_merge_size": 2, "projector_hidden_act": "gelu", "multimodal_projector_bias": False},
        image={"patch_size": {"height": 14, "width": 14}, "size": {"longest_edge": 280}, **CLIP},
        processor={"patch_size": 14, "spatial_merge_size": 2},
        roles={"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]"},
        ids={"image_token_index": "[IMG]"},
    ),
    "pixtral": images_alone(
        "Llava", {**TEXT, "model_type": "mistral"}, PIXTRAL_VISION, MISTRAL, "Pixtral",
        config={"projector_hidden_act": "gelu", "vision_feature_layer": -1, "vision_feature_select_strategy": "full"},
        image={"patch_size": {"height": 14, "width": 14}, "size": {"longest_edge": 280}, **CLIP},
        processor={"patch_size": 14, "spatial_merge_size": 1},
        roles={"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]"},
        ids={"image_token_index": "[IMG]"},
    ),
    "paddleocr_vl": images_alone(
        "PaddleOCRVL", {**TEXT, **rope(4, 6, 6)}, {**SIGLIP_VISION, "image_size": 154, "patch_size": 14, "spatial_merge_size": 2},
        PADDLE,
        image={
            "patch_size": 14, "merge_size": 2, "temporal_patch_size": 1, "size": {"shortest_edge": 7056, "longest_edge": 47040},
            **HALF,
        },
        roles={"start_image_token": "<|IMAGE_START|>", "image_token": "<|IMAGE_PLACEHOLDER|>", "end_image_token": "<|IMAGE_END|>"},
        ids={
            "vision_start_token_id": "<|IMAGE_START|>", "image_token_id": "<|IMAGE_PLACEHOLDER|>",
            "vision_end_token_id": "<|IMAGE_END|>",
        },
    ),
    "cohere2_vision": images_alone(
        "Cohere2Vision", {**TEXT, "model_type": "cohere2", "logit_scale": 0.0625, "tie_word_embeddings": True},
        {**SIGLIP_VISION, "image_size": 128, "patch_size": 16}, COHERE,
        config={"alignment_intermediate_size": 192, "downsample_factor": 2, "tie_word_embeddings": True}, renamed=SIGLIP_NAMES,
        image={
            "size": {"height": 128, "width": 128}, "patch_size": 4, "crop_to_patches": True, "min_patches": 1, "max_patches": 6,
            **HALF,
        },
        roles={
            "image_token": "<|IMG_PATCH|>", "boi_token": "<|START_OF_IMG|>", "eoi_token": "<|END_OF_IMG|>",
            "img_line_break_token": "<|IMG_LINE_BREAK|>",
        },
        ids={"image_token_id": "<|IMG_PATCH|>"},
    ),
    "lighton_ocr": images_alone(
        "Mistral3", {**TEXT, "model_type": "qwen3"}, PIXTRAL_VISION, LIGHTON, "Pixtral",
        config={"spatial_merge_size": 2, "projector_hidden_act": "gelu", "multimodal_projector_bias": False},
        architecture="LightOnOCRForConditionalGeneration",
        image={"patch_size": {"height": 14, "width": 14}, "size": {"longest_edge": 280}, **CLIP},
        processor={
            "patch_size": 14, "spatial_merge_size": 2, "image_token": "<|image_pad|>", "image_break_token": "<|vision_pad|>",
            "image_end_token": "<|vision_end|>",
        },
        roles={"image_token": "<|image_pad|>", "image_break_token": "<|vision_pad|>", "image_end_token": "<|vision_end|>"},
        ids={"image_token_index": "<|image_pad|>"},
        renamed={
            "language_model.model.": "model.language_model.", "language_model.lm_head.": "lm_head.",
            "vision_tower.": "model.vision_encoder.", "multi_modal_projector.": "model.vision_projection.",
        },
    ),
    "paligemma": images_alone(
        "PaliGemma", {**TEXT, "model_type": "gemma", "num_image_tokens": 64},
        {**SIGLIP_VISION, "image_size": 112, "patch_size": 14, "projection_dim": 64}, PALI, most_images=1,
        config={"projection_dim": 64, "tie_word_embeddings": True},
        image={"size": {"height": 112, "width": 112}, "image_seq_length": 64, **HALF},
        roles={"image_token": "<image>", "bos_token": "<bos>"}, ids={"image_token_index": "<image>"}, image_processor="Siglip",
        renamed=SIGLIP_NAMES, words=["\n"],
    ),
    "qianfan_ocr": vendor_chat("QianfanOCRForConditionalGeneration", "qwen3", QIANFAN_VISION, model_type="qianfan_ocr"),
    # vLLM takes the width of the merger's MLP from the text, where published checkpoints have the same number.
    "glm_ocr": glm("GlmOcr", {**GLM_TEXT, "intermediate_size": 3 * 64}, GLM_OCR_VISION, "Glm46V"),
}
