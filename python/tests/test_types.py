"""What type checkers see of the package in programs that use it."""

import os
import pathlib
import subprocess
import sys

import pytest

import fovea_encoder as fovea

USE = '''
import fovea_encoder as fovea

engine = fovea.Engine.from_pretrained("model", encoder_cache_bytes=1 << 30)
for item in engine.encode(["cat.jpg"], on_error="record"):
    if item.error is not None:
        print(item.name, item.error.code)
        raise item.error
    print(bytes(memoryview(item)))
'''


def test_a_strict_program_uses_an_embedding_as_the_manual_says(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(USE)
    folder = pathlib.Path(fovea.__file__).parents[1]
    environment = {**os.environ, "MYPYPATH": "" if folder.name == "site-packages" else str(folder)}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
