"""HEIC files of odd sizes, orientations, grids and containers, and damaged ones, for tools/image_formats.py.

Needs pillow-heif as image_formats_heic.py.
"""

import io

import pillow_heif
from PIL import Image

from image_formats_avif import picture
from image_formats_heic import deep, saved
from media_profiles import XMP_ELEMENT, exif


def size_cases(width, height):
    yield "one_pixel", saved(Image.new("RGB", (1, 1), (200, 30, 90)))
    yield "column", saved(picture(1, 70, 3))
    yield "row", saved(picture(70, 1, 3))
    yield "larger_odd", saved(picture(33, 19, 3))


def orientation_cases(width, height):
    rgb = picture(width, height, 3)
    for code in range(2, 9):
        yield f"orientation_{code}", saved(rgb, exif=exif(code), chroma=444)
    for code in (3, 5, 6, 8):
        yield f"orientation_{code}_420", saved(picture(8, 6, 3), exif=exif(code))
    yield "orientation_6_alpha", saved(picture(width, height, 4), exif=exif(6), chroma=444)
    yield "xmp", saved(rgb, xmp=XMP_ELEMENT, chroma=444)
    # pillow-heif moves the orientation into the file's transformations; here it stays in EXIF alone.
    yield "exif_alone", saved(rgb, exif=exif(6, tag=0x0113)).replace(b"\x13\x01\x03\0", b"\x12\x01\x03\0")


def file_cases(width, height):
    rgb, rgba = picture(width, height, 3), picture(width, height, 4)
    yield "grid", saved(picture(24, 20, 3), tile_size=16, quality=30)
    yield "grid_turned", saved(picture(24, 20, 3), tile_size=16, quality=30, exif=exif(6))
    yield "grid_limited", saved(picture(24, 20, 3), tile_size=16, quality=30, full_range_flag=0)
    yield "grid_709_no_nclx", saved(picture(24, 20, 3), tile_size=16, quality=30, save_nclx_profile=False)
    yield "grid_deep", deep(24, 20, 3, 10, tile_size=16, quality=30)
    yield "images", saved(rgb, save_all=True, append_images=[rgb.rotate(180)])
    yield "second_is_primary", saved(rgb, save_all=True, append_images=[rgb.rotate(180)], primary_index=1)
    yield "thumbnail", saved(picture(24, 16, 3), thumbnails=[16], quality=20)
    pillow_heif.options.QUALITY = None
    premultiplied = pillow_heif.from_bytes("RGBa", rgba.size, rgba.convert("RGBa").tobytes())
    file = io.BytesIO()
    premultiplied.save(file, quality=60, chroma=444)
    yield "premultiplied", file.getvalue()
    whole = saved(rgb)
    for brand in (b"mif1", b"hevc", b"msf1"):
        yield f"brand_{brand.decode()}", whole.replace(b"ftypheic", b"ftyp" + brand, 1)
    yield "longer", whole + b"and more"
    yield "cut_1", whole[:-1]
    yield "cut_half", whole[: len(whole) - 20]
    yield "cut_header", whole[:100]
    yield "head_alone", whole[:32]
    damaged = bytearray(whole)
    damaged[whole.index(b"ispe") + 8 + 3] ^= 1
    yield "other_width", bytes(damaged)
    yield "no_item", whole.replace(b"pitm", b"pitx")
    yield "no_extents", whole.replace(b"iloc", b"ilox")
    yield "other_codec", whole.replace(b"hvc1", b"av01")
    yield "no_parameters", whole.replace(b"hvcC", b"hvcX")


def made_images(width, height):
    for cases in (size_cases, orientation_cases, file_cases):
        for name, data in cases(width, height):
            yield f"{name}.heic", data
