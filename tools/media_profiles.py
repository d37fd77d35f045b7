#!/usr/bin/env python3
"""Images of every kind that a media profile treats in its own way, and their pixels by each profile.

    python3 tools/media_profiles.py tests/media/profiles.safetensors

writes the golden file of tests/media: tensor NAME holds an encoded image, NAME:PROFILE,... its pixels [height, width, 3]
by one or several profiles. The profiles are Pillow calls in the order in which the loaders make them;
tools/compare_media_with_vllm.py holds them against the loaders themselves. Needs numpy, pillow and safetensors.
"""

import contextlib
import io
import struct
import sys
import warnings
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps
from safetensors.numpy import save_file

# --- the profiles ---


def upright(image):
    with contextlib.suppress(Exception):
        return ImageOps.exif_transpose(image)
    return image


def on_white(rgba):
    rgb = Image.new("RGB", rgba.size, (255, 255, 255))
    rgb.paste(rgba, mask=rgba.getchannel("A"))
    return rgb


def as_vllm(image):
    image = upright(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        return on_white(image.convert("RGBA"))
    return image.convert("RGB")


def as_vllm_023(image):
    return on_white(image) if image.mode == "RGBA" else image.convert("RGB")


def as_transformers(image):
    return ImageOps.exif_transpose(image).convert("RGB")


def as_sglang(image):
    return image.convert("RGB")


PROFILES = {"vllm": as_vllm, "vllm-0.23": as_vllm_023, "transformers": as_transformers, "sglang": as_sglang}


def pixels(data, profile):
    """Pixels [height, width, 3], or None if the loader refuses the image."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = Image.open(io.BytesIO(data))
            image.load()  # refused here; vLLM's loader ignores errors while it turns, and black images follow
            return np.asarray(PROFILES[profile](image))
        except (OSError, SyntaxError, ValueError, IndexError, RuntimeError, struct.error):
            return None


# --- metadata ---

XMP_ATTRIBUTE = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
XMP_ELEMENT = b"<x:xmpmeta><tiff:Orientation>8</tiff:Orientation></x:xmpmeta>"


SHORT, LONG, RATIONAL, SIGNED_SHORT, DOUBLE, BYTE, ASCII = 3, 4, 5, 8, 12, 1, 2


def exif(orientation, order="<", magic=None, tag=0x0112, kind=SHORT, layout="H", count=1):
    """A TIFF block of two entries: a width, then `count` times an orientation of a type with this layout."""
    magic = magic or (b"II*\0" if order == "<" else b"MM\0*")
    value = struct.pack(order + layout, orientation, *[1] * (len(layout) - 1)) * count
    near = len(value) <= 4
    end = 8 + 2 + 2 * 12 + 4
    head = magic + struct.pack(order + "LHHHLHH", 8, 2, 0x0100, SHORT, 1, 640, 0)
    entry = struct.pack(order + "HHL", tag, kind, count)
    entry += value.ljust(4, b"\0") if near else struct.pack(order + "L", end)
    return head + entry + bytes(4) + (b"" if near else value)


def metadata_cases():
    """Name: EXIF block or None, XMP packet or None."""
    cases = {f"exif_{o}": (exif(o, "<>"[o % 2]), None) for o in range(1, 9)}
    return cases | {
        "exif_0": (exif(0), None),
        "exif_9": (exif(9), None),
        "exif_long": (exif(6, kind=LONG, layout="L"), None),
        "exif_signed": (exif(6, ">", kind=SIGNED_SHORT), None),
        "exif_byte": (exif(6, kind=BYTE, layout="B"), None),
        "exif_text": (exif(ord("6"), kind=ASCII, layout="B", count=2), None),
        "exif_rational": (exif(6, kind=RATIONAL, layout="LL"), None),
        "exif_double": (exif(6, ">", kind=DOUBLE, layout="d"), None),
        "exif_two_values": (exif(6, count=2), None),
        "exif_three_values": (exif(6, count=3), None),
        "exif_no_values": (exif(6, count=0), None),
        "exif_swapped_magic": (exif(6, magic=b"II\0*"), None),
        "exif_big_tiff_magic": (exif(6, ">", magic=b"MM\0+"), None),
        "exif_prefixed": (b"Exif\0\0" + exif(6), None),
        "exif_cut_behind": (exif(6)[:-4], None),
        "exif_cut_inside": (exif(6)[:-6], XMP_ELEMENT),
        "exif_far_value_cut": (exif(6, count=3)[:-1], XMP_ELEMENT),
        "exif_not_tiff": (b"XX*\0" + exif(6)[4:], XMP_ELEMENT),
        "exif_other_tag": (exif(6, tag=0x0113), None),
        "exif_other_tag_and_xmp": (exif(6, tag=0x0113), XMP_ELEMENT),
        "exif_1_and_xmp": (exif(1), XMP_ELEMENT),
        "xmp_attribute": (None, XMP_ATTRIBUTE),
        "xmp_element": (None, XMP_ELEMENT),
        "xmp_other": (None, b"<x:xmpmeta tiff:Orientation='6'/>"),
    }


# --- containers ---


def waves(width, height, channels):
    """Smooth values of 16 bits, some of whose low and high bytes meet."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [32767 + 25000 * np.sin(x / 3 + c) + 7000 * np.cos(y / 2 * (c + 1)) for c in range(channels)]
    values = np.stack(planes, -1).astype(np.uint16)
    values[::2] = values[::2] // 257 * 257
    values[::3, ::2] >>= 8
    return values


def with_segments(jpeg, segments):
    packed = b"".join(b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment for segment in segments)
    return jpeg[:2] + packed + jpeg[2:]


def jpeg(width, height, block=None, xmp=None, mode="RGB"):
    file = io.BytesIO()
    samples = (waves(width, height, len(mode)) >> 8).astype(np.uint8)
    Image.fromarray(samples.squeeze(), mode=mode).save(file, "JPEG", quality=90)
    segments = [b"Exif\0\0" + block] if block is not None else []
    segments += [b"http://ns.adobe.com/xap/1.0/\0" + xmp] if xmp is not None else []
    return with_segments(file.getvalue(), segments)


def webp(width, height, mode="RGB", block=None, xmp=None, **options):
    file = io.BytesIO()
    image = Image.fromarray((waves(width, height, len(mode)) >> 8).astype(np.uint8), mode)
    if "save_all" in options:
        options["append_images"] = [image.rotate(180)]
    image.save(file, "WEBP", exif=block or b"", xmp=xmp or b"", **options)
    return file.getvalue()


def chunk(kind, payload):
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def packed_rows(samples, bits):
    """Rows as PNG stores them, unfiltered. samples: [height, width, channels], each below 2^bits."""
    planes = (samples[..., None] >> np.arange(bits - 1, -1, -1, dtype=np.uint16)) & 1
    rows = np.packbits(planes.reshape(len(samples), -1).astype(np.uint8), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in rows) if samples.size else b""


GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(width, height, color=RGB, bits=8, before=(), after=(), interlaced=False, samples=None):
    """A PNG with the chunks `before` its pixels and those `after` them."""
    if samples is None:
        samples = waves(width, height, CHANNELS[color]) >> (16 - bits)
    passes = [samples[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [samples]
    rows = b"".join(packed_rows(part, bits) for part in passes)
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)
    chunks = [chunk(b"IHDR", head), *before, chunk(b"IDAT", zlib.compress(rows, 9)), *after, chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def palette(entries):
    return chunk(b"PLTE", bytes((37 * i + 91 * c + 5) % 256 for i in range(entries) for c in range(3)))


def transparency_cases(width, height):
    """Every PNG layout with transparency, straight and interlaced."""
    grey = lambda value: [chunk(b"tRNS", struct.pack(">H", value))]
    color = lambda *values: [chunk(b"tRNS", struct.pack(">HHH", *values))]
    alphas = lambda *values: chunk(b"tRNS", bytes(values))
    at = waves(width, height, 3)[2, 3]  # a colour that occurs
    layouts = {
        "rgba8": (RGBA, 8, []),
        "rgba16": (RGBA, 16, []),
        "la8": (GREY_ALPHA, 8, []),
        "la16": (GREY_ALPHA, 16, []),
        "l1_first": (GREY, 1, grey(0)),
        "l1_second": (GREY, 1, grey(2)),
        "l2": (GREY, 2, grey(2)),
        "l2_scaled": (GREY, 2, grey(170)),
        "l4": (GREY, 4, grey(8)),
        "l4_scaled": (GREY, 4, grey(0xF088)),
        "l8": (GREY, 8, grey(at[0] >> 8)),
        "l16": (GREY, 16, grey(at[0])),
        "l16_low": (GREY, 16, grey(int(waves(width, height, 1)[0, 0, 0]))),
        "l16_bright": (GREY, 16, grey(0x12FF)),
        "rgb8": (RGB, 8, color(*(at >> 8))),
        "rgb8_high_bits": (RGB, 8, color(*((at >> 8) | 0x300))),
        "rgb16": (RGB, 16, color(*at)),
        "rgb16_low": (RGB, 16, color(*(at >> 8))),
        "p1": (PALETTE, 1, [palette(2), alphas(128)]),
        "p2": (PALETTE, 2, [palette(4), alphas(255, 0)]),
        "p4": (PALETTE, 4, [palette(16), alphas(*range(0, 256, 17))]),
        "p8": (PALETTE, 8, [palette(256), alphas(*range(255, 99, -1))]),
        "p8_one": (PALETTE, 8, [palette(256), alphas(*([255] * 100), 0, 255)]),
        "p8_opaque": (PALETTE, 8, [palette(256), alphas(255, 255)]),
        "p8_empty": (PALETTE, 8, [palette(256), alphas()]),
        "p8_long": (PALETTE, 8, [palette(90), alphas(*range(200))]),
        "p8_short_palette": (PALETTE, 8, [palette(90), alphas(7)]),
        "l8_twice": (GREY, 8, grey(1) + grey(at[0] >> 8)),
        "rgba8_with_key": (RGBA, 8, color(*(at >> 8))),
    }
    for name, (kind, bits, before) in layouts.items():
        for interlaced in (False, True):
            yield f"{name}{'_interlaced' * interlaced}.png", png(width, height, kind, bits, before, (), interlaced)


def raw_profile(block):
    digits = (b"Exif\0\0" + block).hex()
    lines = "\n".join(digits[i : i + 72] for i in range(0, len(digits), 72))
    return f"\nexif\n{len(digits) // 2:8}\n{lines}\n".encode()


def text_cases(width, height):
    """PNG files that keep their metadata in texts, on either side of the pixels."""
    profile = b"Raw profile type exif\0"
    xmp = b"XML:com.adobe.xmp\0"
    texts = {
        "raw_profile": chunk(b"tEXt", profile + raw_profile(exif(6))),
        "raw_profile_deflated": chunk(b"zTXt", profile + b"\0" + zlib.compress(raw_profile(exif(5)))),
        "raw_profile_damaged": chunk(b"tEXt", profile + raw_profile(exif(6)).replace(b"4949", b"49x9")),
        "xmp": chunk(b"iTXt", xmp + b"\0\0\0\0" + XMP_ATTRIBUTE),
        "xmp_deflated": chunk(b"iTXt", xmp + b"\1\0en\0name\0" + zlib.compress(XMP_ELEMENT)),
        "xmp_damaged": chunk(b"iTXt", xmp + b"\1\0\0\0" + b"nothing"),
        "xmp_in_text": chunk(b"tEXt", xmp + XMP_ELEMENT),
        "exif_twice": chunk(b"eXIf", exif(3)) + chunk(b"eXIf", exif(6)),
    }
    for name, block in texts.items():
        yield f"{name}.png", png(width, height, before=[block])
        yield f"{name}_after.png", png(width, height, after=[block])


def made_images(width, height):
    """Pairs of a file name and its bytes."""
    for name, (block, xmp) in metadata_cases().items():
        yield f"{name}.jpg", jpeg(width, height, block, xmp)
        if xmp is None:
            yield f"{name}.png", png(width, height, before=[chunk(b"eXIf", block)])
        if name[-1].isdigit() or block is None:
            yield f"{name}.webp", webp(width, height, block=block, xmp=xmp, lossless=True)
    yield "two_segments.jpg", with_segments(jpeg(width, height), [b"Exif\0\0" + exif(6)[:20], b"Exif\0\0" + exif(6)[20:]])
    yield "cmyk.jpg", jpeg(width, height, exif(6), mode="CMYK")
    yield "grey.jpg", jpeg(width, height, exif(8), mode="L")
    yield from text_cases(width, height)
    yield from transparency_cases(width, height)
    yield "rgba_exif.png", png(width, height, RGBA, after=[chunk(b"eXIf", exif(7))])
    yield "palette_exif.png", png(width, height, PALETTE, 4, [palette(16), chunk(b"tRNS", b"\x40\0\x80"), chunk(b"eXIf", exif(5))])
    yield "alpha.webp", webp(width, height, "RGBA", lossless=True, exact=True)
    yield "alpha_lossy.webp", webp(width, height, "RGBA", quality=80)
    yield "alpha_exif.webp", webp(width, height, "RGBA", exif(6), lossless=True, exact=True)
    yield "alpha_animated.webp", webp(width, height, "RGBA", exif(8), save_all=True, lossless=True)


def write_golden(path, images):
    """The images, and the pixels of each by the profiles whose loaders take it."""
    tensors = {}
    for name, data in images:
        tensors[name] = np.frombuffer(data, np.uint8)
        profiles_of = {}
        for profile in PROFILES:
            expected = pixels(data, profile)
            if expected is not None:
                profiles_of.setdefault((expected.shape, expected.tobytes()), []).append(profile)
        for (shape, content), profiles in profiles_of.items():
            tensors[f"{name}:{','.join(profiles)}"] = np.frombuffer(content, np.uint8).reshape(shape)
    save_file(tensors, path, metadata={"pillow": PIL.__version__})
    print(f"{len(tensors)} tensors, Pillow {PIL.__version__}")


def main():
    write_golden(sys.argv[1], made_images(7, 5))


if __name__ == "__main__":
    main()
