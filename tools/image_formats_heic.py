"""HEIC files of every subsampling, range, depth, matrix and kind of alpha, for tools/image_formats.py.

Needs pillow-heif, which brings libheif, libde265 and the encoder x265 along.
"""

import io

import numpy as np
import pillow_heif
from PIL import Image

from image_formats_avif import picture
from media_profiles import waves

pillow_heif.register_heif_opener()

BT601, BT709, BT2020, FCC, SMPTE240, YCGCO, IDENTITY = 6, 1, 9, 4, 7, 8, 0


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "HEIF", **({"quality": 60, "chroma": 420} | options))
    return file.getvalue()


def deep(width, height, channels, bits, **options):
    """Samples of 10 or 12 bits, which Pillow has no mode for."""
    pillow_heif.options.SAVE_HDR_TO_12_BIT = bits == 12
    mode = {1: "L;16", 3: "RGB;16", 4: "RGBA;16"}[channels]
    samples = waves(width, height, channels)
    file = io.BytesIO()
    heif = pillow_heif.from_bytes(mode, (width, height), samples.tobytes())
    heif.save(file, **({"quality": 60, "chroma": 420} | options))
    return file.getvalue()


def layout_cases(width, height):
    for channels in (1, 3, 4):
        image = picture(width, height, channels)
        for chroma in (420, 422, 444):
            for full in (1, 0) if channels != 4 or chroma != 422 else (1,):
                name = f"{image.mode.lower()}_{chroma}_{'full' if full else 'limited'}"
                if channels > 1 or chroma == 420:
                    yield name, saved(image, chroma=chroma, full_range_flag=full)
    yield "la", saved(grey_alpha(width, height))
    for bits in (10, 12):
        for channels in (1, 3, 4):
            for chroma in (420, 444) if channels == 3 or (channels, bits) == (4, 10) else (420,):
                yield f"bits{bits}_{channels}_{chroma}", deep(width, height, channels, bits, chroma=chroma)
        yield f"bits{bits}_limited", deep(width, height, 3, bits, full_range_flag=0)
        yield f"bits{bits}_422", deep(width, height, 3, bits, chroma=422)


def grey_alpha(width, height):
    return Image.merge("LA", [picture(width, height, 1), picture(width, height, 4).getchannel("A")])


def color_cases(width, height):
    rgb = picture(width, height, 3)
    for matrix in (BT709, BT2020, FCC, SMPTE240):
        for chroma in (420, 444) if matrix in (BT709, BT2020) else (420,):
            yield f"matrix{matrix}_{chroma}", saved(rgb, matrix_coefficients=matrix, chroma=chroma)
        yield f"matrix{matrix}_limited", saved(rgb, matrix_coefficients=matrix, full_range_flag=0)
    for matrix in (YCGCO, IDENTITY):
        yield f"matrix{matrix}_444", saved(rgb, matrix_coefficients=matrix, chroma=444)
    yield "no_nclx", saved(rgb, save_nclx_profile=False)
    yield "no_nclx_444", saved(rgb, save_nclx_profile=False, chroma=444)
    yield "p3", saved(rgb, color_primaries=12, matrix_coefficients=6)
    yield "icc", saved(rgb, icc_profile=b"no profile" * 20)
    yield "lossless", saved(rgb, quality=-1, chroma=444)
    yield "coarse", saved(rgb, quality=5)
    yield "flat", saved(Image.new("RGB", (width, height), (200, 30, 90)))


def made_images(width, height):
    for cases in (layout_cases, color_cases):
        for name, data in cases(width, height):
            yield f"{name}.heic", data
