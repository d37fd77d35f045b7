"""Models by their names on the hub. huggingface_hub is the reference for what the cache looks like."""

import os
import pickle

import huggingface_hub
import pytest
from conftest import IMAGES, MODEL
from hub_server import COMMIT, hub_of

import fovea_encoder as fovea

NAME = "maker/model"
WANTED = ["config.json", "preprocessor_config.json", "video_preprocessor_config.json", "model.safetensors"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with the golden checkpoint, which the process asks, and a home for the cache."""
    for variable in ("HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    files = {name: (MODEL / name).read_bytes() for name in WANTED}
    with hub_of(NAME, {**files, "README.md": b"# A model\n"}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "ours"))
        monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
        hub.cache = tmp_path / "ours" / "hub"
        yield hub


def snapshot_of_the_reference(hub, cache, **arguments):
    return huggingface_hub.snapshot_download(NAME, endpoint=hub.url, cache_dir=cache, token=False, **arguments)


def layout(cache):
    """Paths of the files of a repository in a cache, with their content or where they lead to; without
    the listings that huggingface_hub keeps since 2.0 to ask for them less often."""
    repository = cache / "models--maker--model"
    return {
        str(path.relative_to(repository)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in repository.rglob("*")
        if (path.is_symlink() or path.is_file()) and path.parent.name != "trees"
    }


def test_the_cache_is_the_one_that_the_reference_makes(hub, tmp_path):
    assert fovea.pull_model(NAME) == str(hub.cache / "models--maker--model" / "snapshots" / COMMIT)
    theirs = tmp_path / "theirs"
    snapshot_of_the_reference(hub, theirs, allow_patterns=WANTED)
    assert layout(hub.cache) == layout(theirs)


def test_the_reference_finds_what_was_pulled(hub):
    ours = fovea.pull_model(NAME)
    count = len(hub.downloads())
    assert snapshot_of_the_reference(hub, hub.cache, local_files_only=True) == ours
    assert huggingface_hub.try_to_load_from_cache(NAME, "config.json", cache_dir=hub.cache) == f"{ours}/config.json"
    snapshot_of_the_reference(hub, hub.cache, allow_patterns=WANTED)
    assert len(hub.downloads()) == count


def test_what_the_reference_pulled_is_found(hub):
    theirs = snapshot_of_the_reference(hub, hub.cache)
    count = len(hub.downloads())
    engine = fovea.Engine.from_pretrained(NAME, device="cpu", threads=1)
    assert engine.family == "qwen3_vl"
    assert fovea.pull_model(NAME) == theirs
    assert len(hub.downloads()) == count


def test_an_engine_downloads_its_model(hub, engine):
    named = fovea.Engine.from_pretrained(NAME, device="cpu", threads=2, download=True)
    (item,), (expected,) = named.encode(IMAGES[0]), engine.encode(IMAGES[0])
    assert bytes(memoryview(item)) == bytes(memoryview(expected))
    assert NAME in repr(pickle.loads(pickle.dumps(named)))
    assert "/storage" in hub.downloads()[-1] and "README" not in str(hub.downloads())


def test_a_model_that_is_not_there_says_how_to_get_it(hub):
    with pytest.raises(fovea.Error, match="got 'maker/model'; download=True gets it") as caught:
        fovea.Engine.from_pretrained(NAME)
    assert caught.value.code == "not_found"
    with pytest.raises(fovea.Error, match="got 'maker/model' at revision v2"):
        fovea.Engine.from_pretrained(NAME, revision="v2")
    assert not hub.requests


def test_options_of_the_hub_need_a_name(hub):
    for options in ({"download": True}, {"revision": "v2"}):
        with pytest.raises(fovea.Error, match="expected a name on the hub") as caught:
            fovea.Engine.from_pretrained(MODEL, **options)
        assert caught.value.code == "invalid_argument"


def test_what_the_cache_has_will_do_without_the_hub(hub, monkeypatch, caplog):
    fovea.pull_model(NAME)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fovea.Engine.from_pretrained(NAME, device="cpu", threads=1, download=True).family == "qwen3_vl"
    assert "HF_HUB_OFFLINE is set; the hub cache has" in caplog.text
    with pytest.raises(fovea.Error) as caught:
        fovea.pull_model("maker/other")
    assert caught.value.code == "unavailable"


def test_progress_is_told_and_may_end_it(hub, tmp_path):
    told = []
    output = tmp_path / "model"
    assert fovea.pull_model(NAME, output=output, progress=lambda *now: told.append(now)) == str(output)
    assert [name for name in dict.fromkeys(name for name, _, _ in told)] == WANTED
    assert all(done <= total for _, done, total in told)
    assert (output / "model.safetensors").read_bytes() == hub.files["model.safetensors"]

    def end(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fovea.pull_model(NAME, progress=end)
    assert not (hub.cache / "models--maker--model/refs").exists()
