"""TIFF files of every layout of samples and strips, and of the usual compressions, for tools/image_formats.py."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

from media_profiles import XMP_ELEMENT, waves

NONE, PACKBITS, DEFLATE, OLD_JPEG = 1, 32773, 8, 6
GREY_WHITE, GREY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
UNSIGNED, SIGNED, FLOAT = 1, 2, 3
WIDTH, LENGTH, BITS, COMPRESSION, PHOTOMETRIC, FILL_ORDER, OFFSETS = 256, 257, 258, 259, 262, 266, 273
ORIENTATION, SAMPLES, ROWS, COUNTS, PLANAR, COLORMAP = 274, 277, 278, 279, 284, 320
TILE_WIDTH, TILE_LENGTH, TILE_OFFSETS, TILE_COUNTS, EXTRA, FORMAT, XMP = 322, 323, 324, 325, 338, 339, 700


def packed(samples, bits, order):
    """Rows of samples [height, width, channels] as TIFF stores them."""
    if samples.dtype == np.float32 or bits >= 16:
        kind = {True: "f4", False: f"u{bits // 8}"}[samples.dtype == np.float32]
        return [row.astype(order + kind).tobytes() for row in samples]
    planes = (samples[..., None].astype(np.uint32) >> np.arange(bits - 1, -1, -1, dtype=np.uint32)) & 1
    return [row.tobytes() for row in np.packbits(planes.reshape(len(samples), -1).astype(np.uint8), axis=1)]


def packbits(data):
    return b"".join(bytes([len(data[i : i + 100]) - 1]) + data[i : i + 100] for i in range(0, len(data), 100))


def compressed(rows, compression, low_bit_first):
    data = b"".join(rows)
    if compression == DEFLATE:
        data = zlib.compress(data)
    if compression == PACKBITS:
        data = b"".join(packbits(row) for row in rows)
    return bytes(int(f"{v:08b}"[::-1], 2) for v in data) if low_bit_first else data


def directory(fields, order, big=False):
    """Bytes of the fields behind a header, and the place of what lies further away."""
    entry, far = b"", b""
    start = (16 + 8 if big else 8 + 2) + len(fields) * (20 if big else 12) + (8 if big else 4)
    near = 8 if big else 4
    for tag, (kind, values) in sorted(fields.items()):
        layout = {1: "B", 2: "B", 3: "H", 4: "L", 7: "B", 16: "Q"}[kind]
        data = struct.pack(order + str(len(values)) + layout, *values)
        entry += struct.pack(order + ("HHQ" if big else "HHL"), tag, kind, len(values))
        if len(data) <= near:
            entry += data.ljust(near, b"\0")
        else:
            entry += struct.pack(order + ("Q" if big else "L"), start + len(far))
            far += data + bytes(len(data) % 2)
    count = struct.pack(order + ("Q" if big else "H"), len(fields))
    return count + entry + bytes(8 if big else 4) + far, start + len(far)


def tiff(samples, photometric, bits=8, order="<", compression=NONE, rows=None, tile=None, planar=False, extra=None,
         low_bit_first=False, big=False, more=None, without=()):
    """`samples` are [height, width, channels]; `rows` of a strip, `tile` is a width and a height."""
    height, width, channels = samples.shape
    planes = [samples[..., c : c + 1] for c in range(channels)] if planar else [samples]
    chunks = []
    for plane in planes:
        if tile:
            for y in range(0, height, tile[1]):
                for x in range(0, width, tile[0]):
                    part = np.zeros((tile[1], tile[0], plane.shape[2]), plane.dtype)
                    inside = plane[y : y + tile[1], x : x + tile[0]]
                    part[: inside.shape[0], : inside.shape[1]] = inside
                    chunks.append(part)
        else:
            step = rows or height
            chunks += [plane[y : y + step] for y in range(0, height, step)]
    data = [compressed(packed(chunk, bits, order), compression, low_bit_first) for chunk in chunks]
    offsets, counts = (TILE_OFFSETS, TILE_COUNTS) if tile else (OFFSETS, COUNTS)
    fields = {WIDTH: (4, [width]), LENGTH: (4, [height]), BITS: (3, [bits] * channels), COMPRESSION: (3, [compression]),
              PHOTOMETRIC: (3, [photometric]), SAMPLES: (3, [channels]), PLANAR: (3, [2 if planar else 1]),
              offsets: (4, [0] * len(data)), counts: (4, [len(part) for part in data])}
    if tile:
        fields |= {TILE_WIDTH: (4, [tile[0]]), TILE_LENGTH: (4, [tile[1]])}
    else:
        fields[ROWS] = (4, [rows or height])
    if extra is not None:
        fields[EXTRA] = (3, extra)
    if low_bit_first:
        fields[FILL_ORDER] = (3, [2])
    fields |= more or {}
    fields = {tag: value for tag, value in fields.items() if tag not in without}
    place = directory(fields, order, big)[1]
    fields[offsets] = (4, [place + sum(map(len, data[:i])) for i in range(len(data))])
    mark = b"II" if order == "<" else b"MM"
    head = mark + (struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HL", 42, 8))
    return head + directory(fields, order, big)[0] + b"".join(data)


def kind_of(format):
    return lambda count=1: {FORMAT: (3, [format] * count)}


signed, floating = kind_of(SIGNED), kind_of(FLOAT)


def colormap(bits):
    return {COLORMAP: (3, [(9973 * i + 20011 * c + 300) % 65536 for c in range(3) for i in range(1 << bits)])}


def samples(width, height, channels, bits):
    return waves(width, height, channels) >> (16 - bits) if bits <= 16 else waves(width, height, channels).astype(np.uint32)


def grey_cases(width, height):
    for bits in (1, 2, 4, 8, 16):
        for photometric in (GREY_WHITE, GREY):
            for order in "<>":
                name = f"grey{bits}{'_white' * (photometric == GREY_WHITE)}{'_big' * (order == '>')}"
                yield name, tiff(samples(width, height, 1, bits), photometric, bits, order)
        yield f"grey{bits}_low_first", tiff(samples(width, height, 1, bits), GREY, bits, low_bit_first=True)
        yield (f"grey{bits}_low_first_deflate",
               tiff(samples(width, height, 1, bits), GREY_WHITE, bits, low_bit_first=True, compression=DEFLATE))
    twelve = samples(width, height, 1, 12) // np.array([1, 20])[np.arange(height) % 2][:, None, None].astype(np.uint16)
    yield "grey12", tiff(twelve, GREY, 12)
    yield "grey12_deflate", tiff(twelve, GREY, 12, compression=DEFLATE)
    yield "grey12_big", tiff(twelve, GREY, 12, ">")
    yield "grey3", tiff(samples(width, height, 1, 3), GREY, 3)
    some = (np.arange(height * width).reshape(height, width, 1) * 37 - 300).astype(np.int32)
    for order in "<>":
        for compression in (NONE, DEFLATE):
            end = "_big" * (order == ">") + "_deflate" * (compression == DEFLATE)
            options = {"order": order, "compression": compression}
            yield f"signed8{end}", tiff((some & 255).astype(np.uint16), GREY, 8, more=signed(), **options)
            yield f"signed16{end}", tiff((some & 65535).astype(np.uint16), GREY, 16, more=signed(), **options)
            yield f"signed32{end}", tiff(some.astype(np.uint32), GREY, 32, more=signed(), **options)
            yield f"unsigned32{end}", tiff((some * 99991).astype(np.uint32), GREY, 32, **options)
            yield f"float{end}", tiff((some / 3).astype(np.float32), GREY, 32, more=floating(), **options)
            yield f"grey16_strips{end}", tiff(samples(width, height, 1, 16), GREY, 16, rows=2, **options)
    odd = (some / 3).astype(np.float32)
    odd[0, :3, 0] = np.nan, np.inf, -np.inf
    yield "float_white_odd", tiff(odd, GREY_WHITE, 32, more=floating())
    two = samples(width, height, 2, 8)
    for kind in range(4):
        yield f"grey_alpha_{kind}", tiff(two, GREY, extra=[kind])
    yield "grey_alpha_planar", tiff(two, GREY, extra=[2], planar=True, compression=DEFLATE)
    yield "grey_alpha_missing", tiff(two, GREY)
    yield "signed8_white", tiff((some & 255).astype(np.uint16), GREY_WHITE, 8, more=signed())
    yield "no_photometric", tiff(samples(width, height, 1, 8), GREY, without=[PHOTOMETRIC])
    yield "void", tiff(samples(width, height, 1, 8), GREY, more=kind_of(4)())


def color_cases(width, height):
    rgb, rgba = samples(width, height, 3, 8), samples(width, height, 4, 8)
    deep, deep4 = samples(width, height, 3, 16), samples(width, height, 4, 16)
    for order in "<>":
        for compression in (NONE, DEFLATE):
            end = "_big" * (order == ">") + "_deflate" * (compression == DEFLATE)
            options = {"order": order, "compression": compression}
            yield f"rgb{end}", tiff(rgb, RGB, **options)
            yield f"rgb16{end}", tiff(deep, RGB, 16, **options)
            yield f"rgba16{end}", tiff(deep4, RGB, 16, extra=[2], **options)
            yield f"cmyk16{end}", tiff(deep4, CMYK, 16, **options)
            yield f"rgb_planar{end}", tiff(rgb, RGB, planar=True, rows=2, **options)
    yield "rgb16_planar_deflate", tiff(deep, RGB, 16, planar=True, compression=DEFLATE)
    yield "rgb_low_first", tiff(rgb, RGB, low_bit_first=True)
    yield "rgb_packbits", tiff(rgb, RGB, compression=PACKBITS, rows=2)
    for kind in (0, 1, 2, 3, 999):
        yield f"rgba_{kind}", tiff(rgba, RGB, extra=[kind])
        yield f"rgba16_{kind}", tiff(deep4, RGB, 16, extra=[kind])
        five = samples(width, height, 5, 8)
        yield f"five_{kind}", tiff(five, RGB, extra=[kind, 0])
        six = samples(width, height, 6, 8)
        yield f"six_{kind}", tiff(six, RGB, extra=[kind, 0, 0], compression=DEFLATE)
    yield "rgba_missing", tiff(rgba, RGB)
    yield "rgba_planar_deflate", tiff(rgba, RGB, extra=[2], planar=True, compression=DEFLATE)
    yield "cmyk", tiff(rgba, CMYK)
    yield "cmyk_strips", tiff(rgba, CMYK, rows=3, compression=DEFLATE)
    yield "cmyk_planar", tiff(rgba, CMYK, planar=True, compression=DEFLATE)
    yield "cmyk_extra", tiff(samples(width, height, 5, 8), CMYK, extra=[0])
    yield "cmyk_alpha", tiff(samples(width, height, 5, 8), CMYK, extra=[2])
    yield "seven", tiff(samples(width, height, 7, 8), RGB, extra=[0] * 4)
    for bits in (1, 2, 4, 8):
        yield f"palette{bits}", tiff(samples(width, height, 1, bits), PALETTE, bits, more=colormap(bits))
        yield (f"palette{bits}_low_first",
               tiff(samples(width, height, 1, bits), PALETTE, bits, low_bit_first=True, more=colormap(bits)))
    yield "palette_deflate", tiff(samples(width, height, 1, 8), PALETTE, compression=DEFLATE, more=colormap(8), rows=2)
    for kind in (0, 1, 2):
        yield f"palette_extra_{kind}", tiff(samples(width, height, 2, 8), PALETTE, extra=[kind], more=colormap(8))
    yield "palette_missing", tiff(samples(width, height, 1, 8), PALETTE)


def chunk_cases(width, height):
    rgb = samples(width, height, 3, 8)
    for compression in (NONE, DEFLATE):
        end = "_deflate" * (compression == DEFLATE)
        yield f"tiles{end}", tiff(rgb, RGB, tile=(16, 16), compression=compression)
        yield f"tiles_small{end}", tiff(samples(37, 21, 1, 8), GREY, tile=(16, 16), compression=compression)
        yield f"tiles_planar{end}", tiff(samples(37, 21, 3, 8), RGB, tile=(16, 16), planar=True, compression=compression)
        yield f"tiles16{end}", tiff(samples(37, 21, 1, 16), GREY, 16, tile=(32, 16), compression=compression)
        yield f"tiles1{end}", tiff(samples(37, 21, 1, 1), GREY, 1, tile=(16, 16), compression=compression)
        yield f"rows_1{end}", tiff(rgb, RGB, rows=1, compression=compression)
        yield f"rows_many{end}", tiff(rgb, RGB, compression=compression, more={ROWS: (4, [0xFFFFFFFF])})
        yield f"rows_missing{end}", tiff(rgb, RGB, compression=compression, without=[ROWS])
    yield "big_tiff", tiff(rgb, RGB, big=True)
    yield "big_tiff_big", tiff(rgb, RGB, big=True, order=">", compression=DEFLATE)
    for code in (*range(10), 300):
        yield f"orientation_{code}", tiff(rgb, RGB, more={ORIENTATION: (3, [code])}, rows=2, compression=DEFLATE if code % 2 else NONE)
    yield "orientation_6_tiles", tiff(samples(37, 21, 3, 8), RGB, tile=(16, 16), more={ORIENTATION: (3, [6])})
    yield "orientation_5_alpha", tiff(samples(width, height, 4, 8), RGB, extra=[2], more={ORIENTATION: (3, [5])})
    packet = {XMP: (1, list(XMP_ELEMENT))}
    yield "xmp", tiff(rgb, RGB, more=packet)
    yield "xmp_and_orientation_3", tiff(rgb, RGB, more=packet | {ORIENTATION: (3, [3])})


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "TIFF", **options)
    return file.getvalue()


def library_cases(width, height):
    """As libtiff writes them."""
    rgb = Image.fromarray((waves(width, height, 3) >> 8).astype(np.uint8))
    larger = Image.fromarray((waves(21, 18, 3) >> 8).astype(np.uint8))
    grey, bilevel = rgb.convert("L"), larger.convert("1")
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits"):
        yield f"library_{compression}", saved(rgb, compression=compression)
        yield f"library_{compression}_grey", saved(grey, compression=compression)
    yield "library_lzw_predictor", saved(rgb, compression="tiff_lzw", tiffinfo={317: 2})
    yield "library_deflate_predictor16", saved(Image.fromarray(waves(width, height, 1)[..., 0]), compression="tiff_adobe_deflate", tiffinfo={317: 2})
    for compression in ("tiff_ccitt", "group3", "group4"):
        yield f"library_{compression}", saved(bilevel, compression=compression)
        yield f"library_{compression}_strips", saved(bilevel, compression=compression, tiffinfo={278: 5})
    yield "library_group4_white", saved(bilevel, compression="group4", tiffinfo={262: 0})
    yield "library_jpeg", saved(larger, compression="jpeg", quality=80)
    yield "library_jpeg_grey", saved(larger.convert("L"), compression="jpeg")
    yield "library_jpeg_cmyk", saved(larger.convert("CMYK"), compression="jpeg")
    yield "library_jpeg_ycbcr", saved(larger.convert("YCbCr"), compression="jpeg")
    yield "library_jpeg_strips", saved(larger, compression="jpeg", tiffinfo={278: 16})
    yield "library_lzw_ycbcr", saved(larger.convert("YCbCr"), compression="tiff_lzw")
    yield "library_deflate_ycbcr_strips", saved(larger.convert("YCbCr"), compression="tiff_adobe_deflate", tiffinfo={278: 8})
    yield "library_pages", saved(rgb, save_all=True, append_images=[larger], compression="tiff_lzw")
    yield "library_big_tiff", saved(rgb, compression="tiff_lzw", big_tiff=True)
    yield "library_zstd", saved(rgb, compression="zstd")
    yield "library_lzma", saved(rgb, compression="lzma")
    yield "library_lab", saved(Image.fromarray((waves(width, height, 3) >> 8).astype(np.uint8), "LAB"), compression="tiff_lzw")
    yield "raw_ycbcr", saved(larger.convert("YCbCr"))


def damaged_cases(width, height):
    rgb = samples(width, height, 3, 8)
    whole = tiff(rgb, RGB, compression=DEFLATE, rows=2)
    yield "cut_pixels", tiff(rgb, RGB)[:-1]
    yield "cut_deflate", whole[:-9]
    yield "cut_directory", whole[:60]
    yield "cut_header", whole[:7]
    yield "no_directory", whole[:4] + bytes(4)
    damaged = bytearray(whole)
    damaged[-20] ^= 0xFF
    yield "damaged_deflate", bytes(damaged)
    yield "no_width", tiff(rgb, RGB, without=[WIDTH])
    yield "no_offsets", tiff(rgb, RGB, without=[COUNTS, OFFSETS])
    yield "no_rows", tiff(rgb, RGB, more={LENGTH: (4, [0])})
    yield "old_jpeg", tiff(rgb, RGB, more={COMPRESSION: (3, [OLD_JPEG])})
    yield "unknown_compression", tiff(rgb, RGB, more={COMPRESSION: (3, [77])})
    yield "lab", tiff(rgb, LAB)
    yield "longer", whole + b"and more"


# Pillow reads them and Fovea does not: what they need is rare, and costs memory that no header names.
UNSUPPORTED = {"library_zstd", "library_lzma", "library_lab", "raw_ycbcr", "lab", "grey_alpha_planar"}
# Pillow refuses them; libtiff repairs or reads them.
LAXER = {"five_999", "six_999", "rgba16_999", "palette1_low_first", "palette2_low_first", "palette4_low_first",
         "palette_missing"}


def made_images(width, height):
    for cases in (grey_cases, color_cases, chunk_cases, library_cases, damaged_cases):
        for name, data in cases(width, height):
            if name not in UNSUPPORTED | LAXER:
                yield f"{name}.tiff", data
