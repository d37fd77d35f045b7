"""AVIF files of every subsampling, range, depth, orientation and kind of alpha, for tools/image_formats.py."""

import io
import pathlib

import numpy as np
from PIL import Image

from media_profiles import XMP_ATTRIBUTE, XMP_ELEMENT, exif, waves

# Pillow writes 8 bits alone: files of 10 and 12, and of rare colour spaces, were made by libavif's encoder.
SEEDS = pathlib.Path(__file__).parent.parent / "tests" / "fuzz" / "corpus" / "decode_avif"


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "AVIF", **({"quality": 75, "speed": 9, "max_threads": 1} | options))
    return file.getvalue()


def picture(width, height, channels):
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    samples = (waves(width, height, channels) >> 8).astype(np.uint8)
    return Image.fromarray(samples[..., 0] if channels == 1 else samples, mode)


def layout_cases(width, height):
    for channels in (1, 3, 4):
        image = picture(width, height, channels)
        for subsampling in ("4:4:4", "4:2:2", "4:2:0", "4:0:0"):
            for span in ("full", "limited"):
                name = f"{image.mode.lower()}_{subsampling.replace(':', '')}_{span}"
                yield name, saved(image, subsampling=subsampling, range=span)
    rgb, rgba = picture(width, height, 3), picture(width, height, 4)
    yield "lossless", saved(rgb, quality=100, subsampling="4:4:4")
    yield "premultiplied", saved(rgba, alpha_premultiplied=True)
    yield "premultiplied_444", saved(rgba, alpha_premultiplied=True, subsampling="4:4:4", quality=95)
    yield "flat", saved(Image.new("RGB", (width, height), (200, 30, 90)))
    yield "one_pixel", saved(Image.new("RGB", (1, 1), (200, 30, 90)))
    yield "column", saved(picture(1, 70, 3))
    yield "tiles", saved(picture(130, 70, 3), tile_rows=1, tile_cols=1, quality=20)
    for path in sorted(SEEDS.glob("bits*")):
        yield path.name, path.read_bytes()


def orientation_cases(width, height):
    rgb = picture(width, height, 3)
    for code in range(10):
        yield f"orientation_{code}", saved(rgb, exif=exif(code))
    yield "orientation_6_alpha", saved(picture(width, height, 4), exif=exif(6))
    yield "orientation_5_420", saved(rgb, exif=exif(5), subsampling="4:2:0")
    yield "xmp", saved(rgb, xmp=XMP_ATTRIBUTE)
    yield "xmp_and_exif_3", saved(rgb, xmp=XMP_ELEMENT, exif=exif(3))
    yield "xmp_and_other_exif", saved(rgb, xmp=XMP_ELEMENT, exif=exif(6, tag=0x0113))
    # Pillow moves the orientation into the file's transformations; here it stays in EXIF alone.
    turned = saved(rgb, exif=exif(6, tag=0x0113)).replace(b"\x13\x01\x03\0", b"\x12\x01\x03\0")
    yield "exif_alone", turned
    yield "exif_alone_and_xmp", saved(rgb, xmp=XMP_ELEMENT, exif=exif(6, tag=0x0113)).replace(b"\x13\x01\x03\0", b"\x12\x01\x03\0")


def file_cases(width, height):
    rgb, rgba = picture(width, height, 3), picture(width, height, 4)
    frames = {"save_all": True, "append_images": [rgb.rotate(180)], "duration": 40}
    yield "animation", saved(rgb, **frames)
    yield "animation_alpha", saved(rgba, **(frames | {"append_images": [rgba.rotate(180)]}))
    whole = saved(rgb)
    yield "mif1", whole.replace(b"ftypavif", b"ftypmif1", 1)
    yield "longer", whole + b"and more"
    yield "icc", saved(rgb, icc_profile=b"no profile" * 20)
    yield "cut_1", whole[:-1]
    yield "cut_half", whole[: len(whole) - 20]
    yield "cut_header", whole[:100]
    yield "head_alone", whole[:32]
    damaged = bytearray(whole)
    damaged[whole.index(b"ispe") + 8 + 3] ^= 1
    yield "other_width", bytes(damaged)
    yield "no_item", whole.replace(b"pitm", b"pitx")
    yield "no_size", whole.replace(b"ispe", b"ispx")


def made_images(width, height):
    for cases in (layout_cases, orientation_cases, file_cases):
        for name, data in cases(width, height):
            yield f"{name}.avif", data
