"""Copies of the tiny checkpoint with something wrong in them, and files beside it."""
import json
import os
import pathlib
import shutil
import struct


class Folder:
    """A file of a case that is made by a function of its path."""

    def __init__(self, make):
        self.make = make


def fifo():
    return Folder(os.mkfifo)


def sparse(size):
    """A file of so many zeros that takes no place."""
    def make(path):
        with open(path, "wb") as file:
            file.truncate(size)
    return Folder(make)


def link(target):
    return Folder(lambda path: os.symlink(target, path))


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def pixel_values(patches, width):
    """What a processor would return for one grey image of that many patches in one row."""
    values, grid = 4 * patches * width, struct.pack("<3q", 1, 2, patches // 2)
    return safetensors({
        "pixel_values": {"dtype": "F32", "shape": [patches, width], "data_offsets": [0, values]},
        "image_grid_thw": {"dtype": "I64", "shape": [1, 3],
                           "data_offsets": [values, values + len(grid)]},
    }, bytes(values) + grid)


def set_in(config, key, value):
    *path, last = key.split(".")
    for name in path:
        config = config[name]
    config[last] = value


def with_config(golden, file="config.json", **changes):
    """The tiny checkpoint with other values in one of its JSON files; `__` in a name is a dot."""

    def make(path):
        shutil.copytree(golden, path, ignore=shutil.ignore_patterns("images", "golden*", "*frames"))
        config = json.loads((path / file).read_text())
        for key, value in changes.items():
            set_in(config, key.replace("__", "."), value)
        (path / file).write_text(json.dumps(config))

    return Folder(make)


def with_weights(golden, make_weights):
    """The tiny checkpoint with another file of weights: a function of its bytes."""

    def make(path):
        with_config(golden).make(path)
        file = path / "model.safetensors"
        file.write_bytes(make_weights(file.read_bytes()))

    return Folder(make)


def denormal(weights):
    """The same tensors, every bfloat16 the smallest but zero."""
    begin = 8 + struct.unpack("<Q", weights[:8])[0]
    return weights[:begin] + b"\1\0" * ((len(weights) - begin) // 2)


def with_tensor(golden, name, shape):
    """The tiny checkpoint with a shape of one tensor changed in the header."""

    def change(weights):
        begin = 8 + struct.unpack("<Q", weights[:8])[0]
        header = json.loads(weights[8:begin])
        header[name]["shape"] = shape
        return safetensors(header, weights[begin:])

    return with_weights(golden, change)


def golden_folder():
    return pathlib.Path(__file__).resolve().parent.parent / "golden" / "qwen3_vl"
