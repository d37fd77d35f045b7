"""Numbers that are none of what they are given for."""

import asyncio

import numpy
import pytest

from fovea_encoder.client import AsyncClient, Client

FRAME = numpy.zeros((2, 64, 64, 3), numpy.uint8)


def calls(engine, url):
    """encode() of everything that has one."""

    async def encode_async(**arguments):
        async with AsyncClient(url) as client:
            return await client.encode(**arguments)

    client = Client(url)
    return {
        "engine": engine.encode,
        "async engine": lambda **arguments: asyncio.run(engine.encode_async(**arguments)),
        "plan": engine.plan_items,
        "client": client.encode,
        "async client": lambda **arguments: asyncio.run(encode_async(**arguments)),
    }


@pytest.mark.parametrize("fps", [0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["engine", "async engine", "plan", "client", "async client"])
def test_a_rate_is_above_0(engine, server, kind, fps):
    with pytest.raises(ValueError, match="fps: expected a number above 0, got"):
        calls(engine, server)[kind](videos=[FRAME], fps=fps)


@pytest.mark.parametrize("fps", [None, "2", True, [2]])
@pytest.mark.parametrize("kind", ["engine", "async engine", "plan", "client", "async client"])
def test_a_rate_is_a_number(engine, server, kind, fps):
    with pytest.raises(TypeError, match="fps: expected a number, got a"):
        calls(engine, server)[kind](videos=[FRAME], fps=fps)


def test_a_rate_may_be_a_number_of_numpy(engine, server):
    with Client(server) as client:
        for encode in (engine.encode, client.encode):
            times = [encode(videos=[FRAME], fps=fps)[0].timestamps for fps in (4, 4.0, numpy.float32(4), numpy.int64(4))]
            assert times == [times[0]] * 4 and times[0]


def plans(engine, client):
    return (lambda sizes: [item.rows for item in engine.plan(sizes).items]), (
        lambda sizes: [item["num_embeds"] for item in client.plan(sizes)["data"]]
    )


@pytest.mark.parametrize("size", [5, None, ("a", 1), (640.5, 480), "ab", (float("nan"), 1)])
def test_a_size_has_whole_numbers(engine, server, size):
    for plan in plans(engine, Client(server)):
        with pytest.raises(TypeError, match=r"sizes\[1\]: expected \(width, height\).*in whole numbers, got"):
            plan([(640, 480), size])


@pytest.mark.parametrize("size", [(), (640,), (640, 480, 4, 1), (1 << 64, 1)])
def test_a_size_has_two_or_three(engine, server, size):
    for plan in plans(engine, Client(server)):
        with pytest.raises(ValueError, match=r"sizes\[1\]: expected \(width, height\), or .* got"):
            plan([(640, 480), size])


def test_sizes_may_be_those_of_numpy(engine, server):
    for plan in plans(engine, Client(server)):
        rows = plan([(640, 480), (640, 480, 8)])
        assert rows == plan([numpy.array([640, 480]), numpy.array([640, 480, 8])])
        assert rows == plan(iter([[640, 480], (numpy.int32(640), 480, 8)]))
