#!/usr/bin/env python3
"""Encodes the same JPEG files with the Python package and with the program, in turns, and prints their times.

usage: python_package.py PROGRAM MODEL [--images N] [--size WxH] [--threads N] [--rounds N] [--dummy] [--fifo]

Both are of one build, read the same files with the same threads, and begin anew every round: `encode` is the first call
of a process, as the program's --stats say and around Engine.encode(); `process` is from the start to the end of a
process that also writes the rows to a file, `processor` the processor time of that. The table has the best and the
median of all rounds of either side, the ratios of both (above 1: the package takes longer), and the least and largest
ratio of a round. Needs the package fovea-encoder, numpy and pillow. --fifo runs both at real-time priority (chrt -f 10), for a
machine with other work.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
from PIL import Image

WORKER = """
import json, sys, time, fovea_encoder as fovea
model, threads, dummy, output, stats, *images = sys.argv[1:]
engine = fovea.Engine.from_pretrained(model, device="cpu", threads=int(threads), dummy_weights=dummy == "1")
begin = time.perf_counter()
items = engine.encode(images)
ms = (time.perf_counter() - begin) * 1e3
with open(output, "wb") as file:
    for item in items:
        file.write(item)
with open(stats, "w") as file:
    json.dump({"encode_ms": ms}, file)
"""


def write_images(folder, count, width, height):
    """Files about as hard to decode as photographs, each another one: smooth shapes, edges, some noise."""
    y, x = numpy.mgrid[0:height, 0:width]
    paths = []
    for i in range(count):
        noise = numpy.random.RandomState(i).normal(0, 6, (height, width, 3))
        edges = 60 * (((x // (97 + i)) + (y // 61)) % 2)
        planes = [110 + 60 * numpy.sin(x / (40 + 9 * c)) * numpy.cos(y / (31 + 7 * c)) + edges for c in range(3)]
        pixels = numpy.clip(numpy.stack(planes, -1) + noise, 0, 255).astype(numpy.uint8)
        paths.append(str(folder / f"{i:04}.jpg"))
        Image.fromarray(pixels).save(paths[-1], quality=90)
    return paths


def commands(arguments, folder, images):
    """The command of either side, by its name; each writes `encode_ms` to stats.json."""
    output, stats, threads = str(folder / "rows"), str(folder / "stats.json"), str(arguments.threads)
    load = ["--load-format", "dummy"] if arguments.dummy else []
    flags = ["--device", "cpu", "--threads", threads, "--no-table", "--stats", stats, "-o", output, *load]
    dummy = "1" if arguments.dummy else "0"
    return {
        "program": [arguments.program, "encode", arguments.model, *images, *flags],
        "package": [sys.executable, "-c", WORKER, arguments.model, threads, dummy, output, stats, *images],
    }


def processor_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


def measure(command, folder):
    """Milliseconds of the call, of the process, and of the processors in the process."""
    used, begin = processor_ms(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process_ms = (time.perf_counter() - begin) * 1e3
    encode_ms = json.loads((folder / "stats.json").read_text())["encode_ms"]
    return {"encode": encode_ms, "process": process_ms, "processor": processor_ms() - used}


def print_table(rounds):
    print("| | program, ms: best, median | package | ratio of best, of medians | of a round |\n|---|---|---|---|---|")
    for part in ("encode", "process", "processor"):
        program, package = ([r[side][part] for r in rounds] for side in ("program", "package"))
        best, median = [min(program), min(package)], [statistics.median(program), statistics.median(package)]
        ratios = [mine / its for mine, its in zip(package, program)]
        sides = [f"{best[i]:.0f}, {median[i]:.0f}" for i in range(2)]
        ratio = f"{best[1] / best[0]:.3f}, {median[1] / median[0]:.3f}"
        print(f"| {part} | {sides[0]} | {sides[1]} | {ratio} | {min(ratios):.2f} to {max(ratios):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--size", default="1024x768")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--dummy", action="store_true", help="random weights: MODEL needs only its JSON files")
    parser.add_argument("--fifo", action="store_true")
    arguments = parser.parse_args()
    if arguments.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    width, height = map(int, arguments.size.split("x"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        images = write_images(folder, arguments.images, width, height)
        sides = commands(arguments, folder, images)
        for command in sides.values():  # files into the page cache
            measure(command, folder)
        rounds = []
        for i in range(arguments.rounds):
            names = list(sides) if i % 2 == 0 else list(reversed(sides))
            rounds.append({name: measure(sides[name], folder) for name in names})
    print_table(rounds)


if __name__ == "__main__":
    main()
