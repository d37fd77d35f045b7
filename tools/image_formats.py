#!/usr/bin/env python3
"""Odd files of the image formats beside JPEG, PNG and WebP, and their pixels as Pillow reads them.

    python3 tools/image_formats.py tests/media/formats.safetensors bmp gif tiff avif
    python3 tools/image_formats.py tests/media/heic.safetensors heic
    python3 tools/image_formats.py tests/media/heic_files.safetensors heic_files

write the golden files of tests/media, in the form of tools/media_profiles.py: files of every layout, header and coding of
each format, and damaged ones. A file without pixels is one that Pillow refuses. tools/compare_media_with_vllm.py compares
larger ones. Needs numpy, pillow with all of its formats, safetensors, and for HEIC pillow-heif.
"""

import importlib
import sys

import media_profiles


def made_images(formats, width, height):
    """Pairs of a file name and its bytes."""
    for name in formats:
        yield from importlib.import_module(f"image_formats_{name}").made_images(width, height)


if __name__ == "__main__":
    media_profiles.write_golden(sys.argv[1], made_images(sys.argv[2:], 7, 5))
