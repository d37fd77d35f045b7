"""Parts and dictionaries for vLLM."""

import base64
import json

import pytest
from conftest import IMAGES, MODEL

from fovea_encoder.integrations import vllm


def test_a_part_is_json_with_the_files_of_rows_and_grid(engine):
    image, video = engine.encode(IMAGES[0], MODEL / "video_frames", dtype="bfloat16")
    part = json.loads(json.dumps(vllm.content_part(image, uuid="a")))
    assert part["type"] == "image_embeds"
    assert part["uuid"] == "a"
    assert set(part["image_embeds"]) == {"image_embeds", "image_grid_thw"}
    assert base64.b64decode(part["image_embeds"]["image_embeds"]) == image.torch_file()
    part = vllm.content_part(video)
    assert part["type"] == "video_embeds"
    assert part["video_embeds"]["timestamps"] == video.timestamps
    assert "uuid" not in part


def test_the_file_of_a_grid_is_a_tensor_of_three(engine):
    torch = pytest.importorskip("torch")
    import io

    (item,) = engine.encode(IMAGES[0])
    part = vllm.content_part(item)
    grid = torch.load(io.BytesIO(base64.b64decode(part["image_embeds"]["image_grid_thw"])), weights_only=True)
    assert grid.tolist() == list(item.grid_thw)


def test_rows_that_do_not_fit_the_grid_are_refused(engine):
    (item,) = engine.encode(IMAGES[0])
    state = list(item.__getstate__())
    t, h, w = state[5]
    state[5] = [t, h * 2, w]
    wrong = type(item).__new__(type(item))
    wrong.__setstate__(tuple(state))
    with pytest.raises(ValueError, match="do not fit the grid"):
        vllm.content_part(wrong)


def test_an_item_that_failed_is_refused(engine):
    (item,) = engine.encode(b"no image", on_error="record")
    with pytest.raises(RuntimeError):
        vllm.content_part(item)


def test_offline_data_has_one_tensor_of_rows_and_one_of_grids(engine):
    torch = pytest.importorskip("torch")
    items = engine.encode(IMAGES, MODEL / "video_frames", dtype="bfloat16")
    data = vllm.multi_modal_data(items)
    assert data["image"]["image_grid_thw"].tolist() == [list(item.grid_thw) for item in items[:-1]]
    assert torch.equal(data["image"]["image_embeds"], torch.cat([item.torch() for item in items[:-1]]))
    assert data["video"]["video_embeds"].shape == items[-1].shape
