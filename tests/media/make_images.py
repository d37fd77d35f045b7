#!/usr/bin/env python3
"""Makes the images of this folder's reference test and prints its table of expected pixels.

The pixels are those of Pillow: convert("RGB"), after compositing on white where an image is transparent.
usage: make_images.py FOLDER
"""
import hashlib
import io
import pathlib
import sys
import zlib

import numpy as np
import PIL
import pillow_heif
from PIL import Image


def waves(width, height, channels):
    """Smooth colours with a little noise."""
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.RandomState(7).randint(-12, 12, (height, width, channels))
    planes = [127 + 90 * np.sin(x / 9 + c) + 30 * np.cos(y / 5 * (c + 1)) for c in range(channels)]
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def save(folder, name, image, **options):
    image.save(folder / name, **options)


def without_adobe_marker(path):
    data = path.read_bytes()
    start = data.index(b"\xff\xee")
    length = int.from_bytes(data[start + 2:start + 4], "big")
    return data[:start] + data[start + 2 + length:]


def with_damaged_restarts(path):
    """The file with the third restart marker lost, with a wrong number, and with the pixels behind it lost."""
    data = path.read_bytes()
    third = data.index(b"\xff\xd2")
    fourth = data.index(b"\xff\xd3")
    yield "lost_marker", data[:third] + data[third + 2:]
    yield "wrong_marker", data[:third + 1] + b"\xd5" + data[third + 2:]
    yield "lost_pixels", data[:third] + data[fourth:]


def with_damaged_pixels(path):
    """The file with damaged pixels, an early end, a height that is too large, and zeros instead of its end."""
    data = path.read_bytes()
    frame = data.index(b"\xff\xc0")
    middle = (data.index(b"\xff\xda") + len(data)) // 2
    yield "pixels", data[:middle] + b"\x5a" * 12 + data[middle + 12:]
    yield "early_end", data[:middle] + b"\xff\xd9" + data[middle:]
    yield "height", data[:frame + 5] + (50).to_bytes(2, "big") + data[frame + 7:]
    yield "zeros_for_end", data[:-2] + bytes(512)


def png_chunk(kind, payload):
    return len(payload).to_bytes(4, "big") + kind + payload + zlib.crc32(kind + payload).to_bytes(4, "big")


def with_damaged_pixel_chunks(rgb):
    """PNG files of rows that repeat: two chunks of pixels, the first with a wrong checksum, and a window of 256 bytes
    where rows refer to what is further away."""
    file = io.BytesIO()
    Image.fromarray(np.tile(rgb[:6], (3, 1, 1))).save(file, "PNG")
    data = file.getvalue()
    start = data.index(b"IDAT") - 4
    pixels = data[start + 8:-16]
    end = png_chunk(b"IEND", b"")
    wrong = png_chunk(b"IDAT", pixels[:99])[:-4] + bytes(4)
    yield "wrong_checksum", data[:start] + wrong + png_chunk(b"IDAT", pixels[99:]) + end
    yield "small_window", data[:start] + png_chunk(b"IDAT", bytes([0x08, 0x1d]) + pixels[2:]) + end


def make(folder):
    rgb = Image.fromarray(waves(43, 29, 3))
    rgba = Image.fromarray(waves(43, 29, 4), "RGBA")
    cmyk = Image.fromarray(waves(43, 29, 4), "CMYK")
    for name, sampling in (("444", 0), ("422", 1), ("420", 2)):
        save(folder, f"rgb_{name}.jpg", rgb, quality=85, subsampling=sampling)
        save(folder, f"rgb_{name}_progressive.jpg", rgb, quality=85, subsampling=sampling, progressive=True)
    save(folder, "grey.jpg", rgb.convert("L"), quality=85)
    save(folder, "cmyk.jpg", cmyk, quality=85)
    (folder / "cmyk_without_adobe_marker.jpg").write_bytes(without_adobe_marker(folder / "cmyk.jpg"))
    restarts = folder / "restarts.jpg"
    rgb.save(restarts, quality=85, subsampling=2, restart_marker_blocks=1)
    for name, data in with_damaged_restarts(restarts):
        (folder / f"restarts_{name}.jpg").write_bytes(data)
    for name, data in with_damaged_pixels(folder / "rgb_420.jpg"):
        (folder / f"damaged_{name}.jpg").write_bytes(data)
    save(folder, "lossy.webp", rgb, quality=80)
    save(folder, "lossy_alpha.webp", rgba, quality=80)
    save(folder, "lossless_alpha.webp", rgba.crop((0, 0, 20, 15)), lossless=True, exact=True)
    save(folder, "animated.webp", rgb, save_all=True, append_images=[rgb.rotate(180)], quality=50)
    save(folder, "animated_alpha.webp", rgba, save_all=True, append_images=[rgba.rotate(180)], quality=50)
    save(folder, "rgb.png", rgb)
    save(folder, "rgba.png", rgba)
    save(folder, "palette.png", rgb.quantize(16), transparency=3)
    for name, data in with_damaged_pixel_chunks(waves(43, 29, 3)):
        (folder / f"rows_{name}.png").write_bytes(data)
    flat = Image.new("RGBA", (3000, 2000), (1, 2, 3, 4))  # for the memory that it takes, not its pixels
    save(folder, "flat_alpha.avif", flat, quality=90, subsampling="4:4:4")
    pillow_heif.register_heif_opener()
    save(folder, "flat_alpha.heic", flat, quality=5, chroma=444)


def pixels(path):
    image = Image.open(path)
    if image.mode != "RGBA" and "transparency" not in image.info:
        return image.size, image.convert("RGB")
    white = Image.new("RGB", image.size, (255, 255, 255))
    rgba = image.convert("RGBA")
    white.paste(rgba, mask=rgba.getchannel("A"))
    return image.size, white


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    make(folder)
    print(f"// Pillow {PIL.__version__}")
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".jpg", ".png", ".webp"):
            continue
        (width, height), image = pixels(path)
        digest = hashlib.sha256(image.tobytes()).hexdigest()
        print(f'{{"{path.name}", {width}, {height}, "{digest[:32]}"}},')


if __name__ == "__main__":
    main()
