"""BMP files of every header, depth, layout of bits and coding, for tools/image_formats.py."""

import struct

import numpy as np

from media_profiles import packed_rows, waves

RAW, RLE8, RLE4, BIT_FIELDS, JPEG = range(5)


def colors(count, entry_bytes=4):
    """A palette that is no grey scale."""
    return b"".join(bytes((37 * i + 91 * c + 5) % 256 for c in range(3)) + bytes(entry_bytes - 3) for i in range(count))


def greys(levels, entry_bytes=4):
    return b"".join(bytes([level] * 3) + bytes(entry_bytes - 3) for level in levels)


def header(width, height, bits, kind=40, compression=RAW, num_colors=0, masks=()):
    """Of the image, of `kind` bytes, and the masks of bit fields."""
    if kind == 12:
        return struct.pack("<IHHHH", kind, width, height, 1, bits)
    fields = struct.pack("<IiiHHIIiiII", kind, width, height, 1, bits, compression, 0, 2835, 2835, num_colors, 0)
    masks = struct.pack(f"<{len(masks)}I", *masks)
    return (fields + masks).ljust(kind, b"\0")


def bmp(head, pixels, palette=b"", offset=None, gap=b""):
    at = 14 + len(head) + len(palette) + len(gap)
    start = b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at if offset is None else offset)
    return start + head + palette + gap + pixels


def rows(width, height, bits):
    """Rows as BMP stores them. Of 16 bits and more, each pixel is of whole bytes."""
    if bits <= 8:
        samples = waves(width, height, 1) >> (16 - bits)
        packed = packed_rows(samples, bits)
        step = 1 + (width * bits + 7) // 8  # a PNG row begins with its filter
        lines = [packed[y * step + 1 : (y + 1) * step] for y in range(height)]
    else:
        lines = [(line >> 8).astype(np.uint8).tobytes() for line in waves(width, height, bits // 8)]
    return b"".join(line + bytes(-len(line) % 4) for line in lines)


def plain_cases(width, height):
    """Every depth below every header."""
    for bits in (1, 4, 8, 16, 24, 32):
        pixels = rows(width, height, bits)
        count = 1 << bits if bits <= 8 else 0
        for kind in (12, 40, 52, 56, 64, 108, 124):
            if kind in (40, 12) or bits in (8, 32):
                yield f"rows{bits}_{kind}", bmp(header(width, height, bits, kind), pixels, colors(count, 3 if kind == 12 else 4))
        yield f"top_down{bits}", bmp(header(width, -height, bits), pixels, colors(count))


def palette_cases(width, height):
    head = lambda bits, count=0: header(width, height, bits, num_colors=count)
    grey = [rows(width, height, bits) for bits in (1, 4, 8)]
    yield "grey1", bmp(head(1), grey[0], greys((0, 255)))
    yield "grey1_inverted", bmp(head(1), grey[0], greys((255, 0)))
    yield "grey1_of_one", bmp(head(1, 1), grey[0], greys((0,)))
    yield "grey4", bmp(head(4), grey[1], greys(range(16)))
    yield "grey4_scaled", bmp(head(4), grey[1], greys(range(0, 256, 17)))
    yield "grey8", bmp(head(8), grey[2], greys(range(256)))
    yield "grey8_of_two", bmp(head(8, 2), grey[2], greys((0, 255)))
    yield "grey8_of_ninety", bmp(head(8, 90), grey[2], greys(range(90)))
    yield "palette_of_ninety", bmp(head(8, 90), grey[2], colors(90))
    yield "palette_of_300", bmp(head(8, 300), grey[2], colors(300))
    yield "palette_of_70000", bmp(head(8, 70000), grey[2], colors(256))
    yield "palette_named_as_pixels", bmp(head(8), grey[2], colors(256), offset=54)
    yield "palette_without_offset", bmp(head(8), grey[2], colors(256), offset=0)
    yield "palette_and_gap", bmp(head(4), grey[1], colors(16), gap=b"nothing")
    yield "narrow_grey4", bmp(header(3, height, 4), rows(3, height, 4), greys(range(16)))


def bit_field_cases(width, height):
    layouts = {
        "555": (16, (0x7C00, 0x3E0, 0x1F)),
        "565": (16, (0xF800, 0x7E0, 0x1F)),
        "444": (16, (0xF00, 0xF0, 0xF)),
        "888": (24, (0xFF0000, 0xFF00, 0xFF)),
        "bgrx": (32, (0xFF0000, 0xFF00, 0xFF)),
        "xbgr": (32, (0xFF000000, 0xFF0000, 0xFF00)),
        "bgxr": (32, (0xFF000000, 0xFF00, 0xFF)),
        "abgr": (32, (0xFF000000, 0xFF0000, 0xFF00, 0xFF)),
        "rgba": (32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
        "bgra": (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
        "bgar": (32, (0xFF000000, 0xFF00, 0xFF, 0xFF0000)),
        "zeros": (32, (0, 0, 0)),
        "rbg": (32, (0xFF0000, 0xFF, 0xFF00)),
        "of_8": (8, (0xFF0000, 0xFF00, 0xFF)),
    }
    for name, (bits, masks) in layouts.items():
        pixels = rows(width, height, bits)
        kinds = (40, 52, 56) if name in ("565", "zeros") else (56 if len(masks) == 4 else 40,)
        for kind in kinds:
            yield f"fields_{name}_{kind}", bmp(header(width, height, bits, kind, BIT_FIELDS, masks=masks), pixels)
    top_down = header(width, -height, 32, 124, BIT_FIELDS, masks=layouts["bgra"][1])
    yield "fields_top_down", bmp(top_down, rows(width, height, 32))


def runs(indices, literal, nibbles=False):
    """One row, as pairs of a run or as literal pixels."""
    pack = lambda part: bytes(a << 4 | b for a, b in zip(part[::2], [*part[1::2], 0])) if nibbles else bytes(part)
    out = b""
    while indices:
        if literal and len(indices) > 2:
            part, indices = indices[:200], indices[200:]
            data = pack(part)
            out += bytes([0, len(part)]) + data + bytes(len(data) % 2)
        else:
            same = next((i for i, value in enumerate(indices) if value != indices[0]), len(indices))
            same = min(same, 255)
            out += bytes([same, indices[0] * 17 if nibbles else indices[0]])
            indices = indices[same:]
    return out


def run_cases(width, height):
    for bits, compression in ((8, RLE8), (4, RLE4)):
        samples = waves(width, height, 1)[..., 0] >> (16 - bits)
        lines = [[int(v) for v in line] for line in samples]
        head = header(width, height, bits, compression=compression)
        palette = colors(1 << bits)
        end_of_row, end = b"\0\0", b"\0\1"
        join = lambda parts, between=end_of_row: between.join(parts)
        plain = [runs(line, False, bits == 4) for line in lines]
        literal = [runs(line, True, bits == 4) for line in lines]
        full = bytes([width, 0x21]) if width < 256 else bytes([255, 0x21, width - 255, 0x21])
        cases = {
            "pairs": join(plain) + end,
            "literal": join(literal) + end,
            "mixed": join(literal[:2] + plain[2:]) + end,
            "without_end": join(plain),
            "without_rows": join(literal, b""),
            "short_rows": join([bytes([2, 0x21])] * height) + end_of_row + end,
            "long_rows": join([bytes([255, 0x21])] * height) + end,
            "delta": full + end_of_row + bytes([3, 0x31, 0, 2, 2, 1]) + bytes([2, 0x12, 0, 2, 255, 255]),
            "ends_early": join(plain[:2]) + end,
            "cut": join(plain)[:-3],
            "cut_literal": join(literal)[:-3],
            "empty": end,
        }
        for name, data in cases.items():
            yield f"rle{bits}_{name}", bmp(head, data, palette)
        yield f"rle{bits}_odd_place", bmp(head, cases["literal"], palette, gap=b"x")
        yield f"rle{bits}_top_down", bmp(header(width, -height, bits, compression=compression), cases["mixed"], palette)
        yield f"rle{bits}_grey", bmp(head, cases["mixed"], greys(range(1 << bits)))
        two = header(width, height, bits, compression=compression, num_colors=2)
        yield f"rle{bits}_black_and_white", bmp(two, cases["mixed"], greys((0, 255)))
        swapped = header(width, height, 12 - bits, compression=compression)
        yield f"rle{bits}_of_{12 - bits}_bits", bmp(swapped, cases["mixed"], colors(1 << (12 - bits)))
    yield "rle8_of_24_bits", bmp(header(width, height, 24, compression=RLE8), bytes([width % 256, 1]) * height)


def damaged_cases(width, height):
    pixels = rows(width, height, 24)
    head = header(width, height, 24)
    whole = bmp(head, pixels)
    yield "cut_padding", whole[: len(whole) - (-width * 3 % 4)]
    yield "cut_pixels", whole[: len(whole) - (-width * 3 % 4) - 1]
    yield "cut_palette", bmp(header(width, height, 8), b"", colors(100))
    yield "cut_header", whole[:50]
    yield "longer", whole + b"and more"
    yield "pixels_in_header", bmp(head, pixels, offset=20)
    yield "pixels_behind_end", bmp(head, pixels, offset=len(whole) + 1)
    yield "header_of_41_bytes", bmp(struct.pack("<I", 41) + head[4:], pixels)
    yield "bits_3", bmp(header(width, height, 3), pixels, colors(8))
    yield "jpeg_inside", bmp(header(width, height, 24, compression=JPEG), pixels)
    yield "no_columns", bmp(header(0, height, 24), pixels)
    yield "no_rows", bmp(header(width, 0, 24), pixels)


def made_images(width, height):
    for cases in (plain_cases, palette_cases, bit_field_cases, run_cases, damaged_cases):
        for name, data in cases(width, height):
            yield f"{name}.bmp", data
