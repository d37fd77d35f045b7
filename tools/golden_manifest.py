#!/usr/bin/env python3
"""Writes tests/golden/<family>/manifest.json: who made the reference data, and the SHA-256 of every file.

    python3 tools/golden_manifest.py tests/golden/qwen3_vl "who computed it, with which versions and seed"

Without the second argument the text of the manifest that is there is kept. A test compares the files with the
manifests (tests/project/golden_test.cpp).
"""

import hashlib
import json
import pathlib
import sys


def describe(path):
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def main():
    folder = pathlib.Path(sys.argv[1])
    manifest = folder / "manifest.json"
    if len(sys.argv) > 2:
        producer = sys.argv[2]
    else:
        producer = json.loads(manifest.read_text())["producer"]
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != manifest)
    content = {
        "producer": producer,
        "files": {path.relative_to(folder).as_posix(): describe(path) for path in files},
    }
    manifest.write_text(json.dumps(content, indent=2) + "\n")
    print(f"{manifest}: {len(files)} files")


if __name__ == "__main__":
    main()
