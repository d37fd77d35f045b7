"""Whole models of random weights, a few megabytes, with a tokenizer and processors: what engines of language models load.

usage: tiny_models.py FAMILY FOLDER      (needs torch and transformers)
"""

import dataclasses
import json
import pathlib
import shutil
import sys

from text_prompts import GLM, INTERNVL, INTERNVL_CHAT, KIMI, QWEN

TOWERS = (".visual.", ".vision_tower.", ".multi_modal_projector.")  # parts of names of tensors
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>"]
WORDS = "system user assistant describe what these pictures and films show, in 0123456789 words or seconds please".split(" ")
CHAT = """{% for message in messages %}<|im_start|>{{ message.role }}
{% for part in message.content %}{% if part.type == "text" %}{{ part.text }}{% elif part.type == "image" %}IMAGE{% else %}VIDEO{% endif %}{% endfor %}<|im_end|>
{% endfor %}"""
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
KIMI_VISION = {
    "model_type": "moonvit", "num_hidden_layers": 3, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2,
    "init_pos_emb_height": 14, "init_pos_emb_width": 14, "merge_kernel_size": [2, 2], "patch_size": 14,
}  # fmt: skip
KIMI_TEXT = {
    **TEXT, "model_type": "deepseek_v2", "num_key_value_heads": 2, "kv_lora_rank": 32, "q_lora_rank": None,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32, "first_k_dense_replace": 2, "moe_layer_freq": 1,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "topk_method": "greedy",
}  # fmt: skip
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
    most_videos: int = 2  # of a prompt, as vLLM takes them
    audio: dict = dataclasses.field(default_factory=dict)  # of models whose parts are below `thinker_config`
    transposed_experts: bool = False  # in published checkpoints, which vLLM expects, but not as transformers has and writes them
    weight: float = 0.1  # standard deviation of the tower's: so large that pictures decide about words
    config: dict = dataclasses.field(default_factory=dict)  # more of config.json
    files: dict = dataclasses.field(default_factory=dict)  # of the processors, in the place of those for grids of patches
    roles: dict = dataclasses.field(default_factory=dict)  # attributes of the tokenizer: special tokens by name
    vendor: str = ""  # function of tiny_vendor_models.py; of models that transformers cannot make
    architecture: str = ""  # the class in vLLM, where its name does not begin with `classes`


def glm(classes, text, vision, processor):
    """Of GLM: vLLM takes one video in a prompt."""
    return Family(classes, text, vision, processor, processor, processor, placeholders=GLM, most_videos=1)


def qwen3(classes, text, vision, **more):
    return Family(classes, text, vision, "Qwen3VL", video_processor="Qwen3VL", normalization=HALF, **more)


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
    ),  # fmt: skip
    "internvl_chat": Family(
        "", {**TEXT, "model_type": "qwen2"}, INTERNVL_CHAT_VISION, "", placeholders=INTERNVL_CHAT, vendor="internvl_chat",
        architecture="InternVLChatModel",
        config={
            "model_type": "internvl_chat", "downsample_ratio": 0.5, "dynamic_image_size": True, "force_image_size": 56,
            "max_dynamic_patch": 12, "min_dynamic_patch": 1, "ps_version": "v2", "select_layer": -1, "use_thumbnail": True,
            "auto_map": {"AutoConfig": "tiny_vendor_code.InternVLChatConfig"},
        },
        files={"preprocessor_config.json": {"image_processor_type": "CLIPImageProcessor", **IMAGENET}},
        roles={
            "start_image_token": "<img>", "end_image_token": "</img>", "image_token": "<IMG_CONTEXT>",
            "video_token": "<|video_pad|>",
        },
    ),  # fmt: skip
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
    # vLLM takes the width of the merger's MLP from the text, where published checkpoints have the same number.
    "glm_ocr": glm("GlmOcr", {**GLM_TEXT, "intermediate_size": 3 * 64}, GLM_OCR_VISION, "Glm46V"),
}


def write_json(path, **values):
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**kept, **values}, indent=1), encoding="utf-8")


def chat_template(placeholders):
    return CHAT.replace("IMAGE", placeholders["image"]).replace("VIDEO", placeholders.get("video", ""))


def tokens_of(placeholder):
    """Start, token and end of "<|a|><|b|><|c|>"."""
    return [f"<|{name}|>" for name in placeholder[2:-2].split("|><|")]


def roles_of(family):
    """Special tokens by the names that tokenizers know them under."""
    if family.roles:
        return family.roles
    image, video = (tokens_of(family.placeholders[kind]) for kind in ("image", "video"))
    return {"vision_bos_token": image[0], "image_token": image[1], "vision_eos_token": image[2], "video_token": video[1]}


def write_tokenizer(folder, family):
    """@returns the number of every mark, and of words."""
    import tokenizers
    import transformers

    roles = roles_of(family)
    starts = [] if family.roles else [token for kind in family.placeholders.values() for token in tokens_of(kind)]
    marks = list(dict.fromkeys([*MARKS, *starts, *roles.values()]))
    bytes_of = tokenizers.pre_tokenizers.ByteLevel
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = bytes_of(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=512, special_tokens=marks, initial_alphabet=bytes_of.alphabet(), show_progress=False
    )
    words.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=marks
    )
    tokenizer.chat_template = chat_template(family.placeholders)
    tokenizer.save_pretrained(folder)
    write_json(
        folder / "tokenizer_config.json",
        tokenizer_class="Qwen2Tokenizer",
        **roles,
        audio_bos_token="<|audio_bos|>",
        audio_token="<|AUDIO|>",
        audio_eos_token="<|audio_eos|>",
    )
    return {mark: tokenizer.convert_tokens_to_ids(mark) for mark in marks}, len(tokenizer)


def token_ids(family, ids):
    """As configurations name them: those of Qwen, whose images and videos begin alike, those of GLM, and others, by role."""
    if family.roles:
        return {"image_token_id": ids[family.roles.get("context_image_token") or family.roles["image_token"]]}
    image, video = ([ids[token] for token in tokens_of(family.placeholders[kind])] for kind in ("image", "video"))
    names = [("image_token_id", image[1]), ("video_token_id", video[1])]
    if image[0] == video[0]:
        names += [("vision_start_token_id", image[0]), ("vision_end_token_id", image[2])]
    else:
        names += [("image_start_token_id", image[0]), ("image_end_token_id", image[2])]
        names += [("video_start_token_id", video[0]), ("video_end_token_id", video[2])]
    return dict(names)


def text_config(family, ids, num_words):
    named = {"pad_token_id": ids["<|endoftext|>"], "bos_token_id": None, "eos_token_id": ids["<|im_end|>"]}
    return {**family.text, **named, "vocab_size": num_words}


def make_config(family, ids, num_words):
    import transformers

    parts = {
        "text_config": text_config(family, ids, num_words),
        "vision_config": {**({} if family.files else {"spatial_merge_size": 2, "temporal_patch_size": 2}), **family.vision},
        "tie_word_embeddings": False,
        **token_ids(family, ids),
        **family.config,
    }
    kind = getattr(transformers, f"{family.classes}Config")
    if not family.audio:
        return kind(**parts)
    parts |= {"audio_config": family.audio, "audio_token_id": ids["<|AUDIO|>"], "audio_start_token_id": ids["<|audio_bos|>"]}
    return kind(thinker_config=parts, enable_audio_output=False)


def randomize(model, family):
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, family.weight if any(part in name for part in TOWERS) else 0.25)
    return model.float()


def save_model(folder, family, ids, num_words):
    import torch
    import transformers

    torch.manual_seed(11)
    if family.vendor:
        save_vendor_model(folder, family, ids, num_words)
        return
    config = make_config(family, ids, num_words)
    randomize(getattr(transformers, f"{family.classes}ForConditionalGeneration")(config), family).save_pretrained(folder)
    if family.transposed_experts:
        transpose_experts(folder / "model.safetensors")


def save_vendor_model(folder, family, ids, num_words):
    """A language model of transformers, and a tower whose tensors are named here."""
    import safetensors.torch
    import tiny_vendor_models
    import transformers

    text = text_config(family, ids, num_words)
    kind = transformers.AutoConfig.for_model(text["model_type"])
    words = randomize(transformers.AutoModelForCausalLM.from_config(type(kind)(**text, tie_word_embeddings=False)), family)
    config = {"architectures": [family.architecture], "vision_config": family.vision, "tie_word_embeddings": False, **family.config}
    config |= {"llm_config" if family.vendor == "internvl_chat" else "text_config": {**words.config.to_dict()}}
    config |= {"media_placeholder_token_id": ids[family.roles["image_token"]], "dtype": "float32"}
    tower = tiny_vendor_models.random_tensors(getattr(tiny_vendor_models, family.vendor)(config), family.weight)
    tensors = {f"language_model.{name}": tensor.contiguous() for name, tensor in words.state_dict().items()}
    safetensors.torch.save_file({**tensors, **tower}, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", **config)
    shutil.copy(tiny_vendor_models.CODE, folder)


def transpose_experts(path):
    from safetensors.torch import load_file, save_file

    tensors = {name: tensor.mT.contiguous() if ".mlp.experts." in name else tensor for name, tensor in load_file(path).items()}
    save_file(tensors, path, {"format": "pt"})


def grid_files(family):
    """What processors read that cut images and videos into grids of patches."""
    common = {"patch_size": family.vision["patch_size"], "temporal_patch_size": 2, "merge_size": 2, **family.normalization}
    return {
        "preprocessor_config.json": {
            "image_processor_type": f"{family.image_processor}ImageProcessor",
            "size": {"shortest_edge": 1024, "longest_edge": 1 << 24},
            **common,
            **(FEATURES if family.audio else {}),
        },
        "video_preprocessor_config.json": {
            "video_processor_type": f"{family.video_processor}VideoProcessor",
            "size": {"shortest_edge": 1024, "longest_edge": 3 << 23},
            **common,
        },
    }


def write(folder, family=FAMILIES["qwen3_vl"]):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ids, num_words = write_tokenizer(folder, family)
    save_model(folder, family, ids, num_words)
    for name, values in (family.files or grid_files(family)).items():
        named = {"processor_class": f"{family.processor}Processor"} if family.processor else {}
        write_json(folder / name, **named, **values)
    write_json(folder / "generation_config.json", eos_token_id=[ids["<|im_end|>"]], do_sample=False)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in FAMILIES:
        sys.exit(f"{__doc__}\nfamilies: {', '.join(FAMILIES)}")
    write(sys.argv[2], FAMILIES[sys.argv[1]])
