"""Whole models of random weights, a few megabytes, with a tokenizer and processors: what engines of language models load.

usage: tiny_models.py FAMILY FOLDER      (needs torch and transformers)
"""

import json
import pathlib
import shutil
import sys

from tiny_families import FAMILIES, FEATURES

TOWERS = (".visual.", ".vision_tower.", ".multi_modal_projector.", ".projector.", ".vision_encoder.", ".vision_projection.")  # parts of names of tensors
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>"]
WORDS = "system user assistant describe what these pictures and films show, in 0123456789 words or seconds please".split(" ")
CHAT = """{% for message in messages %}<|im_start|>{{ message.role }}
{% for part in message.content %}{% if part.type == "text" %}{{ part.text }}{% elif part.type == "image" %}IMAGE{% else %}VIDEO{% endif %}{% endfor %}<|im_end|>
{% endfor %}"""


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
    marks = list(dict.fromkeys([*MARKS, *starts, *roles.values(), *family.words]))
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
        return {name: ids[token] for name, token in family.ids.items()}
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
    rewrite_tensors(folder / "model.safetensors", family)
    if family.renamed and family.architecture:
        write_json(folder / "config.json", architectures=[family.architecture])


def save_vendor_model(folder, family, ids, num_words):
    """A language model of transformers, and a tower whose tensors are named here."""
    import safetensors.torch
    import tiny_vendor_models
    import transformers

    text = text_config(family, ids, num_words)
    kind = transformers.AutoConfig.for_model(text["model_type"])
    words = randomize(transformers.AutoModelForCausalLM.from_config(type(kind)(**text, tie_word_embeddings=False)), family)
    config = {"architectures": [family.architecture], "vision_config": family.vision, "tie_word_embeddings": False, **family.config}
    config["llm_config" if config["model_type"] == "internvl_chat" else "text_config"] = words.config.to_dict()
    config |= {"media_placeholder_token_id": ids[family.roles["image_token"]], "dtype": "float32", **token_ids(family, ids)}
    tower = tiny_vendor_models.random_tensors(getattr(tiny_vendor_models, family.vendor)(config), family.weight)
    tensors = {f"language_model.{name}": tensor.contiguous() for name, tensor in words.state_dict().items()}
    safetensors.torch.save_file({**tensors, **tower}, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", **config)
    shutil.copy(tiny_vendor_models.CODE, folder)


def rewrite_tensors(path, family):
    """As published checkpoints have them."""
    from safetensors.torch import load_file, save_file

    def name_of(name):
        for old, new in family.renamed.items():
            if old in name:
                return name.replace(old, new, 1)
        return name

    def stored(name, tensor):
        return tensor.mT.contiguous() if family.transposed_experts and ".mlp.experts." in name else tensor

    save_file({name_of(name): stored(name, tensor) for name, tensor in load_file(path).items()}, path, {"format": "pt"})


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
