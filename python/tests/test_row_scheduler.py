"""The connector's books, files of rows and circuit breakers, without vLLM and without torch."""

import logging
import os
import subprocess
import sys
import threading
import time
import types

import pytest
from servers import PATIENCE, Scripted, reply

import fovea_encoder as fovea
from fovea_encoder.integrations._encode_servers import EncodeServers
from fovea_encoder.integrations._row_files import RowFile
from fovea_encoder.integrations._row_scheduler import RowScheduler

FOREVER = 1e6  # seconds
ROWS = bytes(range(24))  # 2 rows of 3 float32 elements


def safetensors(rows=ROWS, dtype="F32", shape=(2, 3), name="ec_cache"):
    """A file with one tensor."""
    text = f'{{"{name}":{{"dtype":"{dtype}","shape":{list(shape)},"data_offsets":[0,{len(rows)}]}}}}'
    return len(text).to_bytes(8, "little") + text.encode() + rows


def read(rows):
    """The elements that another process reads."""
    script = "import sys; f = open(sys.argv[1], 'rb'); f.seek(int(sys.argv[2])); sys.stdout.buffer.write(f.read())"
    command = [sys.executable, "-c", script, rows.path, str(rows.offset)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def is_open(rows):
    return os.path.exists(rows.path) and os.stat(rows.path).st_ino == rows.inode[1]


def ask(*keys, request_id="r", length=2):
    """A request of vLLM with items of `length` rows one after the other."""
    features = [
        types.SimpleNamespace(
            identifier=key, mm_position=types.SimpleNamespace(offset=i * length, length=length)
        )
        for i, key in enumerate(keys)
    ]
    return types.SimpleNamespace(
        request_id=request_id, mm_features=features, get_num_encoder_embeds=lambda index: length
    )


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.001)


class Finder:
    """What brings rows: of keys in `files` at once, of those in `held` when they are released."""

    def __init__(self, *files, held=()):
        self.files, self.held, self.asked = set(files), set(held), []
        self.release = threading.Event()

    def __call__(self, key):
        self.asked.append(key)
        if key in self.held:
            assert self.release.wait(PATIENCE)
        return RowFile.of_bytes(safetensors()) if key in self.files else None


@pytest.fixture
def scheduler():
    """Makes schedulers of a finder."""
    made = []

    def make(find, seconds=FOREVER, **options):
        made.append(RowScheduler(find, seconds, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def settle(scheduler, request, computed=0):
    until(lambda: scheduler.ensure(request, computed))


def take(scheduler, request, index=0):
    """Does what vLLM does with an item that it schedules; the rows of the step."""
    key = request.mm_features[index].identifier
    if scheduler.has(key):
        scheduler.allocated(request, index)
    return scheduler.step([])


def test_a_request_is_passed_over_until_its_rows_are_here(scheduler):
    find = Finder("a", held=["a"])
    books, request = scheduler(find), ask("a")
    assert not books.ensure(request, 0)
    assert not books.ensure(request, 0)
    find.release.set()
    settle(books, request)
    rows = take(books, request)["a"]
    assert (rows.dtype, rows.shape, read(rows)) == ("float32", (2, 3), ROWS)
    assert find.asked == ["a"]


def test_other_requests_do_not_wait_for_a_key_that_hangs(scheduler):
    find = Finder("a", "b", held=["a"])
    books = scheduler(find)
    assert not books.ensure(ask("a"), 0)
    settle(books, ask("b", request_id="s"))
    assert books.ensure(ask(request_id="text"), 0)
    find.release.set()


def test_rows_that_nobody_has_leave_the_item_to_vllm(scheduler):
    books, request = scheduler(Finder()), ask("a")
    settle(books, request)
    assert not books.has("a")
    assert books.take_counters() == {"absent": 1}


def test_rows_that_do_not_come_in_time_leave_the_item_to_vllm(scheduler):
    find = Finder("a", held=["a"])
    books, request = scheduler(find, seconds=0), ask("a")
    assert books.ensure(request, 0)
    assert not books.has("a")
    find.release.set()
    books.close()
    assert books.take_counters()["late"] == 1


def test_rows_that_came_too_late_change_nothing(scheduler):
    find = Finder("a", "b", held=["a"])
    books, request = scheduler(find), ask("a")
    books.ensure(request, 0)
    assert not books.has("a")  # vLLM schedules it all the same, and encodes
    find.release.set()
    settle(books, ask("b", request_id="s"))
    assert not books.has("a")


def test_a_number_of_rows_that_the_prompt_has_not_is_refused(scheduler, caplog):
    books, request = scheduler(Finder("a")), ask("a", length=3)
    with caplog.at_level(logging.WARNING, "fovea"):
        settle(books, request)
    assert not books.has("a")
    assert "a: expected 3 rows, as the prompt has places, got 2" in caplog.text


def test_a_finder_that_fails_leaves_the_item_to_vllm(scheduler):
    def find(key):
        if key == "a":
            raise RuntimeError("unforeseen")
        return RowFile.of_bytes(safetensors())

    books = scheduler(find)
    settle(books, ask("a"))
    assert not books.has("a")
    settle(books, ask(*"bcdefghijk", request_id="s"))  # more than there are threads
    assert books.has("k")


def test_items_that_are_computed_are_not_asked_for(scheduler):
    find = Finder("b")
    books, request = scheduler(find), ask("a", "b")
    settle(books, request, computed=2)
    assert find.asked == ["b"]
    assert books.ensure(request, 4)


def test_what_vllm_holds_is_asked_for_again_only_when_it_was_evicted(scheduler):
    find = Finder("a")
    books, request = scheduler(find), ask("a")
    settle(books, request)
    assert take(books, request)
    other = ask("a", request_id="s")
    assert books.ensure(other, 0)
    assert books.step(["a"]) == {}
    settle(books, other)
    assert find.asked == ["a", "a"]


def test_what_vllm_forgot_without_a_word_is_encoded_once(scheduler):
    books, request = scheduler(Finder("a")), ask("a")
    settle(books, request)
    take(books, request)
    assert not books.has("a")  # asked for although it was allocated: its cache was reset
    settle(books, request)
    assert books.has("a")


def test_files_stay_open_as_long_as_a_step_may_run(scheduler):
    books, request = scheduler(Finder("a"), steps_in_flight=2), ask("a")
    settle(books, request)
    rows = take(books, request)["a"]
    for _ in range(2):
        books.step([])
        assert is_open(rows)
    books.step([])
    assert not is_open(rows)


def test_a_request_that_ended_leaves_no_file(scheduler):
    books, first, second = scheduler(Finder("a")), ask("a"), ask("a", request_id="s")
    settle(books, first)
    settle(books, second)
    books.finished(first)
    assert books.has("a")
    books.finished(second)
    assert not books.has("a")


def test_rows_by_value_need_no_file(scheduler):
    books, request = scheduler(Finder("a"), by_value=True), ask("a")
    settle(books, request)
    assert take(books, request)["a"].data == ROWS


def test_requests_whose_rows_a_worker_could_not_read_fail(scheduler):
    books, first, second = scheduler(Finder("a")), ask("a"), ask("a", request_id="s")
    settle(books, first)
    take(books, first)
    assert books.ensure(second, 0)  # vLLM holds it, as far as anybody knows
    books.unreadable({"a"})
    assert books.take_unavailable() == {"r", "s"}
    assert books.take_unavailable() == set()
    assert books.take_counters()["unreadable"] == 1


def test_rows_that_a_worker_could_not_read_are_loaded_again_for_the_next_request(scheduler):
    books, first, second = scheduler(Finder("a")), ask("a"), ask("a", request_id="s")
    settle(books, first)
    take(books, first)
    books.unreadable({"a"})
    books.take_unavailable()
    books.finished(first)
    settle(books, second)
    assert read(books.step([])["a"]) == ROWS
    assert books.ensure(second, 0)
    assert books.take_unavailable() == set()


def test_requests_fail_where_rows_that_a_worker_could_not_read_are_gone(scheduler):
    find = Finder("a")
    books, first, second = scheduler(find), ask("a"), ask("a", request_id="s")
    settle(books, first)
    take(books, first)
    books.unreadable({"a"})
    find.files.clear()
    books.take_unavailable()
    failed = set()
    until(lambda: not books.ensure(second, 0) and failed.update(books.take_unavailable()) or failed)
    assert failed == {"s"}


def test_a_file_has_no_name_that_could_stay_behind():
    file = RowFile.of_bytes(safetensors())
    assert os.readlink(file.rows().path).endswith("(deleted)")
    file.close()
    file.close()


def test_files_that_hold_no_rows_are_refused(tmp_path):
    for data in (
        safetensors(shape=(2, 4)),
        safetensors(shape=(6,)),
        safetensors(name="other"),
        safetensors(dtype="I64", shape=(1, 3)),
        safetensors()[:-1],
        b"\xff" * 20,
        b"short",
    ):
        with pytest.raises(fovea.Error, match="does not hold rows") as caught:
            RowFile.of_bytes(data)
        assert caught.value.code == "corrupt_data"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "encoder_cache.safetensors").touch()
    with pytest.raises(ValueError):
        RowFile.published(tmp_path, "empty")


def test_published_rows_are_mapped_and_outlive_their_name(tmp_path):
    path = tmp_path / "key" / "encoder_cache.safetensors"
    path.parent.mkdir()
    path.write_bytes(safetensors())
    file = RowFile.published(tmp_path, "key")
    path.unlink()
    assert read(file.rows()) == ROWS
    file.close()
    for key in ("key", "", ".", "..", "../key", "a\0b"):
        assert RowFile.published(tmp_path, key) is None


def info(fingerprint="a", dtype="float32"):
    return reply(200, {"fingerprint": fingerprint, "dtype": dtype})


def rows_reply():
    return reply(200, body=safetensors())


@pytest.fixture
def servers(monkeypatch):
    """Makes EncodeServers that probe at once."""
    monkeypatch.setattr("fovea_encoder.integrations._encode_servers._SHORTEST_AWAY_SECONDS", 0.0)
    made = []

    def make(*urls, **options):
        made.append(EncodeServers(urls, **options))
        made[-1].wait(0)
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def away_for_ever(servers, monkeypatch):
    monkeypatch.setattr("fovea_encoder.integrations._encode_servers._SHORTEST_AWAY_SECONDS", FOREVER)


def found(servers, key="key"):
    file = servers.find(key)
    if file is None:
        return False
    file.close()
    return True


# A connection that ends is made once more: it may have been closed while it was idle.
@pytest.mark.parametrize("failure", [[None, None], [reply(500)], [reply(200, body=b"nonsense")]])
def test_a_server_that_failed_is_asked_again_after_a_probe(servers, failure):
    with Scripted(info(), *failure, info(), rows_reply()) as scripted:
        one = servers(scripted.url)
        assert not found(one)
        until(lambda: one.num_away() == 0)
        assert found(one)
        assert scripted.requests[-2:] == ["/info", "/v1/cache/key"]


def test_a_server_that_hangs_costs_its_share_of_the_time_once(servers, away_for_ever):
    with Scripted(info(), "wait") as hung, Scripted(info(), rows_reply(), rows_reply()) as good:
        one = servers(hung.url, good.url, timeout=0.5)
        assert found(one)
        assert found(one)
        assert hung.requests == ["/info", "/v1/cache/key"]


def test_a_server_that_is_away_is_asked_for_nothing(servers, away_for_ever):
    with Scripted(info(), reply(500)) as scripted:
        one = servers(scripted.url)
        assert not found(one)
        assert not found(one)
        assert one.num_away() == 1
        assert scripted.requests == ["/info", "/v1/cache/key"]


def test_calls_that_fail_together_open_the_breaker_once(servers, away_for_ever, monkeypatch):
    monkeypatch.setattr("fovea_encoder.integrations._encode_servers._LONGEST_AWAY_SECONDS", 100 * FOREVER)
    with Scripted(info(), "wait") as hung:
        one = servers(hung.url, timeout=0.5)
        calls = [threading.Thread(target=found, args=(one, key)) for key in "abcd"]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        assert one._servers[0].away_seconds == 2 * FOREVER


def test_the_next_server_is_asked_where_one_fails(servers, away_for_ever):
    with Scripted(info(), reply(500)) as broken, Scripted(info(), rows_reply(), rows_reply()) as good:
        one = servers(broken.url, good.url)
        assert found(one)
        assert found(one)
        assert broken.requests == ["/info", "/v1/cache/key"]


def test_rows_that_no_server_has_do_not_open_a_breaker(servers):
    missing = reply(404, {"error": {"message": "m", "code": "key_not_found"}})
    with Scripted(info(), missing, rows_reply()) as scripted:
        one = servers(scripted.url)
        assert not found(one)
        assert found(one)
        assert one.num_away() == 0


def test_a_server_that_comes_back_with_another_model_is_passed_over(servers, tmp_path, caplog):
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "encoder_cache.safetensors").write_bytes(safetensors())
    with Scripted(info("a"), reply(500), *[info("b")] * 1000) as scripted, caplog.at_level(logging.WARNING, "fovea"):
        one = servers(scripted.url, folder=str(tmp_path))
        assert found(one)
        assert not found(one, "other")
        until(lambda: "got b" in caplog.text)
        assert not found(one)  # whoever has the other model may have written to the folder
        assert caplog.text.count("got b") == 1


def test_rows_of_the_folder_need_no_server_that_answers(servers, tmp_path, away_for_ever):
    with Scripted(info(), reply(500)) as scripted:
        one = servers(scripted.url, folder=str(tmp_path), dtype="float32")
        assert not found(one)
        for key, data in (("key", safetensors()), ("half", safetensors(dtype="F16", shape=(4, 3))), ("bad", b"")):
            (tmp_path / key).mkdir()
            (tmp_path / key / "encoder_cache.safetensors").write_bytes(data)
        assert found(one)
        assert not found(one, "half")
        assert not found(one, "bad")
