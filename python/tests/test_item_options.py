"""Options of items, `mm_processor_kwargs`: for all of a call, and for each."""

import asyncio

import numpy
import pytest
from conftest import IMAGES, MODEL

import fovea_encoder as fovea

SMALL = {"min_pixels": 1024, "max_pixels": 20000}


def test_an_engine_names_the_options_that_its_model_takes(engine):
    assert engine.item_options == {"image": ["size", "min_pixels", "max_pixels"], "video": ["size", "fps", "num_frames"]}


def test_options_are_for_all_items_or_for_each(engine):
    own = engine.encode(IMAGES)
    small = engine.encode(IMAGES, mm_processor_kwargs=SMALL)
    assert [len(item) for item in small] != [len(item) for item in own]
    (first, *others) = engine.encode(IMAGES, mm_processor_kwargs=[SMALL] + [None] * (len(IMAGES) - 1))
    assert first.numpy().tobytes() == small[0].numpy().tobytes()
    assert [len(item) for item in others] == [len(item) for item in own[1:]]
    planned = engine.plan_items(IMAGES, mm_processor_kwargs=SMALL)
    assert planned.rows == [len(item) for item in small]
    with pytest.raises(TypeError, match="planned items, which have theirs"):
        engine.encode(planned, mm_processor_kwargs=SMALL)


def test_asynchronous_calls_have_options_too(engine):
    (small,) = asyncio.run(engine.encode_async(IMAGES[0], mm_processor_kwargs=SMALL))
    assert len(small) == engine.plan_items(IMAGES[0], mm_processor_kwargs=SMALL).rows[0]


def test_wrong_options_raise_before_any_work(engine):
    with pytest.raises(fovea.Error, match="mm_processor_kwargs: crop: no option"):
        engine.encode(IMAGES[0], mm_processor_kwargs={"crop": 1}, on_error="record")
    with pytest.raises(ValueError, match="each of 1 items, got 2"):
        engine.encode(IMAGES[0], mm_processor_kwargs=[SMALL, SMALL])


@pytest.mark.parametrize(
    "wrong, kind, message",
    [
        (5, TypeError, "expected a dict, or a list of them, got a int"),
        ("max_pixels", TypeError, "expected a dict, or a list of them, got a str"),
        ([5], TypeError, r"\[0\]: expected a dict, got a int"),
        ([{"max_pixels": {1}}], TypeError, r"\[0\]: Object of type set is not JSON serializable"),
        ({"max_pixels": numpy.int64(4096)}, TypeError, "Object of type int64 is not JSON serializable"),
        ({"max_pixels": float("nan")}, ValueError, "Out of range float values are not JSON compliant"),
        ({"size": {"longest_edge": float("inf")}}, ValueError, "Out of range float values are not JSON compliant"),
    ],
    ids=str,
)
def test_what_is_no_option_is_told_with_its_place(engine, wrong, kind, message):
    with pytest.raises(kind, match="mm_processor_kwargs.*" + message):
        engine.encode(IMAGES[0], mm_processor_kwargs=wrong, on_error="record")


@pytest.mark.parametrize("wrong, kind", [([], TypeError), ({"video": {"fps": float("nan")}}, ValueError)], ids=str)
def test_what_is_no_option_of_vllm_is_told_with_its_name(engine, wrong, kind):
    with pytest.raises(kind, match="media_io_kwargs: "):
        engine.encode(IMAGES[0], media_io_kwargs=wrong)


def test_no_options_are_none(engine):
    (known,) = engine.encode(IMAGES[0])
    for kwargs in ({}, [None], [{}], (None,)):
        (item,) = engine.encode(IMAGES[0], mm_processor_kwargs=kwargs, media_io_kwargs={})
        assert item._array().tobytes() == known._array().tobytes()


def test_media_io_kwargs_of_vllm_set_the_rate_of_videos(engine):
    folder = str(MODEL / "video_frames")
    (slow,) = engine.encode(videos=folder, media_io_kwargs={"video": {"fps": 1, "num_frames": -1}})
    assert slow.timestamps == engine.encode(videos=folder, fps=1)[0].timestamps
    assert slow.timestamps != engine.encode(videos=folder)[0].timestamps
    (also,) = asyncio.run(engine.encode_async(videos=folder, media_io_kwargs={"video": {"fps": 1}}))
    assert also.timestamps == slow.timestamps
    engine.encode(IMAGES[0], media_io_kwargs={"image": {"image_mode": "RGB", "rgba_background_color": [255, 255, 255]}})


def test_media_io_kwargs_that_cannot_be_honoured_are_refused_by_name(engine):
    for kwargs, message in (
        ({"video": {"num_frames": 8}}, "media_io_kwargs: video.num_frames: frames are chosen by the processor"),
        ({"image": {"image_mode": "L"}}, "media_io_kwargs: image.image_mode: no option"),
        ({"audio": {}}, "media_io_kwargs: audio: expected options of image or video"),
    ):
        with pytest.raises(fovea.Error, match=message):
            engine.encode(IMAGES[0], media_io_kwargs=kwargs, on_error="record")
    with pytest.raises(ValueError, match="video.fps is 3.0, and fps 4; expected one of them"):
        engine.encode(IMAGES[0], fps=4, media_io_kwargs={"video": {"fps": 3}})
    with pytest.raises(TypeError, match="media_io_kwargs: expected none beside planned items"):
        engine.encode(engine.plan_items(IMAGES[0]), media_io_kwargs={})


def test_planned_items_have_their_rate(engine):
    planned = engine.plan_items(videos=MODEL / "video_frames", fps=4)
    with pytest.raises(TypeError, match="fps: expected none beside planned items"):
        engine.encode(planned, fps=3)
    assert engine.encode(planned)[0].timestamps == engine.encode(videos=MODEL / "video_frames", fps=4)[0].timestamps


@pytest.mark.parametrize(
    "short, full",
    [("bf16", "bfloat16"), ("f16", "float16"), ("fp16", "float16"), ("f32", "float32"), ("fp32", "float32")],
)
def test_element_types_have_short_names(engine, short, full):
    (item,) = engine.encode(IMAGES[0], dtype=short)
    assert item.dtype == full
