"""A whole Qwen3-VL of random weights, a few megabytes, with a tokenizer and processors: what engines of language models load.

usage: tiny_qwen3_vl.py FOLDER      (needs torch and transformers)
"""

import json
import pathlib
import sys

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
WORDS = "system user assistant describe what these pictures and films show, in 0123456789 words or seconds please".split(" ")
CHAT = """{% for message in messages %}<|im_start|>{{ message.role }}
{% for part in message.content %}{% if part.type == "text" %}{{ part.text }}{% else %}<|vision_start|><|{{ part.type }}_pad|><|vision_end|>{% endif %}{% endfor %}<|im_end|>
{% endfor %}"""
PATCHES = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}


def write_json(path, **values):
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**kept, **values}, indent=1), encoding="utf-8")


def write_tokenizer(folder):
    """@returns the number of every mark, and of words."""
    import tokenizers
    import transformers

    bytes_of = tokenizers.pre_tokenizers.ByteLevel
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = bytes_of(add_prefix_space=False)
    words.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=512, special_tokens=MARKS, initial_alphabet=bytes_of.alphabet(), show_progress=False
    )
    words.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>", additional_special_tokens=MARKS
    )
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    write_json(
        folder / "tokenizer_config.json",
        tokenizer_class="Qwen2Tokenizer",
        vision_bos_token="<|vision_start|>",
        vision_eos_token="<|vision_end|>",
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
    )
    return {mark: tokenizer.convert_tokens_to_ids(mark) for mark in MARKS}, len(tokenizer)


def make_model(ids, num_words):
    import torch
    import transformers

    text = {
        "vocab_size": num_words, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_interleaved": True, "mrope_section": [6, 5, 5]},
    }  # fmt: skip
    vision = {
        "depth": 4, "hidden_size": 128, "intermediate_size": 256, "num_heads": 2, "num_position_embeddings": 144,
        "out_hidden_size": 64, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
        "deepstack_visual_indexes": [0, 1], "hidden_act": "gelu_pytorch_tanh",
    }  # fmt: skip
    config = transformers.Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    torch.manual_seed(11)
    model = transformers.Qwen3VLForConditionalGeneration(config).float()
    with torch.no_grad():  # so large that pictures decide about words
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.1 if ".visual." in name else 0.25)
    return model


def write(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ids, num_words = write_tokenizer(folder)
    make_model(ids, num_words).save_pretrained(folder)
    write_json(
        folder / "preprocessor_config.json",
        image_processor_type="Qwen2VLImageProcessor",
        processor_class="Qwen3VLProcessor",
        size={"shortest_edge": 1024, "longest_edge": 1 << 24},
        **PATCHES,
    )
    write_json(
        folder / "video_preprocessor_config.json",
        video_processor_type="Qwen3VLVideoProcessor",
        processor_class="Qwen3VLProcessor",
        size={"shortest_edge": 1024, "longest_edge": 3 << 23},
        **PATCHES,
    )
    write_json(folder / "generation_config.json", eos_token_id=[ids["<|im_end|>"]], do_sample=False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
