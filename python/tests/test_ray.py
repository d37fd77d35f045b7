"""Stages of Ray Data, alone and on a Ray of this machine."""

import collections
import json
import os
import pathlib
import runpy
import shutil
import sys
import tempfile

import numpy
import pytest
from conftest import IMAGES, MODEL, read_safetensors

import fovea_encoder as fovea

# Without it Ray writes a token into the home directory, and reports use.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
pytest.importorskip("ray.data", reason="ray is installed without its extra data")
pyarrow = pytest.importorskip("pyarrow")

from fovea_encoder.integrations import ray as stages  # noqa: E402

BROKEN = b"no image"


def binary_table(contents=None, **columns):
    contents = [pathlib.Path(path).read_bytes() for path in IMAGES] if contents is None else contents
    return pyarrow.table({"bytes": pyarrow.array(contents, pyarrow.binary()), **columns})


def run(stage, table):
    """All of the result as one table, and the number of tables that came."""
    tables = list(stage(table))
    return pyarrow.concat_tables(tables), len(tables)


def bits(rows):
    return [None if array is None else (array.shape, array.tobytes()) for array in rows]


@pytest.fixture(scope="module")
def expected(engine):
    """Shape and bits by path, as the engine alone makes them."""
    items = engine.encode(IMAGES, dtype="bfloat16")
    return {path: (item.shape, item._array().tobytes()) for path, item in zip(IMAGES, items)}


@pytest.fixture(scope="module")
def stage():
    return stages.EncodeBatch(MODEL, threads=2, device="cpu")


def test_rows_of_bytes_and_of_paths_are_those_of_the_engine(stage, expected):
    table, calls = run(stage, binary_table(label=["a", "b", "c", "d"]))
    assert calls == 1
    assert " ".join(table.column_names) == "label rows num_rows width dtype grid_thw key error"
    assert bits(stages.rows_of(table)) == list(expected.values())
    assert table["label"].to_pylist() == ["a", "b", "c", "d"]
    table, _ = run(stage, pyarrow.table({"path": IMAGES}))
    assert table["path"].to_pylist() == IMAGES
    assert bits(stages.rows_of(table)) == list(expected.values())


def test_rows_are_read_where_the_table_has_them(stage):
    table, _ = run(stage, binary_table())
    (chunk,) = table["rows"].chunks
    begin = chunk.buffers()[2].address
    rows = stages.rows_of(table)
    ends = numpy.cumsum([array.nbytes for array in rows]).tolist()
    assert [array.__array_interface__["data"][0] - begin for array in rows] == [0, *ends[:-1]]
    assert bits(stages.rows_of(table.slice(2, 1))) == bits(rows[2:3])
    assert stages.rows_of(table.slice(2, 0)) == []


def test_broken_items_are_rows_with_an_error(stage, expected, tmp_path):
    good = pathlib.Path(IMAGES[0]).read_bytes()
    table, calls = run(stage, binary_table([good, BROKEN, b"", None, good]))
    assert calls == 1
    assert [error is None for error in table["error"].to_pylist()] == [True, False, False, False, True]
    assert "images[" not in table["error"][1].as_py()
    rows = stages.rows_of(table)
    assert bits([rows[0], rows[4]]) == [expected[IMAGES[0]]] * 2
    assert rows[1:4] == [None] * 3
    assert table["num_rows"].to_pylist()[1:4] == [0] * 3
    table, _ = run(stage, pyarrow.table({"path": [str(tmp_path / "none.png"), None]}))
    assert table["error"][0].as_py() == "no such file"


@pytest.mark.parametrize(("column", "kept"), [("bytes", []), ("path", ["path"])])
def test_a_block_without_any_value_is_rows_with_errors(stage, column, kept):
    table, _ = run(stage, pyarrow.table({column: pyarrow.array([None, None])}))
    assert [name for name in table.column_names if name == column] == kept
    assert all(table["error"].to_pylist())
    assert stages.rows_of(table) == [None, None]


def test_a_wrong_configuration_raises(stage):
    for wrong in ({"dtype": "int8"}, {"modality": "sound"}, {"block_bytes": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            stages.EncodeBatch(MODEL, device="cpu", **wrong)
    with pytest.raises(TypeError, match='no option "sead"'):
        stages.EncodeBatch(MODEL, device="cpu", sead=1)
    with pytest.raises(ValueError, match="expected a column bytes or path, got item"):
        run(stage, pyarrow.table({"item": IMAGES}))
    with pytest.raises(ValueError, match="column path: expected bytes or paths, got int64"):
        run(stage, pyarrow.table({"path": [1, 2]}))
    with pytest.raises(ValueError, match="named as those of the result: error"):
        run(stage, binary_table(error=[""] * 4))


def test_a_batch_is_cut_where_its_rows_fill_a_block(expected):
    sizes = [len(content) for _, content in expected.values()]
    limit = sizes[0] + sizes[1]
    stage = stages.EncodeBatch(MODEL, device="cpu", threads=2, block_bytes=limit)
    contents = [pathlib.Path(path).read_bytes() for path in IMAGES]
    tables = list(stage(binary_table([*contents, BROKEN])))
    held = [[len(rows) for rows in table["rows"].to_pylist() if rows] for table in tables]
    assert held == [sizes[:2], sizes[2:3], sizes[3:]]
    assert tables[-1].num_rows == 2  # a broken image takes no room
    assert max(sizes) > limit  # an item above the limit comes alone


def test_a_video_is_a_call_of_its_own(engine):
    stage = stages.EncodeBatch(MODEL, modality="video", device="cpu", threads=2, column="folder")
    folder = str(MODEL / "video_frames")
    table, calls = run(stage, pyarrow.table({"folder": [folder, "none.mp4", folder]}))
    (item,) = engine.encode(videos=folder, dtype="bfloat16")
    assert calls == 3
    rows = stages.rows_of(table)
    assert bits([rows[0], rows[2]]) == [(item.shape, item._array().tobytes())] * 2
    assert rows[1] is None
    assert table["timestamps"][0].as_py() == item.timestamps
    assert table["retained"].to_pylist() == [None] * 3


def test_images_and_videos_may_be_mixed_with_options_of_their_own(engine):
    stage = stages.EncodeBatch(
        MODEL,
        device="cpu",
        threads=2,
        dtype="bf16",
        modality_column="type",
        options_column="options",
        fps_column="fps",
        mm_processor_kwargs={"max_pixels": 16384},
    )
    folder, image = str(MODEL / "video_frames"), IMAGES[0]
    own = json.dumps({"max_pixels": 4096})
    table, calls = run(stage, pyarrow.table({
        "path": [image, folder, image, folder],
        "type": ["image", "video", None, "video"],
        "options": [None, None, own, None],
        "fps": [None, 1.0, None, None],
    }))
    assert calls == 4  # a video is a call of its own, between images
    expected = [
        *engine.encode(image, dtype="bfloat16", mm_processor_kwargs={"max_pixels": 16384}),
        *engine.encode(videos=folder, dtype="bfloat16", fps=1.0),
        *engine.encode(image, dtype="bfloat16", mm_processor_kwargs={"max_pixels": 4096}),
        *engine.encode(videos=folder, dtype="bfloat16"),
    ]
    assert bits(stages.rows_of(table)) == [(item.shape, item._array().tobytes()) for item in expected]
    assert expected[0].shape[0] > expected[2].shape[0]
    times = table["timestamps"].to_pylist()
    assert times == [None, expected[1].timestamps, None, expected[3].timestamps]
    assert times[1] != times[3]


def test_wrong_columns_of_options_raise(stage):
    def mixed(**columns):
        names = {"modality_column": "type", "options_column": "options", "fps_column": "fps"}
        stage = stages.EncodeBatch(MODEL, device="cpu", **{key: name for key, name in names.items() if name in columns})
        run(stage, pyarrow.table({"path": IMAGES[:1], **columns}))

    with pytest.raises(ValueError, match='column type: expected image or video, got "sound"'):
        mixed(type=["sound"])
    with pytest.raises(ValueError, match="column type: expected strings, got int64"):
        mixed(type=[1])
    with pytest.raises(ValueError, match="column options: expected JSON objects, got"):
        mixed(options=["{"])
    with pytest.raises(ValueError, match="column options: expected JSON objects, got"):
        mixed(options=["[]"])
    with pytest.raises(ValueError, match="column fps: expected numbers, got string"):
        mixed(fps=["2"])
    with pytest.raises(ValueError, match="expected a column kind, got path"):
        run(stages.EncodeBatch(MODEL, device="cpu", modality_column="kind"), pyarrow.table({"path": IMAGES[:1]}))


def test_lines_of_a_list_are_items():
    def item(line):
        return stages._listed("/lists", {"text": line})

    assert item("a b.png") == [{"path": "/lists/a b.png", "type": "image", "options": None, "fps": None}]
    assert item("  # nothing") == item("") == []
    assert item('{"video": "/clip", "fps": 1, "mm_processor_kwargs": {"b": 2, "a": 1}}') == [
        {"path": "/clip", "type": "video", "options": '{"a": 1, "b": 2}', "fps": 1.0}
    ]
    for wrong in ("{", '{"image": 1}', '{"image": "a", "video": "b"}', '{"image": "a", "max_pixels": 1}',
                  '{"image": "a", "fps": 1}', '{"video": "a", "fps": 0}', '{"image": "a", "mm_processor_kwargs": 1}'):
        with pytest.raises(ValueError, match="got {"):
            item(wrong)


def test_a_folder_whose_frame_changes_gets_another_shard(tmp_path):
    frames = tmp_path / "frames"
    shutil.copytree(MODEL / "video_frames", frames)
    stage = stages.EncodeShards(MODEL, tmp_path / "out", modality="video", device="cpu", threads=2)
    for _ in range(2):
        run(stage, pyarrow.table({"path": [str(frames)]}))
    assert len(os.listdir(tmp_path / "out")) == 1
    os.utime(sorted(frames.iterdir())[0], (1, 1))
    run(stage, pyarrow.table({"path": [str(frames)]}))
    assert len(os.listdir(tmp_path / "out")) == 2


def test_a_shard_is_a_file_of_the_program(program, program_rows, tmp_path):
    stage = stages.EncodeShards(MODEL, tmp_path, device="cpu", threads=2)
    contents = [pathlib.Path(path).read_bytes() for path in IMAGES]
    table, _ = run(stage, binary_table([*contents, BROKEN], path=[*IMAGES, "broken.jpg"]))
    assert table["tensor"].to_pylist() == ["item_0", "item_1", "item_2", "item_3", None]
    (name,) = os.listdir(tmp_path)
    assert table["file"].to_pylist() == [name] * 4 + [None]
    tensors = read_safetensors(tmp_path / name)
    for i, rows in enumerate(program_rows("bfloat16")[:4]):
        assert numpy.array_equal(tensors[f"item_{i}"], rows)
        assert tensors[f"item_{i}.grid_thw"].tolist() == table["grid_thw"][i].as_py()
    data = (tmp_path / name).read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    items = json.loads(header["fovea.items"])
    assert header["format"] == "pt"
    assert header["fovea.version"] == fovea.__version__
    assert [item["name"] for item in items] == [*IMAGES, "broken.jpg"]
    assert [item["num_embeds"] for item in items[:4]] == table["num_rows"].to_pylist()[:4]
    assert items[4]["error"] == table["error"][4].as_py()


def test_rows_of_shards_are_those_of_the_engine(expected, tmp_path):
    stage = stages.EncodeShards(MODEL, tmp_path, device="cpu", threads=2, block_bytes=1)
    table, calls = run(stage, pyarrow.table({"path": [*IMAGES, "none.png"]}))
    assert (calls, len(os.listdir(tmp_path))) == (4, 4)  # a path without an image takes no room
    rows = stages.rows_of(table, tmp_path)
    assert bits(rows) == [*expected.values(), None]
    with pytest.raises(ValueError, match="take the folder"):
        stages.rows_of(table)


def test_a_repeated_batch_replaces_its_files(tmp_path):
    stage = stages.EncodeShards(MODEL, tmp_path, device="cpu", threads=2)
    first, _ = run(stage, pyarrow.table({"path": IMAGES}))
    again, _ = run(stage, pyarrow.table({"path": IMAGES}))
    other, _ = run(stages.EncodeShards(MODEL, tmp_path, device="cpu", dtype="float16"), pyarrow.table({"path": IMAGES}))
    assert first.equals(again)
    assert sorted(os.listdir(tmp_path)) == sorted({first["file"][0].as_py(), other["file"][0].as_py()})
    assert len(os.listdir(tmp_path)) == 2


def test_a_changed_file_gets_another_shard(tmp_path):
    image, output = tmp_path / "a.png", tmp_path / "out"
    stage = stages.EncodeShards(MODEL, output, device="cpu", threads=2)
    for source in IMAGES[:2]:
        shutil.copyfile(source, image)
        run(stage, pyarrow.table({"path": [str(image)]}))
    assert len(os.listdir(output)) == 2


def test_a_shard_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError("no room")

    stage = stages.EncodeShards(MODEL, tmp_path, device="cpu", threads=2)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        run(stage, binary_table())
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def cluster():
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # short: there are unix sockets in it
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        object_store_memory=128 << 20,
        log_to_driver=False,
        _temp_dir=folder,
        runtime_env={"env_vars": {"PYTHONPATH": str(pathlib.Path(fovea.__file__).parents[1])}},
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(tmp_path):
    """Twelve images under different names, and two files that are none."""
    images = tmp_path / "images"
    images.mkdir()
    for i in range(12):
        source = pathlib.Path(IMAGES[i % len(IMAGES)])
        shutil.copyfile(source, images / f"{i}{source.suffix}")
    for i in (20, 21):
        (images / f"{i}.jpg").write_bytes(BROKEN)
    return images


def expected_in(folder, engine):
    paths = sorted(str(path) for path in folder.iterdir())
    items = engine.encode(paths, dtype="bfloat16", on_error="record")
    return {
        path: None if item.error else (item.shape, item._array().tobytes()) for path, item in zip(paths, items)
    }


def mapped(folder, stage, **arguments):
    data = ray.data.read_binary_files(str(folder), include_paths=True, override_num_blocks=2)
    return data.map_batches(
        stage,
        fn_constructor_kwargs={"model": str(MODEL), **arguments},
        batch_format="pyarrow",
        batch_size=7,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=1),
    )


def by_path(table, rows):
    paths = table["path"].to_pylist()
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, bits(rows)))


def test_a_folder_becomes_parquet(cluster, engine, folder, tmp_path):
    import pyarrow.parquet

    mapped(folder, stages.EncodeBatch).write_parquet(str(tmp_path / "out"))
    table = pyarrow.parquet.read_table(tmp_path / "out")
    assert by_path(table, stages.rows_of(table)) == expected_in(folder, engine)
    assert sum(error is not None for error in table["error"].to_pylist()) == 2


def dying(base, marker):
    """`base` with an actor that ends without a word after its first table, once."""

    class Dying(base):
        def __call__(self, batch):
            for table in super().__call__(batch):
                yield table
                if not os.path.exists(marker):
                    pathlib.Path(marker).touch()
                    os._exit(1)

    return Dying


def test_rows_are_complete_when_an_actor_dies(cluster, engine, folder, tmp_path):
    stage = dying(stages.EncodeBatch, str(tmp_path / "died"))
    tables = mapped(folder, stage, block_bytes=10000).to_arrow_refs()
    table = pyarrow.concat_tables([table for table in ray.get(tables) if table.num_rows])
    assert (tmp_path / "died").exists()
    assert by_path(table, stages.rows_of(table)) == expected_in(folder, engine)


def test_shards_hold_nothing_twice_when_an_actor_dies(cluster, engine, folder, tmp_path):
    output = tmp_path / "out"
    stage = dying(stages.EncodeShards, str(tmp_path / "died"))
    tables = mapped(folder, stage, output=str(output), block_bytes=10000).to_arrow_refs()
    table = pyarrow.concat_tables([table for table in ray.get(tables) if table.num_rows])
    assert (tmp_path / "died").exists()
    assert by_path(table, stages.rows_of(table, output)) == expected_in(folder, engine)
    pointed = [file for file in table["file"].to_pylist() if file]
    written = sorted(os.listdir(output))
    assert written == sorted(set(pointed))
    assert len(written) > 2  # the batch of the actor that died had several
    tensors = collections.Counter(
        (file, name) for file in written for name in read_safetensors(output / file) if "." not in name
    )
    assert len(tensors) == len(pointed) == 12


def test_the_example_writes_what_it_says(cluster, engine, folder, tmp_path, monkeypatch):
    import pyarrow.parquet

    target, shards = tmp_path / "out", tmp_path / "shards"
    example = pathlib.Path(__file__).parents[2] / "examples" / "ray_encode.py"
    monkeypatch.setattr(sys, "argv", ["ray_encode.py", str(MODEL), str(folder), str(target), "--shards", str(shards)])
    runpy.run_path(str(example), run_name="__main__")
    table = pyarrow.parquet.read_table(target)
    assert by_path(table, stages.rows_of(table, shards)) == expected_in(folder, engine)


def test_the_example_takes_a_list_with_videos(cluster, engine, tmp_path, monkeypatch):
    import pyarrow.parquet

    folder, target = MODEL / "video_frames", tmp_path / "out"
    options = {"max_pixels": 4096}
    given = {"image": IMAGES[1], "mm_processor_kwargs": options}, {"video": str(folder)}
    lines = [IMAGES[0], *map(json.dumps, given)]
    (tmp_path / "list").write_text("\n".join(["# a list", *lines, ""]))
    example = pathlib.Path(__file__).parents[2] / "examples" / "ray_encode.py"
    monkeypatch.setattr(sys, "argv", ["ray_encode.py", str(MODEL), f"@{tmp_path / 'list'}", str(target)])
    runpy.run_path(str(example), run_name="__main__")
    table = pyarrow.parquet.read_table(target)
    items = engine.encode(
        IMAGES[:2], str(folder), dtype="bfloat16", mm_processor_kwargs=[None, options, None]
    )
    expected = {path: (item.shape, item._array().tobytes()) for path, item in zip([*IMAGES[:2], str(folder)], items)}
    assert by_path(table, stages.rows_of(table)) == expected


def test_an_actor_takes_the_device_and_the_threads_that_it_claims(cluster):
    @ray.remote
    class Actor:
        def resources(self):
            return stages._resources()

    for cpus, threads in (0, 0), (0.5, 1), (2, 2):
        actor = Actor.options(num_cpus=cpus).remote()
        assert ray.get(actor.resources.remote()) == ("cpu", threads)
        ray.kill(actor)
    assert stages._resources() == ("auto", 0)  # in the driver
