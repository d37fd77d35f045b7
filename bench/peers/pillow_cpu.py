#!/usr/bin/env python3
"""Decodes and resizes one image with Pillow and with Fovea, in turns, and prints a table.

usage: pillow_cpu.py PATH/TO/fovea_bench_media [--image FILE] [--sizes 704x512,...] [--turns N]

Both run on one thread, from bytes in memory to 8-bit RGB, then bicubic to every size. Every turn
takes the median of some rounds of either program; the table shows the best turn of each, which is
the one that other work on the machine disturbed least.
"""
import argparse
import io
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import PIL
from PIL import Image

ROUNDS = 15


def synthetic_photo(path):
    """1024 x 768, about as hard to decode as a photograph: smooth shapes, edges, some noise."""
    y, x = np.mgrid[0:768, 0:1024]
    noise = np.random.RandomState(1).normal(0, 6, (768, 1024, 3))
    edges = 60 * (((x // 97) + (y // 61)) % 2)
    planes = [110 + 60 * np.sin(x / (40 + 9 * c)) * np.cos(y / (31 + 7 * c)) + edges for c in range(3)]
    pixels = np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path, quality=90)


def median_ms(work):
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def time_pillow(data, sizes):
    def decode():
        return Image.open(io.BytesIO(data)).convert("RGB")

    figures = {"decode": median_ms(decode)}
    image = decode()
    for size in sizes:
        target = tuple(int(side) for side in size.split("x"))
        figures[f"resize {size}"] = median_ms(lambda: image.resize(target, Image.BICUBIC))
    return figures


def time_fovea(program, path, sizes):
    lines = subprocess.run([program, path, str(ROUNDS), *sizes], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def keep_best(best, figures):
    for name, value in figures.items():
        best[name] = min(value, best.get(name, value))


def print_table(pillow, fovea, sizes):
    rows = [("decode", "decode", "decode")]
    for size in sizes:
        for engine in ("torchvision", "pillow"):
            for isa in ("best", "avx2", "portable"):
                rows.append((f"resize to {size}, {engine} arithmetic, {isa}", f"resize {size}",
                             f"resize {size} {engine} {isa}"))
    width = max(len(row[0]) for row in rows)
    print(f"{'':{width}}  Pillow ms   Fovea ms   ratio")
    for label, peer, ours in rows:
        print(f"{label:{width}}  {pillow[peer]:9.3f}  {fovea[ours]:9.3f}  {pillow[peer] / fovea[ours]:6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--image")
    parser.add_argument("--sizes", default="704x512,1024x576,1536x1152,448x448")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    sizes = args.sizes.split(",")
    with tempfile.TemporaryDirectory() as folder:
        path = args.image or str(pathlib.Path(folder) / "photo.jpg")
        if args.image is None:
            synthetic_photo(path)
        data = pathlib.Path(path).read_bytes()
        pillow, fovea = {}, {}
        for _ in range(args.turns):
            keep_best(pillow, time_pillow(data, sizes))
            keep_best(fovea, time_fovea(args.program, path, sizes))
        with Image.open(path) as image:
            print(f"{image.width} x {image.height} {image.format}, {len(data)} bytes; "
                  f"Pillow {PIL.__version__}, bicubic, one thread")
    print_table(pillow, fovea, sizes)


if __name__ == "__main__":
    main()
