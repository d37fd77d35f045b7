#!/usr/bin/env python3
"""Runs the Python of docs/python.md from top to bottom, as one notebook, and draws its pictures.

    python3 tools/python_guide.py            # writes docs/python_heat.png and docs/python_similar.png
    python3 tools/python_guide.py --check    # only runs it

Each name in the guide stands for golden data of the repository: the checkpoint is tests/golden/qwen3_vl, whose weights
are random, and the images are those of tests/golden. Blocks below a comment `<!-- not run: why -->`, and those of
fovea_encoder.client, which need a server, are left out; so are blocks that import a library which is not installed. Needs the
package fovea-encoder with numpy, ml_dtypes and pillow.
"""

import importlib.util
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "python.md"
GOLDEN = ROOT / "tests" / "golden"
PICTURES = {"heat.png": "python_heat.png", "similar.png": "python_similar.png"}
MODEL = "Qwen3-VL-8B-Instruct"

BLOCK = re.compile(r"(<!-- not run: [^>]*-->\n)?```python\n(.*?)```", re.DOTALL)
OPTIONAL = re.compile(r"^(?:import|from) (torch|ray|pyarrow|PIL)\b", re.MULTILINE)
NEEDS_TORCH = re.compile(r"\.torch\(\)|multi_modal_data")


def blocks():
    """(line, code) of the blocks that can be run here."""
    text = GUIDE.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        code = match.group(2)
        needed = set(OPTIONAL.findall(code)) | ({"torch"} if NEEDS_TORCH.search(code) else set())
        if "fovea_encoder.integrations.ray" in code:
            needed |= {"ray", "pyarrow"}
        if match.group(1) or "fovea_encoder.client" in code:
            continue
        if all(importlib.util.find_spec(module) for module in needed):
            yield text.count("\n", 0, match.start(2)) + 1, code


def lay_out(folder):
    """The files that the guide names."""
    (folder / MODEL).symlink_to(GOLDEN / "qwen3_vl")
    images = {path.name: path for path in sorted(GOLDEN.glob("*/images/*"))}
    (folder / "photos").mkdir()
    for name, path in images.items():
        shutil.copyfile(path, folder / "photos" / name)
    shutil.copyfile(images["photo_180x180.jpg"], folder / "cat.jpg")
    shutil.copyfile(images["shapes_120x90.png"], folder / "dog.png")
    (folder / "broken.jpg").write_bytes(b"no image")


def run(folder):
    """Runs the guide in `folder`. Errors name the line of the guide."""
    lay_out(folder)
    back = os.getcwd()
    names = {"__name__": "guide"}
    os.chdir(folder)
    try:
        for line, code in blocks():
            exec(compile("\n" * (line - 1) + code, str(GUIDE), "exec"), names)
    finally:
        os.chdir(back)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        run(Path(scratch))
        for made, picture in PICTURES.items():
            if "--check" not in sys.argv[1:]:
                image = Image.open(Path(scratch) / made).quantize(128)  # a third of the bytes
                image.save(GUIDE.parent / picture, optimize=True)


if __name__ == "__main__":
    main()
