"""Prompts with images and videos that all engines of language models are asked, as pixels and as rows."""

import numpy

# Sizes of images, width x height, and of videos, frames x width x height.
IMAGES = [(180, 140), (64, 300), (333, 222), (96, 96)]
VIDEOS = [(6, 96, 64), (5, 120, 88)]
FPS = 2.0
QUESTION = "describe these pictures"
# What stands for an image or a video in a prompt.
QWEN = {"image": "<|vision_start|><|image_pad|><|vision_end|>", "video": "<|vision_start|><|video_pad|><|vision_end|>"}
GLM = {"image": "<|begin_of_image|><|image|><|end_of_image|>", "video": "<|begin_of_video|><|video|><|end_of_video|>"}
INTERNVL = {"image": "<IMG_CONTEXT>", "video": "<video>"}
INTERNVL_CHAT = {"image": "<image>", "video": "<video>"}
GEMMA = {"image": "<start_of_image>"}
MISTRAL = {"image": "[IMG]"}
PADDLE = {"image": "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>"}
LIGHTON = {"image": "<|image_pad|>"}
PALI = {"image": ""}  # it is put in front
COHERE = {"image": "<|IMG_PATCH|>"}
KIMI = {"image": "<|media_start|>image<|media_content|><|media_pad|><|media_end|>"}
KIMI_K25 = {"image": KIMI["image"], "video": 2 * KIMI["image"]}  # all videos make two chunks
# Images and videos of a prompt, by their places above.
PROMPTS = [
    ([0], []), ([1], []), ([2], []), ([3], []), ([0, 2], []), ([3, 1, 0, 2], []), ([], [0]), ([], [1]), ([], [0, 1]), ([1, 3], [0]),
]  # fmt: skip


def _frames(random, count, width, height):
    """uint8 [count, height, width, 3]: blocks of colours, each frame others."""
    coarse = random.integers(0, 256, (count, 5, 4, 3), dtype=numpy.uint8)
    rows, columns = numpy.arange(height) * 5 // height, numpy.arange(width) * 4 // width
    return numpy.ascontiguousarray(coarse[:, rows][:, :, columns])


def media():
    """Arrays: images [height, width, 3], videos [frames, height, width, 3]."""
    random = numpy.random.default_rng(3)
    images = [_frames(random, 1, *size)[0] for size in IMAGES]
    return images, [_frames(random, *size) for size in VIDEOS]


def prompt_text(num_images, num_videos, placeholders=QWEN):
    media = placeholders["image"] * num_images + placeholders.get("video", "") * num_videos
    return f"<|im_start|>user\n{media}{QUESTION}<|im_end|>\n"


def video_metadata(video):
    """That all frames are given, at FPS, as processors of transformers and vLLM take it."""
    return {
        "fps": FPS, "duration": len(video) / FPS, "total_num_frames": len(video), "frames_indices": list(range(len(video))),
        "video_backend": "opencv", "do_sample_frames": False,
    }  # fmt: skip
