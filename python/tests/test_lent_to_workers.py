"""Rows that servers lend to the connector's workers: who may map what, when leases are taken and given
back, and that they copy in time. Memory of a GPU is a file here, and its handle the file's name."""

import base64
import contextlib
import mmap
import os
import pickle
import socket
import time
import types

import pytest
from servers import Scripted, reply
from test_lent_rows import END, item, lent, open_reply
from test_row_scheduler import ask, found, info, rows_reply, servers, settle, take  # noqa: F401

import fovea_encoder as fovea
from fovea_encoder.client import _device
from fovea_encoder.client._device import Memory
from fovea_encoder.integrations._lent_rows import Borrower, Lenders, LentRows, Mapped
from fovea_encoder.integrations._row_scheduler import RowScheduler

OURS = Memory("GPU-a", b"1" * 64, 4096)
OTHER = Memory("GPU-a", b"2" * 64, 4096)
FLOATS = {"dtype": "float32", "rows": 2, "width": 3}


def lent_reply(*offsets, **options):
    document = {"gpu": OURS.gpu, "handle": base64.b64encode(OURS.handle).decode(), "bytes": OURS.size}
    items = {"key": item(offsets[0], **FLOATS) if offsets else None}
    return open_reply(lent(items, memories=[document], **options))


def mapped(*memories):
    return Mapped(frozenset(memories))


def lenders_of(*memories):
    """Those whose memories the worker has mapped."""
    lenders = Lenders()
    for memory in memories:
        lenders.want(memory)
    lenders.report(mapped(*memories))
    return lenders


# Which memories.


def test_nothing_is_lent_before_its_memory_is_mapped():
    lenders = Lenders()
    assert lenders.want(OURS) is None
    assert lenders.memories() == {OURS: False}
    lenders.report(mapped(OTHER))
    assert not lenders.is_mapped(OURS)
    lenders.report(mapped(OURS))
    assert lenders.is_mapped(OURS)
    assert lenders.want(OURS) is None
    assert lenders.memories() == {OURS: True}


def test_nothing_is_lent_of_memory_that_the_worker_refuses(caplog):
    lenders = Lenders()
    lenders.want(OURS)
    lenders.report(Mapped(refused={OURS: "why"}) | mapped(OTHER))
    assert not lenders.is_mapped(OURS)
    assert lenders.memories() == {}
    assert lenders.want(OURS) == "why"
    assert "rows in memory of GPU-a come over HTTP: why" in caplog.text


def test_a_report_of_memory_that_was_forgotten_changes_nothing():
    lenders = Lenders()
    lenders.want(OURS)
    lenders.forget([OURS])
    lenders.report(mapped(OURS))
    lenders.report(Mapped(refused={OURS: "why"}))
    assert lenders.memories() == {}
    assert lenders.want(OURS) is None


# Leases.


def test_rows_are_sent_until_the_memory_is_mapped_and_lent_then(servers):  # noqa: F811
    lenders = Lenders()
    script = (info(), lent_reply(0), (END,), rows_reply(), lent_reply(256), (END,), info())
    with Scripted(*script) as scripted:
        one = servers(scripted.url, lenders=lenders)
        assert isinstance(one.find("key").rows().path, str)
        assert lenders.memories() == {OURS: False}
        lenders.report(mapped(OURS))
        leased = one.find("key")
        rows = pickle.loads(pickle.dumps(leased.rows()))
        assert (rows.memory, rows.place.offset, leased.shape, leased.nbytes) == (OURS, 256, (2, 3), 24)
        assert leased.is_fresh()
        leased.close()
        leased.close()
        assert not leased.is_fresh()
        one._servers[0].client.info()
        assert scripted.connections == 1, "the lease was given back"
        assert scripted.requests.count("/v1/cache/key") == 1


def test_rows_that_are_not_on_the_gpu_are_sent(servers):  # noqa: F811
    with Scripted(info(), lent_reply(), (END,), rows_reply()) as scripted:
        assert found(servers(scripted.url, lenders=lenders_of(OURS)))


def test_a_server_that_lends_to_as_many_as_it_may_sends_rows(servers):  # noqa: F811
    full = reply(429, {"error": {"message": "m", "code": "queue_full"}}, "Retry-After: 1000\r\n")
    with Scripted(info(), full, rows_reply(), full, rows_reply()) as scripted:
        one = servers(scripted.url, lenders=lenders_of(OURS))
        assert found(one)
        assert found(one)
        assert one.num_away() == 0


def test_a_server_that_does_not_lend_is_asked_once(servers):  # noqa: F811
    never = reply(405, {"error": {"message": "m", "code": "method_not_allowed"}})
    with Scripted(info(), never, rows_reply(), rows_reply()) as scripted:
        one = servers(scripted.url, lenders=Lenders())
        assert found(one)
        assert found(one)
        assert scripted.requests.count("/v1/cache/lend") == 1


def test_a_server_whose_memory_cannot_be_mapped_is_asked_once_more(servers):  # noqa: F811
    lenders = Lenders()
    script = (info(), lent_reply(0), (END,), rows_reply(), lent_reply(0), (END,), rows_reply(), rows_reply())
    with Scripted(*script) as scripted:
        one = servers(scripted.url, lenders=lenders)
        assert found(one)
        lenders.report(Mapped(refused={OURS: "why"}))
        assert found(one)
        assert found(one)
        assert scripted.requests.count("/v1/cache/lend") == 2


def test_rows_of_another_dtype_are_not_lent(servers):  # noqa: F811
    script = (info(dtype="bfloat16"), lent_reply(0), (END,), rows_reply())
    with Scripted(*script) as scripted:
        assert found(servers(scripted.url, lenders=lenders_of(OURS), dtype="bfloat16"))
        assert scripted.requests[-1] == "/v1/cache/key"


def test_memory_of_a_server_that_fails_is_forgotten(servers, monkeypatch):  # noqa: F811
    monkeypatch.setattr("fovea_encoder.integrations._encode_servers._SHORTEST_AWAY_SECONDS", 1e6)
    lenders = lenders_of(OURS)
    with Scripted(info(), lent_reply(0), (END,), reply(500)) as scripted:
        one = servers(scripted.url, lenders=lenders)
        leased = one.find("key")
        assert leased.is_fresh()
        leased.close()
        one._servers[0].lends = False
        assert not found(one)
        assert lenders.memories() == {}


@pytest.mark.parametrize("change", ["the memory is forgotten", "half of the time has passed", "the server ends"])
def test_leases_that_workers_cannot_rely_on_are_not_fresh(servers, change):  # noqa: F811
    lenders, is_short = lenders_of(OURS), change == "half of the time has passed"
    script = (info(), lent_reply(0, lasts_ms=0 if is_short else 60_000))
    with Scripted(*script) as scripted:
        one = servers(scripted.url, lenders=lenders)
        leased = one.find("key")
        assert leased.is_fresh() != is_short
        if change == "the memory is forgotten":
            lenders.forget([OURS])
        if change == "the server ends":
            scripted._open[-1].shutdown(socket.SHUT_RDWR)
        assert not leased.is_fresh()
        leased.close()


class Leased:
    """Rows that are lent, as far as the books know them."""

    def __init__(self):
        self.shape, self.nbytes, self.fresh, self.is_open = (2, 3), 24, True, True

    def rows(self, by_value):
        assert not by_value
        return self

    def is_fresh(self):
        return self.fresh

    def close(self):
        self.is_open = False


@pytest.fixture
def brought():
    """Books of a scheduler, and what was brought for them."""
    files = []

    def find(key):
        files.append(Leased())
        return files[-1]

    books = RowScheduler(find, 1e6)
    yield books, files
    books.close()


def test_rows_that_waited_too_long_are_brought_anew(brought):
    books, files = brought
    settle(books, ask("a"))
    files[0].fresh = False
    second = ask("a", request_id="s")
    assert not books.ensure(second, 0)
    settle(books, second)
    assert [file.is_open for file in files] == [False, True]
    books.finished(second)
    assert take(books, ask("a"))["a"] is files[1], "the first request waits for them, too"


def test_rows_that_grow_old_when_they_are_scheduled_leave_the_item_to_vllm(brought):
    books, files = brought
    settle(books, ask("a"))
    files[0].fresh = False
    assert not books.has("a")
    assert not files[0].is_open


def test_leases_are_given_back_when_a_step_cannot_run_any_more(brought):
    books, files = brought
    settle(books, ask("a"))
    assert take(books, ask("a"))
    books.step([])
    assert files[0].is_open
    books.step([])
    assert not files[0].is_open


# Workers.


@pytest.fixture
def gpu(tmp_path, monkeypatch):
    """A folder with memory of a GPU, which processes map by name, and how often they did."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    numpy = pytest.importorskip("numpy")
    count = []

    class MappedMemory:
        def __init__(self, gpu, handle, size):
            count.append(handle)
            try:
                with open(tmp_path / handle[:1].decode(), "r+b") as file:
                    self.array = numpy.frombuffer(mmap.mmap(file.fileno(), size), dtype="uint8")
            except OSError as problem:
                raise fovea.Error(f"cannot be mapped: {problem}", "device") from problem

        def __dlpack__(self, **options):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    stream = types.SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(_device, "MappedMemory", MappedMemory)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    for memory in (OURS, OTHER):
        (tmp_path / memory.handle[:1].decode()).write_bytes(os.urandom(memory.size))
    return types.SimpleNamespace(folder=tmp_path, mapped=count)


def rows_at(memory, offset, end=1e12):
    return LentRows(memory, _device.Place("", 0, offset, 24, "float32", (2, 3)), end)


def bits(tensor):
    return bytes(tensor.contiguous().view(-1).numpy().tobytes())


def memory_of(gpu, memory, offset):
    return (gpu.folder / memory.handle[:1].decode()).read_bytes()[offset : offset + 24]


def test_a_worker_copies_rows_of_several_servers(gpu):
    borrower = Borrower("GPU-a")
    assert borrower.map({OURS: False, OTHER: False}) == mapped(OURS, OTHER)
    wanted = {"a": (OTHER, 512), "b": (OURS, 0), "c": (OURS, 256), "same": (OURS, 0)}
    copies = borrower.copy({key: rows_at(*place) for key, place in wanted.items()})
    assert {key: bits(rows) for key, rows in copies.items()} == {
        key: memory_of(gpu, *place) for key, place in wanted.items()
    }
    assert borrower.copy({}) == {}


def test_a_worker_maps_memory_once_and_forgets_what_is_not_named_any_more(gpu):
    borrower = Borrower("GPU-a")
    assert borrower.map({OURS: False, OTHER: True}) == mapped(OURS), "says what it was asked"
    assert borrower.map({OURS: True, OTHER: False}) == mapped(OTHER)
    assert sorted(gpu.mapped) == sorted([OURS.handle, OTHER.handle])
    borrower.map({OTHER: True})
    with pytest.raises(ValueError):
        borrower.copy({"a": rows_at(OURS, 0)})
    borrower.map({OURS: True})
    assert gpu.mapped.count(OURS.handle) == 2


def test_a_worker_says_what_it_cannot_map(gpu):
    (gpu.folder / "2").unlink()
    borrower = Borrower("GPU-a")
    elsewhere = OURS._replace(gpu="GPU-b")
    report = borrower.map({OURS: False, OTHER: False, elsewhere: False})
    assert report.memories == {OURS}
    assert "cannot be mapped" in report.refused[OTHER]
    assert report.refused[elsewhere] == "the worker is on GPU-a"
    borrower.map({OTHER: False})
    assert gpu.mapped.count(OTHER.handle) == 1, "it is not tried again"
    assert Borrower("").map({OURS: False}).refused == {OURS: "the worker is on a CPU"}


def test_rows_whose_lease_has_ended_are_not_taken(gpu):
    borrower = Borrower("GPU-a")
    borrower.map({OURS: True})
    copies = borrower.copy({"a": rows_at(OURS, 0), "late": rows_at(OURS, 256, time.monotonic())})
    assert list(copies) == ["a"]
