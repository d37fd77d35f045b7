#!/usr/bin/env python3
"""Odd files of the image formats beside JPEG, PNG and WebP, and their pixels as Pillow reads them.

    python3 tools/image_formats.py tests/media/formats.safetensors bmp gif tiff avif
    python3 tools/image_formats.py tests/media/heic.safetensors heic
    python3 tools/image_formats.py tests/media/heic_files.safetensors heic_files
    python3 tools/image_formats.py tests/media/formats_aarch64.safetensors --unlike tests/media/formats.safetensors

write the golden files of tests/media, in the form of tools/media_profiles.py: files of every layout, header and coding of
each format, and damaged ones. A file without pixels is one that Pillow refuses. tools/compare_media_with_vllm.py compares
larger ones. The last command, on an ARM machine, writes the files of another golden file whose pixels differ there.
Needs numpy, pillow with all of its formats, safetensors, and for HEIC pillow-heif.
"""

import importlib
import sys

import numpy as np
from safetensors.numpy import load_file

import media_profiles


def made_images(formats, width, height):
    """Pairs of a file name and its bytes."""
    for name in formats:
        yield from importlib.import_module(f"image_formats_{name}").made_images(width, height)


def unlike(golden):
    """The images of a golden file of which Pillow makes other pixels here."""
    tensors = load_file(golden)
    for name, expected in tensors.items():
        image, _, profiles = name.partition(":")
        if profiles.split(",")[0] != "vllm":  # what differs does so in every profile
            continue
        data = tensors[image].tobytes()
        if not np.array_equal(media_profiles.pixels(data, "vllm"), expected):
            yield image, data


if __name__ == "__main__":
    target, *formats = sys.argv[1:]
    images = unlike(formats[1]) if formats[0] == "--unlike" else made_images(formats, 7, 5)
    media_profiles.write_golden(target, images)
