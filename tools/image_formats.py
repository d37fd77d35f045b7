#!/usr/bin/env python3
"""Odd files of the image formats beside JPEG, PNG and WebP, and their pixels as Pillow reads them.

    python3 tools/image_formats.py tests/media/formats.safetensors

writes the golden file of tests/media, in the form of tools/media_profiles.py: files of every layout, header and coding of
each format, and damaged ones. A file without pixels is one that Pillow refuses. tools/compare_media_with_vllm.py compares
larger ones. Needs numpy, pillow with all of its formats, and safetensors.
"""

import sys

import image_formats_avif
import image_formats_bmp
import image_formats_gif
import image_formats_tiff
import media_profiles

FORMATS = (image_formats_bmp, image_formats_gif, image_formats_tiff, image_formats_avif)


def made_images(width, height):
    """Pairs of a file name and its bytes."""
    for module in FORMATS:
        yield from module.made_images(width, height)


if __name__ == "__main__":
    media_profiles.write_golden(sys.argv[1], made_images(7, 5))
