"""The guide runs as it is written."""

import pathlib
import runpy

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_guide_runs(tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    guide = runpy.run_path(str(ROOT / "tools" / "python_guide.py"))
    guide["run"](tmp_path)
    printed = capsys.readouterr().out
    assert "cat.jpg (36, 256) (1, 12, 12)" in printed
    assert "broken.jpg unsupported" in printed
    for made, picture in guide["PICTURES"].items():
        assert image.open(tmp_path / made).size == image.open(ROOT / "docs" / picture).size
