#!/usr/bin/env python3
"""Writes the frames of a golden video as image files, the form in which the program reads them.

    python3 tools/video_frames.py tests/golden/qwen3_vl

Reads `video.frames` [frames, height, width, 3] of golden.safetensors; needs numpy and Pillow.
"""

import json
import pathlib
import struct
import sys

import numpy
from PIL import Image


def read_tensor(path, name):
    data = path.read_bytes()
    (header_bytes,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8 : 8 + header_bytes])[name]
    begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
    return numpy.frombuffer(data[begin:end], numpy.uint8).reshape(entry["shape"])


def main():
    family = pathlib.Path(sys.argv[1])
    folder = family / "video_frames"
    folder.mkdir(exist_ok=True)
    for index, frame in enumerate(read_tensor(family / "golden.safetensors", "video.frames")):
        Image.fromarray(frame).save(folder / f"frame_{index:02d}.png", optimize=True)


if __name__ == "__main__":
    main()
