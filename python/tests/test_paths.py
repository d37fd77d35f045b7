"""Paths whose bytes are no UTF-8, and no paths at all."""

import logging
import os
import pickle
import shutil

import pytest
from conftest import IMAGES, MODEL

import fovea_encoder as fovea
from fovea_encoder.client import Client


@pytest.fixture
def image(tmp_path):
    """An image whose name is no UTF-8, as os.fsdecode() has it."""
    path = os.fsencode(tmp_path) + b"/caf\xe9.png"
    shutil.copy(IMAGES[0], path)
    return os.fsdecode(path)


def test_an_item_keeps_the_name_of_its_file(engine, image):
    (item,) = engine.encode(image)
    assert item.name == image
    assert os.path.exists(item.name)
    assert str(repr(item)).isprintable() and r"caf\xe9.png" in repr(item)
    copy = pickle.loads(pickle.dumps(item))
    assert (copy.name, copy._array().tobytes()) == (image, item._array().tobytes())


def test_an_error_names_the_file(engine, image):
    os.unlink(image)
    (item,) = engine.encode([image], on_error="record")
    assert (item.name, item.error.code) == (image, "not_found")
    assert str(item.error).isprintable() and r"caf\xe9.png" in str(item.error)
    assert str(pickle.loads(pickle.dumps(item)).error) == str(item.error)


def test_the_log_names_the_file(engine, tmp_path, caplog):
    video = os.fsencode(tmp_path) + b"/caf\xe9.mp4"
    shutil.copy(MODEL.parents[1] / "media" / "videos" / "ramp_h265_cut.mp4", video)
    with caplog.at_level(logging.WARNING, "fovea"):
        (item,) = engine.encode(videos=os.fsdecode(video), on_error="record")
    if item.error is not None:
        pytest.skip(str(item.error))  # a build without videos
    assert "video.frames_lost" in caplog.text


@pytest.mark.parametrize("kind", [os.fsdecode, bytes], ids=["str", "bytes"])
def test_a_checkpoint_may_be_in_such_a_folder(tmp_path, kind):
    folder = os.fsencode(tmp_path) + b"/mod\xe8le"
    shutil.copytree(MODEL, os.fsdecode(folder), ignore=shutil.ignore_patterns("golden*", "images", "video_frames"))
    engine = fovea.Engine.from_pretrained(kind(folder), device="cpu", threads=1)
    assert len(pickle.loads(pickle.dumps(engine)).encode(IMAGES[0])) == 1


def test_a_client_keeps_the_name_of_the_file(server, image):
    with Client(server) as client:
        (item,) = client.encode(image)
        assert item.name == image
        os.unlink(image)
        (item,) = client.encode(image, on_error="record")
        assert (item.name, item.error.code) == (image, "not_found")
        with pytest.raises(fovea.Error) as missing:
            client.encode(image)
        assert str(missing.value).isprintable()


@pytest.mark.parametrize("videos", [False, True])
def test_a_null_byte_is_an_error_of_its_item_in_both(engine, server, videos):
    with Client(server) as client:
        for encode in (engine.encode, client.encode):
            given = ([], ["a\0b"]) if videos else (["a\0b", IMAGES[0]], [])
            item, *others = encode(*given, on_error="record")
            assert (item.name, item.error.code) == ("a\0b", "not_found")
            assert [other.error for other in others] == ([] if videos else [None])
