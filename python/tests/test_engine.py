"""What an engine promises beside its rows."""

import asyncio
import concurrent.futures
import logging
import os
import pathlib
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
from conftest import IMAGES, MODEL, load_engine

import fovea_encoder as fovea
from fovea_encoder.client import Client


def expect_output(script, output):
    """A program that ends with its own status, and says this and nothing else."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def bits(items):
    return [item._array().tobytes() for item in items]


def test_errors_have_a_code(engine, tmp_path):
    with pytest.raises(fovea.Error) as missing:
        engine.encode(tmp_path / "none.png")
    assert missing.value.code in ("not_found", "io")
    assert "none.png" in str(missing.value)
    with pytest.raises(fovea.Error) as broken:
        engine.encode([IMAGES[0], b"no image"])
    assert "images[1]" in str(broken.value)
    with pytest.raises(RuntimeError):
        engine.encode(b"no image")
    with pytest.raises(fovea.Error) as absent:
        fovea.Engine.from_pretrained(tmp_path)
    assert absent.value.code == "not_found"


def test_errors_are_recorded_in_their_place(engine):
    items = engine.encode([IMAGES[0], b"no image", IMAGES[1]], on_error="record")
    assert items[0].error is None and items[2].error is None
    assert isinstance(items[1].error, fovea.Error)
    assert items[1].name == "images[1]"
    assert bits([items[0], items[2]]) == bits(engine.encode(IMAGES[:2]))


def test_unknown_words_are_refused(engine):
    with pytest.raises(ValueError, match="dtype: expected one of"):
        engine.encode(IMAGES[0], dtype="int8")
    with pytest.raises(ValueError, match="on_error"):
        engine.encode(IMAGES[0], on_error="ignore")
    with pytest.raises(TypeError, match='no option "sead"'):
        load_engine(sead=1)
    with pytest.raises(TypeError, match="option seed cannot be 'one'"):
        load_engine(seed="one")
    with pytest.raises(ValueError, match="packing: expected one of greedy, greedy-fill, cost"):
        load_engine(packing="best")
    with pytest.raises(ValueError, match="decode_deadline_ms: expected at least 0, got -1"):
        load_engine(decode_deadline_ms=-1)


@pytest.mark.parametrize(
    "name, wrong, message",
    [
        ("dtype", None, "a str, got a NoneType"),
        ("dtype", numpy.float32, "a str, got a type"),
        ("on_error", 1, "a str, got a int"),
        ("use_cache", 1, "True or False, got a int"),
        ("enforce_eager", "no", "True or False, got a str"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(engine, server, name, wrong, message):
    calls = [engine.encode, lambda images, **given: engine.encode_into(images, out=[], **given)]
    if name in ("dtype", "on_error"):
        calls.append(lambda images, **given: asyncio.run(engine.encode_async(images, **given)))
    if name == "dtype":
        del calls[1]
    if name != "enforce_eager":
        calls.append(Client(server).encode)
    for call in calls:
        with pytest.raises(TypeError, match=f"{name}: expected {message}"):
            call(IMAGES[0], **{name: wrong})


def test_a_number_of_a_wrong_type_is_named(engine):
    async def stream():
        return [item async for item in engine.stream(IMAGES, in_flight=1.5)]

    with pytest.raises(TypeError, match="in_flight: expected a whole number, got a float"):
        asyncio.run(stream())
    for call in (lambda: engine.embed(IMAGES, batch_size="8"), lambda: Client("http://host", batch_size="8")):
        with pytest.raises(TypeError, match="batch_size: expected a whole number, got a str"):
            call()
    for call in (lambda: fovea.pull_model("a/b", 5), lambda: fovea.Engine.from_pretrained("a/b", revision=5)):
        with pytest.raises(TypeError, match="revision: expected a str, got a int"):
            call()


def test_options_reach_the_engine():
    small = load_engine(max_pixels=64 * 64, encoder_cache_bytes=8 << 20, cudagraph_mm_encoder=False)
    (item,) = small.encode(IMAGES[0])
    assert item.resized_size[0] * item.resized_size[1] <= 64 * 64
    assert len(item.key) == 64
    assert (item.cache, item.graph) == ("miss", "miss")
    (again,) = small.encode(IMAGES[0])
    assert (again.cache, again.graph) == ("hit", None)
    assert pickle.loads(pickle.dumps(again)).cache is None
    assert small.stats()["cache_hits"] == 1


def test_jpeg_files_are_decoded_at_a_fraction_of_their_size_on_request():
    photo = next(path for path in IMAGES if path.endswith(".jpg"))
    options = {"min_pixels": 32 * 32, "max_pixels": 32 * 32, "encoder_cache_bytes": 8 << 20}
    (full,) = load_engine(**options).encode(photo)
    (scaled,) = load_engine(jpeg_scaling=True, **options).encode(photo)
    assert scaled.grid_thw == full.grid_thw
    assert scaled.key != full.key
    assert bits([scaled]) != bits([full])


def test_an_engine_is_pickled_as_its_arguments(engine):
    copy = pickle.loads(pickle.dumps(load_engine(min_pixels=128 * 128)))
    assert bits(copy.encode(IMAGES)) == bits(load_engine(min_pixels=128 * 128).encode(IMAGES))
    assert repr(copy) == repr(engine)


def test_eight_threads_get_the_same_bits(engine):
    expected = bits(engine.encode(IMAGES))

    def work(_):
        return all(bits(engine.encode(IMAGES)) == expected for _ in range(5))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_other_threads_run_during_a_call(engine):
    """A call that kept the GIL would let nothing else happen."""
    images = IMAGES * 40
    steps, ended = [], threading.Event()

    def count():
        while not ended.wait(0.001):
            steps.append(1)

    thread = threading.Thread(target=count)
    thread.start()
    engine.encode(images)
    seen = len(steps)
    ended.set()
    thread.join()
    assert seen > 0


def test_other_threads_run_while_an_array_is_copied(engine):
    """A thread that waits for the GIL gets it from a call that lets go of it, and from no other here."""
    steps, seen, ended = [], [], threading.Event()

    class Path:
        def __fspath__(self):
            seen.append(len(steps))
            return IMAGES[0]

    def count():
        while not ended.wait(0.0001):
            steps.append(1)

    array = numpy.zeros((6000, 6000, 3), numpy.uint8)[:, ::-1, ::-1]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    thread = threading.Thread(target=count)
    try:
        thread.start()
        engine.plan_items([Path(), array, Path()])
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()
    begin, end = seen
    assert end > begin


def test_async_calls_get_the_same_bits(engine):
    expected = bits(engine.encode(IMAGES))

    async def main():
        replies = await asyncio.gather(*(engine.encode_async([image]) for image in IMAGES * 8))
        return bits([reply[0] for reply in replies])

    assert asyncio.run(main()) == expected * 8


def test_async_errors(engine):
    async def main():
        with pytest.raises(fovea.Error):
            await engine.encode_async(b"no image")
        (item,) = await engine.encode_async(b"no image", on_error="record")
        assert item.error is not None
        with pytest.raises(TypeError):
            await engine.encode_async([7])

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_request(engine):
    async def main():
        task = asyncio.ensure_future(engine.encode_async(IMAGES * 100))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return bits(await engine.encode_async(IMAGES))

    assert asyncio.run(main()) == bits(engine.encode(IMAGES))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_keeps_the_order_and_its_window(engine, asynchronous):
    taken = []

    def some():
        for i, image in enumerate(IMAGES * 5):
            taken.append(i)
            yield image

    async def some_async():
        for image in some():
            yield image

    async def main():
        items = []
        async for item in engine.stream(some_async() if asynchronous else some(), in_flight=3):
            assert len(taken) - len(items) <= 3
            items.append(item)
        return items

    assert bits(asyncio.run(main())) == bits(engine.encode(IMAGES)) * 5


@pytest.mark.parametrize("kind", [str, lambda path: pathlib.Path(path).read_bytes()], ids=["path", "bytes"])
def test_a_stream_of_one_image_is_none_of_its_letters(engine, kind):
    async def main():
        return [item async for item in engine.stream(kind(IMAGES[0]))]

    assert bits(asyncio.run(main())) == bits(engine.encode(IMAGES[0]))


def test_a_stream_can_be_left(engine):
    async def main():
        stream = engine.stream(IMAGES * 20)
        async for item in stream:
            break
        await stream.aclose()
        return item.name

    assert asyncio.run(main()) == IMAGES[0]


LOOP = f"""
import signal, sys, threading, time, fovea_encoder as fovea
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=1)
images = {IMAGES!r} * 50000
print("ready", flush=True)
try:
    engine.encode(images)
except KeyboardInterrupt:
    print("interrupted", len(engine.encode(images[:4])), flush=True)
else:
    print("done", flush=True)
"""


def test_ctrl_c_ends_a_call_and_leaves_a_usable_engine():
    process = subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted 4\n"
        assert process.wait(60) == 0
    finally:
        process.kill()


def test_ctrl_c_ends_a_call_that_copies_arrays():
    """The signal comes with the first of fifty copies, of 12 MB each: not all of them are made."""
    script = f"""
import numpy, resource, signal, fovea_encoder as fovea
signal.signal(signal.SIGALRM, signal.default_int_handler)
engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=1)
array = numpy.zeros((2000, 2000, 3), numpy.uint8)[:, ::-1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
signal.setitimer(signal.ITIMER_REAL, 0.001)
try:
    engine.plan_items([array] * 50)
except KeyboardInterrupt:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10)
"""
    expect_output(script, "True\n")


@pytest.mark.parametrize("repetitions", [1, 50000])
def test_a_process_ends_while_its_daemon_threads_encode(repetitions):
    script = f"""
import threading, time, fovea_encoder as fovea
engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=1)
def encode():
    while True:
        engine.encode({IMAGES!r} * {repetitions})
for _ in range(3):
    threading.Thread(target=encode, daemon=True).start()
time.sleep(0.5)
print("ends")
"""
    expect_output(script, "ends\n")


@pytest.mark.parametrize("repetition", range(3))
def test_a_process_ends_while_its_daemon_threads_make_engines(repetition):
    """Engines of which the end knows nothing, with replies on their way, and some that are just let go of;
    three times, because it depends on the moment."""
    script = f"""
import asyncio, threading, time, fovea_encoder as fovea
def encode():
    while True:
        engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=1)
        try:
            asyncio.run(engine.encode_async({IMAGES!r}))
        except fovea.Error as error:
            assert error.code in ("cancelled", "unavailable"), error
        del engine
for _ in range(3):
    threading.Thread(target=encode, daemon=True).start()
time.sleep(0.5)
print("ends")
"""
    expect_output(script, "ends\n")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_engine_does_not_survive_a_fork(engine):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            engine.encode(IMAGES[0])
            os.write(write, b"no error")
        except fovea.Error as error:
            os.write(write, f"{error.code}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    message = os.read(read, 1000).decode()
    assert message.startswith("unsupported: this engine belongs to process")
    assert bits(engine.encode(IMAGES[0]))


def test_a_forked_process_ends_by_itself():
    script = f"""
import os, sys, fovea_encoder as fovea
engine = fovea.Engine.from_pretrained({str(MODEL)!r}, device="cpu", threads=2)
engine.encode({IMAGES!r})
child = os.fork()
if child == 0:
    del engine
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


def test_the_log_is_that_of_python(caplog):
    with caplog.at_level(logging.DEBUG, "fovea"):
        engine = load_engine()
        engine.encode(IMAGES)
    assert caplog.records
    assert {record.name for record in caplog.records} == {"fovea"}
    caplog.clear()
    with caplog.at_level(logging.ERROR, "fovea"):
        engine.encode(IMAGES)
    assert not caplog.records


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_memory_stays_flat(engine):
    from PIL import Image

    image = Image.open(IMAGES[0]).convert("RGB")
    kinds = [IMAGES[0], open(IMAGES[0], "rb").read(), image, numpy.array(image)]

    def calls(count):
        for _ in range(count):
            for item in engine.encode(kinds):
                item.numpy(), numpy.from_dlpack(item)
            engine.encode(b"no image", on_error="record")

    calls(200)
    before = resident_bytes()
    calls(1000)
    # A leak of one image or its rows per call would be 20 MB and more.
    assert resident_bytes() - before < 8 << 20


def test_memory_stays_flat_over_ten_thousand_calls():
    """Of items in an encoder cache, where calls take the least."""
    cached = load_engine(encoder_cache_bytes=8 << 20)
    image = numpy.random.default_rng(1).integers(0, 256, (256, 256, 3), numpy.uint8)
    kinds = [image, pathlib.Path(IMAGES[0]).read_bytes(), IMAGES[1]]

    def calls(count):
        for i in range(count):
            (item,) = cached.encode(kinds[i % len(kinds)])
            item.numpy(), memoryview(item)

    calls(1000)
    before = resident_bytes()
    calls(10000)
    # A leak of a tenth of an image or of its rows per call would be 20 MB and more.
    assert resident_bytes() - before < 8 << 20
    assert cached.stats()["cache_misses"] == len(kinds)


def test_an_import_loads_no_asyncio():
    """It takes longer to import than the rest of the package."""
    script = "import fovea_encoder as fovea, sys; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
