"""Options of items, `mm_processor_kwargs`: for all of a call, and for each."""

import asyncio

import pytest
from conftest import IMAGES

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
