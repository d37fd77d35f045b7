"""GIF files of every block, palette and way of coding, for tools/image_formats.py."""

import io
import struct

import numpy as np
from PIL import Image

from media_profiles import waves


def colors(bits, start=5):
    """A palette of 2 << bits entries that is no grey scale."""
    return bytes((37 * i + 91 * c + start) % 256 for i in range(2 << bits) for c in range(3))


def greys(bits):
    return bytes(i for i in range(2 << bits) for _ in range(3))


def screen(width, height, palette=b"", version=b"GIF89a", background=0):
    flags = 0x80 | (len(palette) // 3).bit_length() - 2 if palette else 0
    return version + struct.pack("<HHBBB", width, height, flags, background, 0) + palette


def pieces(data, length=255):
    return b"".join(bytes([len(data[i : i + length])]) + data[i : i + length] for i in range(0, len(data), length)) + b"\0"


def codes(indices, bits, clear_every=None, end=True, first_clear=True, grow=True):
    """LZW codes. Without `grow` each index is a code of its own, with a clear code before the size of codes would change."""
    clear = 1 << bits
    stream, size, table, following = [], bits + 1, {}, clear + 2
    if first_clear:
        stream.append((clear, size))
    prefix, count = None, 0
    for index in indices:
        if not grow:
            if count and count % (clear - 2 or 1) == 0:
                stream.append((clear, size))
            stream.append((index, size))
            count += 1
            continue
        key = (prefix, index)
        if prefix is None or key in table:
            prefix = index if prefix is None else table[key]
            continue
        stream.append((prefix, size))
        count += 1
        if following < 4096:
            table[key] = following
            if following == 1 << size and size < 12:
                size += 1
            following += 1
        prefix = index
        if clear_every and count % clear_every == 0:
            stream.append((clear, size))
            size, table, following = bits + 1, {}, clear + 2
    if prefix is not None:
        stream.append((prefix, size))
        if following == 1 << size and size < 12:
            size += 1
    if end:
        stream.append((clear + 1, size))
    value = shift = 0
    for code, width in stream:
        value |= code << shift
        shift += width
    return value.to_bytes((shift + 7) // 8, "little")


def frame(indices, bits, at=(0, 0), palette=b"", interlaced=False, length=255, size=None, **options):
    height, width = indices.shape
    flags = 0x40 * interlaced | (0x80 | (len(palette) // 3).bit_length() - 2 if palette else 0)
    order = range(height)
    if interlaced:
        order = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)]
    data = codes([int(v) for y in order for v in indices[y]], bits, **options)
    sides = size or (width, height)
    return struct.pack("<BHHHHB", 0x2C, *at, *sides, flags) + palette + bytes([bits]) + pieces(data, length)


def control(transparent=None, disposal=0, delay=0):
    return struct.pack("<BBBBHBB", 0x21, 0xF9, 4, disposal << 2 | (transparent is not None), delay, transparent or 0, 0)


END = b";"


def made_images(width, height):
    for cases in (layout_cases, canvas_cases, block_cases, code_cases, damaged_cases, pillow_cases):
        for name, data in cases(width, height):
            yield f"{name}.gif", data


def levels(width, height, bits):
    return waves(width, height, 1)[..., 0] >> (16 - bits)


def layout_cases(width, height):
    for bits in range(1, 9):
        indices = levels(width, height, bits)
        code_bits = max(bits, 2)
        for interlaced in (False, True):
            yield (f"colors{1 << bits}{'_interlaced' * interlaced}",
                   screen(width, height, colors(bits - 1)) + frame(indices, code_bits, interlaced=interlaced) + END)
    indices = levels(width, height, 8)
    some = int(indices[1, 2])
    plain = frame(indices, 8)
    yield "version_87", screen(width, height, colors(7), b"GIF87a") + plain + END
    yield "grey", screen(width, height, greys(7)) + plain + END
    yield "grey_of_4", screen(width, height, greys(1)) + plain + END
    yield "grey_transparent", screen(width, height, greys(7)) + control(some) + plain + END
    yield "no_palette", screen(width, height) + plain + END
    yield "no_palette_transparent", screen(width, height) + control(some) + plain + END
    yield "local_palette", screen(width, height) + frame(indices, 8, palette=colors(7)) + END
    yield "both_palettes", screen(width, height, colors(7)) + frame(indices, 8, palette=colors(7, 77)) + END
    yield "local_grey", screen(width, height, colors(7)) + frame(indices, 8, palette=greys(7)) + END
    yield "local_grey_of_4", screen(width, height, colors(7)) + frame(indices, 8, palette=greys(1)) + END
    yield "local_grey_transparent", screen(width, height, colors(7)) + control(some) + frame(indices, 8, palette=greys(7)) + END
    yield "both_grey", screen(width, height, greys(7)) + control(some) + frame(indices, 8, palette=greys(2)) + END
    yield "short_palette", screen(width, height, colors(3)) + plain + END
    yield "short_local_palette", screen(width, height, colors(7)) + frame(indices, 8, palette=colors(2)) + END
    yield "transparent", screen(width, height, colors(7)) + control(some) + plain + END
    yield "transparent_0", screen(width, height, colors(7)) + control(0) + plain + END
    yield "transparent_behind_palette", screen(width, height, colors(3)) + control(some) + plain + END
    yield "transparent_unused", screen(width, height, colors(7)) + control(255) + plain + END
    yield "opaque_control", screen(width, height, colors(7)) + control(None, 2, 10) + plain + END
    yield "controls", screen(width, height, colors(7)) + control(some) + control(3) + plain + END
    yield "control_without_transparency_last", screen(width, height, colors(7)) + control(some) + control() + plain + END


def canvas_cases(width, height):
    small = levels(width - 3, height - 2, 8)
    palette = colors(7)
    for name, at in (("left", (0, 1)), ("right", (3, 0)), ("middle", (1, 1))):
        yield f"smaller_{name}", screen(width, height, palette) + frame(small, 8, at) + END
        yield f"smaller_{name}_transparent", screen(width, height, palette) + control(9) + frame(small, 8, at) + END
    yield "smaller_interlaced", screen(width, height, palette) + frame(small, 8, (2, 1), interlaced=True) + END
    yield "smaller_grey", screen(width, height) + frame(small, 8, (1, 1)) + END
    yield "smaller_grey_transparent", screen(width, height) + control(200) + frame(small, 8, (1, 1)) + END
    yield "smaller_background", screen(width, height, palette, background=7) + frame(small, 8, (1, 1)) + END
    yield "larger", screen(2, 2, palette) + frame(levels(width, height, 8), 8) + END
    yield "larger_at", screen(width, height, palette) + frame(levels(width, height, 8), 8, (2, 3)) + END
    yield "no_screen", screen(0, 0, palette) + frame(small, 8, (1, 0)) + END
    yield "one_pixel", screen(1, 1, palette) + frame(levels(1, 1, 8), 8) + END
    yield "column", screen(1, 9, palette) + frame(levels(1, 9, 8), 8, interlaced=True) + END
    yield "empty_frame", screen(width, height, palette) + frame(small, 8, size=(0, 3)) + END


def block_cases(width, height):
    indices = levels(width, height, 8)
    start, plain = screen(width, height, colors(7)), frame(indices, 8)
    comment = b"!\xfe" + pieces(b"a comment " * 40)
    loop = b"!\xff\x0bNETSCAPE2.0\3\1\0\0\0"
    other = b"!\xff\x0bXMP DataXMP" + pieces(b"<x:xmpmeta tiff:Orientation=\"6\"/>")
    yield "comment", start + comment + plain + END
    yield "empty_comment", start + b"!\xfe\0" + plain + END
    yield "loop", start + loop + plain + END
    yield "loop_without_data", start + b"!\xff\x0bNETSCAPE2.0\0\0" + plain + END
    yield "application", start + other + plain + END
    yield "plain_text", start + b"!\x01" + pieces(bytes(12)) + plain + END
    yield "extension_without_data", start + b"!\x99\0" + plain + END
    yield "extension_without_data_twice_ended", start + b"!\x99\0\0" + plain + END
    yield "zeros_between", start + bytes(5) + plain + END
    yield "text_between", start + b"something" + plain + END
    yield "control_of_5", start + b"!\xf9\x05\1\0\0\7\7\0" + plain + END
    yield "control_of_3", start + b"!\xf9\x03\0\0\0\0" + plain + END
    yield "control_of_3_transparent", start + b"!\xf9\x03\1\0\0\0" + plain + END
    yield "control_of_2", start + b"!\xf9\x02\0\0\0" + plain + END
    yield "frames", start + control(3) + plain + control(4, 2) + frame(indices // 2, 8) + END
    yield "frame_behind_end", start + END + plain
    yield "no_frame", start + comment + END
    yield "nothing", start
    yield "without_end", start + plain
    yield "more_behind", start + plain + END + b"and more"


def code_cases(width, height):
    indices = levels(width, height, 8)
    start = screen(width, height, colors(7))
    flat = np.full((height, width), 200)
    yield "small_pieces", start + frame(indices, 8, length=3) + END
    yield "clears", start + frame(indices, 8, clear_every=7) + END
    yield "no_first_clear", start + frame(indices, 8, first_clear=False) + END
    yield "no_end_code", start + frame(indices, 8, end=False) + END
    yield "without_strings", start + frame(indices, 8, grow=False) + END
    yield "flat", start + frame(flat, 8) + END
    yield "flat_of_2", screen(width, height, colors(0)) + frame(flat // 200, 2) + END
    yield "codes_of_1_bit", screen(width, height, colors(0)) + frame(levels(width, height, 1), 1) + END
    noise = np.random.RandomState(1).randint(0, 256, (90, 90))
    yield "full_table", screen(90, 90, colors(7)) + frame(noise, 8) + END
    yield "first_code_repeats", start + struct.pack("<BHHHHB", 0x2C, 0, 0, width, height, 0) + b"\x08" + pieces(
        (256 | 258 << 9 | 257 << 18).to_bytes(4, "little")) + END
    yield "more_codes_than_pixels", start + frame(np.vstack([indices, indices]), 8, size=(width, height)) + END
    yield "fewer_codes_than_pixels", start + frame(indices[:-1], 8, size=(width, height)) + END


def damaged_cases(width, height):
    whole = screen(width, height, colors(7)) + frame(levels(width, height, 8), 8)
    yield "cut_terminator", whole[:-1]
    yield "cut_codes", whole[:-9]
    yield "cut_palette", whole[:300]
    yield "cut_frame", whole[: 13 + 768 + 5]
    yield "cut_screen", whole[:9]
    damaged = bytearray(whole)
    damaged[13 + 768 + 10 + 20] ^= 0xFF
    yield "unknown_code", bytes(damaged)


def pillow_cases(width, height):
    """As Pillow's own encoder writes them."""
    rgb = Image.fromarray((waves(width, height, 3) >> 8).astype(np.uint8))
    grey = Image.fromarray((waves(width, height, 1)[..., 0] >> 8).astype(np.uint8))
    rgba = Image.fromarray((waves(width, height, 4) >> 8).astype(np.uint8), "RGBA")
    for name, image, options in (
        ("rgb", rgb, {}),
        ("grey", grey, {}),
        ("bilevel", grey.convert("1"), {}),
        ("rgba", rgba, {}),
        ("straight", rgb, {"interlace": 0}),
        ("animation", rgb, {"save_all": True, "append_images": [rgb.rotate(180)], "loop": 0, "duration": 40}),
        ("rgba_animation", rgba, {"save_all": True, "append_images": [rgba.rotate(180)], "disposal": 2}),
    ):
        file = io.BytesIO()
        image.save(file, "GIF", **options)
        yield f"pillow_{name}", file.getvalue()
