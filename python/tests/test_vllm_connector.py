"""FoveaECConnector with a server: through vLLM's factory where vLLM is installed, otherwise over a
base class with the same methods."""

import abc
import dataclasses
import logging
import os
import pickle
import signal
import socket
import sys
import types

import pytest
from conftest import IMAGES, MODEL
from servers import PATIENCE, Scripted, reply, served
from test_client import publish
from test_lent_rows import END
from test_lent_to_workers import OURS, bits, gpu, lent_reply, memory_of  # noqa: F401
from test_row_scheduler import ROWS, ask, info, rows_reply, settle, until

import fovea_encoder as fovea
from fovea_encoder.client import Client

METRICS = "vllm.distributed.ec_transfer.ec_connector.metrics"


def stand_in():
    """Modules of vLLM, as far as the connector imports them. Source: vLLM 0.33,
    vllm/distributed/ec_transfer/ec_connector/{base,metrics}.py."""

    class ECConnectorBase(abc.ABC):
        def __init__(self, vllm_config, role):
            self.role = role
            self.is_producer = vllm_config.ec_transfer_config.is_ec_producer
            self.is_consumer = vllm_config.ec_transfer_config.is_ec_consumer
            self._metadata = None

        def bind_connector_metadata(self, metadata):
            self._metadata = metadata

        def _get_connector_metadata(self):
            return self._metadata

        @abc.abstractmethod
        def start_load_caches(self, encoder_cache, **kwargs): ...

        @abc.abstractmethod
        def save_caches(self, encoder_cache, mm_hash, **kwargs): ...

        @abc.abstractmethod
        def has_cache_item(self, identifier): ...

        @abc.abstractmethod
        def update_state_after_alloc(self, request, index): ...

        @abc.abstractmethod
        def build_connector_meta(self, scheduler_output): ...

        def ensure_cache_available(self, request, num_computed_tokens): ...

        def take_unavailable_requests(self): ...

    @dataclasses.dataclass
    class ECConnectorStats:
        data: dict = dataclasses.field(default_factory=dict)

    class ECConnectorPromMetrics:
        def __init__(self, config, types, labelnames, labelvalues):
            self._gauge_cls, self._counter_cls = types["gauge"], types["counter"]
            self.per_engine_labelvalues = labelvalues

    base = types.ModuleType("base")
    base.ECConnectorBase = ECConnectorBase
    base.ECConnectorMetadata = type("ECConnectorMetadata", (), {})
    base.ECConnectorWorkerMetadata = type("ECConnectorWorkerMetadata", (), {})
    metrics = types.ModuleType("metrics")
    metrics.ECConnectorStats, metrics.ECConnectorPromMetrics = ECConnectorStats, ECConnectorPromMetrics
    platforms = types.ModuleType("platforms")
    platforms.current_platform = types.SimpleNamespace(device_type="cpu", is_cuda_alike=lambda: False)
    return {
        **{name: types.ModuleType(name) for name in ("vllm", "vllm.distributed")},
        "vllm.distributed.ec_transfer": types.ModuleType("ec_transfer"),
        "vllm.distributed.ec_transfer.ec_connector": types.ModuleType("ec_connector"),
        "vllm.distributed.ec_transfer.ec_connector.base": base,
        METRICS: metrics,
        "vllm.platforms": platforms,
    }


def forget_modules(patch):
    for name in ("connector", "interface", "metrics"):
        patch.delitem(sys.modules, f"fovea_encoder.integrations._vllm_{name}", raising=False)


@pytest.fixture(scope="module")
def with_vllm():
    """vLLM, or modules in its place."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            import vllm.platforms
            from vllm.platforms.cpu import CpuPlatform

            patch.setattr(vllm.platforms, "_current_platform", CpuPlatform())
        except ImportError:
            for name, module in stand_in().items():
                patch.setitem(sys.modules, name, module)
        forget_modules(patch)
        yield
        forget_modules(patch)


@pytest.fixture
def connector(with_vllm):
    """Makes connectors of a role, from options."""
    made = []

    def make(role="SCHEDULER", dtype="bfloat16", ec_role="ec_consumer", parallel=None, **options):
        made.append(create(role, dtype, ec_role, parallel or {}, {"start_timeout_s": 0, **options}))
        return made[-1]

    yield make
    for one in made:
        one.shutdown()


def create(role, dtype, ec_role, parallel, options):
    alone = {"nnodes": 1, "distributed_executor_backend": "mp", "pipeline_parallel_size": 1, "world_size": 1}
    config = types.SimpleNamespace(
        model_config=types.SimpleNamespace(dtype=f"torch.{dtype}"),
        parallel_config=types.SimpleNamespace(**{**alone, **parallel}),
        max_concurrent_batches=2,
    )
    try:
        from vllm.config.ec_transfer import ECTransferConfig
        from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole
        from vllm.distributed.ec_transfer.ec_connector.factory import ECConnectorFactory
    except ImportError:
        from fovea_encoder.integrations import vllm

        config.ec_transfer_config = types.SimpleNamespace(
            is_ec_producer=ec_role != "ec_consumer",
            is_ec_consumer=ec_role != "ec_producer",
            ec_connector_extra_config=options,
        )
        return vllm.FoveaECConnector(config, types.SimpleNamespace(name=role))
    config.ec_transfer_config = ECTransferConfig(
        ec_connector="FoveaECConnector",
        ec_role=ec_role,
        ec_connector_module_path="fovea_encoder.integrations.vllm",
        ec_connector_extra_config=options,
    )
    return ECConnectorFactory.create_connector(config, getattr(ECConnectorRole, role))


@pytest.fixture
def nobody():
    """A URL at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "http://127.0.0.1:%d" % free.getsockname()[1]


def num_rows(server):
    """Of IMAGES[0]."""
    with Client(server) as client:
        (item,) = client.encode(IMAGES[0])
        return item.shape[0]


def request_of(key, rows):
    return ask(key, length=rows)


def step(scheduler, *evicted):
    output = types.SimpleNamespace(free_encoder_mm_hashes=list(evicted))
    return pickle.loads(pickle.dumps(scheduler.build_connector_meta(output)))  # another process


def scheduled(scheduler, request):
    """What the scheduler tells the worker in a step that takes the item of a request, once it can."""
    settle(types.SimpleNamespace(ensure=scheduler.ensure_cache_available), request)
    if scheduler.has_cache_item(request.mm_features[0].identifier):
        scheduler.update_state_after_alloc(request, 0)
    return step(scheduler)


def loaded(worker, metadata):
    cache = {}
    worker.bind_connector_metadata(metadata)
    worker.start_load_caches(cache)
    return cache


def has(name):
    """Whether this vLLM has a class or method for connectors that older ones have not."""
    interface = sys.modules["fovea_encoder.integrations._vllm_interface"]
    return hasattr(interface.ECConnectorBase, name) or getattr(interface, name, object) is not object


@pytest.mark.parametrize("parallel", [{}, {"nnodes": 2}])  # a file that is mapped; by value
def test_rows_of_a_server_reach_the_worker(connector, server, nobody, caplog, parallel):
    torch = pytest.importorskip("torch")
    publish(server, "reaches", IMAGES[0])
    with caplog.at_level(logging.WARNING, "fovea"):
        scheduler = connector(fovea_urls=[nobody, server], parallel=parallel)
    assert "cannot connect" in caplog.text
    worker = connector("WORKER", fovea_urls=[nobody, server])
    loads = scheduled(scheduler, request_of("reaches", num_rows(server)))
    is_mapped = not parallel and has("take_unavailable_requests")
    assert (loads.rows["reaches"].data is None) == is_mapped
    with Client(server) as client:
        (item,) = client.encode(IMAGES[0])
    assert torch.equal(loaded(worker, loads)["reaches"], item.torch())
    assert worker.build_connector_worker_meta() is None


def test_rows_of_a_folder_are_mapped_while_the_server_is_stopped(connector, program, tmp_path):
    torch = pytest.importorskip("torch")
    with served(program, MODEL, "--ec-dir", str(tmp_path)) as url:
        publish(url, "mapped", IMAGES[0])
        rows = num_rows(url)
        with Client(url) as client:
            (item,) = client.encode(IMAGES[0])
        scheduler = connector(fovea_urls=[url], ec_dir=str(tmp_path))
    loads = scheduled(scheduler, request_of("mapped", rows))
    (tmp_path / "mapped" / "encoder_cache.safetensors").unlink()
    cache = loaded(connector("WORKER", fovea_urls=[url]), loads)
    assert torch.equal(cache["mapped"], item.torch())


@pytest.mark.parametrize("way", ["http", "folder"])
def test_rows_of_videos_are_found_as_those_of_images(connector, program, tmp_path, way):
    frames = MODEL / "video_frames"
    folder = str(tmp_path) if way == "folder" else None
    with served(program, MODEL, *(["--ec-dir", folder] if folder else [])) as url:
        publish(url, "clip", frames)
        with Client(url) as client:
            (item,) = client.encode(videos=frames)
        scheduler = connector(fovea_urls=[url], **({"ec_dir": folder} if folder else {}))
        rows = scheduled(scheduler, request_of("clip", item.shape[0])).rows["clip"]
        assert (rows.dtype, rows.shape) == (item.dtype, item.shape)


def test_rows_of_videos_reach_the_worker(connector, server):
    torch = pytest.importorskip("torch")
    publish(server, "video", MODEL / "video_frames")
    with Client(server) as client:
        (item,) = client.encode(videos=MODEL / "video_frames")
    loads = scheduled(connector(fovea_urls=[server]), request_of("video", item.shape[0]))
    assert torch.equal(loaded(connector("WORKER", fovea_urls=[server]), loads)["video"], item.torch())


@pytest.mark.parametrize(
    "parallel", [{"distributed_executor_backend": "ray"}, {"pipeline_parallel_size": 2}]
)
def test_rows_travel_by_value_where_a_file_may_be_out_of_reach(connector, server, parallel):
    publish(server, "far", IMAGES[0])
    scheduler = connector(fovea_urls=[server], parallel=parallel)
    assert scheduled(scheduler, request_of("far", num_rows(server))).rows["far"].data is not None


def identifier(**values):
    """Under which vLLM looks for an item whose request has options: by its own code where it is
    installed, otherwise what that of 0.32.0 gives for the values of the only test that asks."""
    try:
        import vllm
        from vllm.multimodal.hasher import MultiModalHasher

        if tuple(map(int, vllm.__version__.split(".")[:2])) < (0, 31):
            pytest.skip("vLLM before 0.31 frames values in another way")
        return MultiModalHasher.hash_kwargs("blake3", **values)
    except ImportError:
        return "6a0cb8a47438365430ad4d7937c64ce203c7a0569122e204b47218068301523a"


def test_requests_with_options_are_found_under_the_default_hash_of_vllm(connector, program):
    options = {"rgba_background_color": [255, 255, 255]}
    key = identifier(model_id="org/m", image="a-uuid", media_io_kwargs=options)
    with served(program, MODEL, "--ec-model-id", "org/m") as url:
        publish(url, "a-uuid", IMAGES[0], media_io_kwargs={"image": options})
        scheduler = connector(fovea_urls=[url])
        assert set(scheduled(scheduler, request_of(key, num_rows(url))).rows) == {key}


def test_what_is_not_published_is_not_loaded(connector, server):
    scheduler = connector(fovea_urls=[server])
    assert scheduled(scheduler, request_of("unknown", 1)).rows == {}


def test_a_step_ends_with_its_metadata(connector, server):
    publish(server, "step", IMAGES[0])
    scheduler = connector(fovea_urls=[server])
    assert set(scheduled(scheduler, request_of("step", num_rows(server))).rows) == {"step"}
    assert step(scheduler).rows == {}


def test_rows_that_cannot_be_read_fail_their_requests_and_end_nothing(connector, server, caplog):
    torch = pytest.importorskip("torch")
    publish(server, "vanishes", IMAGES[0])
    scheduler, worker = connector(fovea_urls=[server]), connector("WORKER", fovea_urls=[server])
    if not has("take_unavailable_requests"):
        pytest.skip("this vLLM gets rows by value")
    request = request_of("vanishes", num_rows(server))
    loads = scheduled(scheduler, request)
    rows = loads.rows["vanishes"]
    for gone in (dataclasses.replace(rows, path="/none"), dataclasses.replace(rows, inode=(0, 0))):
        cache = loaded(worker, dataclasses.replace(loads, rows={"vanishes": gone}))
        assert torch.equal(cache["vanishes"], torch.zeros(rows.shape, dtype=torch.bfloat16))
        failures = pickle.loads(pickle.dumps(worker.build_connector_worker_meta()))
        failures = failures.aggregate(failures)
        scheduler.update_connector_output(types.SimpleNamespace(ec_connector_worker_meta=failures))
        assert scheduler.take_unavailable_requests() == {"r"}
    assert "the rows of vanishes cannot be read" in caplog.text
    assert scheduler.request_finished(request) == (False, None)


def report(worker, scheduler):
    """What a worker says after a step, on its way through other processes."""
    said = pickle.loads(pickle.dumps(worker.build_connector_worker_meta()))
    scheduler.update_connector_output(types.SimpleNamespace(ec_connector_worker_meta=said))


@pytest.fixture
def lends(connector, gpu, monkeypatch):  # noqa: F811
    """Scheduler and worker of a server that lends, whose memory the worker has mapped."""
    torch = pytest.importorskip("torch")
    script = [info(), lent_reply(0), (END,), rows_reply(), lent_reply(256), (END,)]
    with Scripted(*script) as scripted:
        scheduler = connector(fovea_urls=[scripted.url], dtype="float32")
        worker = connector("WORKER", fovea_urls=[scripted.url])
        if not has("take_unavailable_requests"):
            pytest.skip("this vLLM gets rows by value")
        module = sys.modules["fovea_encoder.integrations._vllm_connector"]
        monkeypatch.setattr(module, "gpu_of", lambda device: OURS.gpu)
        loads = scheduled(scheduler, request_of("key", 2))
        assert loads.memories == {OURS: False}
        assert bits(loaded(worker, loads)["key"]) == ROWS, "over HTTP"
        report(worker, scheduler)
        step(scheduler, "key")  # evicted
        yield types.SimpleNamespace(torch=torch, scheduler=scheduler, worker=worker, scripted=scripted)


@pytest.fixture
def loads(lends):
    """What the scheduler tells the worker about rows that are lent."""
    loads = scheduled(lends.scheduler, request_of("key", 2))
    assert loads.memories == {OURS: True}
    return loads


def test_rows_that_are_lent_are_copied_by_the_worker(lends, loads, gpu):  # noqa: F811
    assert bits(loaded(lends.worker, loads)["key"]) == memory_of(gpu, OURS, 256)
    assert lends.worker.build_connector_worker_meta() is None
    for _ in range(3):
        assert lends.scripted._script, "the rows are held while the step may run"
        step(lends.scheduler)
    until(lambda: not lends.scripted._script)  # given back


def test_memory_stays_mapped_for_rows_that_are_on_their_way(lends, gpu):  # noqa: F811
    request = request_of("key", 2)
    settle(types.SimpleNamespace(ensure=lends.scheduler.ensure_cache_available), request)
    assert lends.scheduler.has_cache_item("key")
    lends.scheduler.update_state_after_alloc(request, 0)
    lends.scheduler._lenders.forget([OURS])  # as when the server fails now
    assert bits(loaded(lends.worker, step(lends.scheduler))["key"]) == memory_of(gpu, OURS, 256)
    assert step(lends.scheduler).memories == {}


def test_requests_whose_rows_were_not_copied_in_time_fail(lends, loads, caplog):
    rows = dataclasses.replace(loads.rows["key"], end=0.0)
    cache = loaded(lends.worker, dataclasses.replace(loads, rows={"key": rows}))
    assert lends.torch.equal(cache["key"], lends.torch.zeros(2, 3))
    report(lends.worker, lends.scheduler)
    assert lends.scheduler.take_unavailable_requests() == {"r"}
    assert "they were not copied while they were lent" in caplog.text


def test_rows_of_memory_that_is_not_mapped_fail_their_requests_and_end_nothing(lends, loads, caplog):
    unmapped = dataclasses.replace(loads, memories={})
    assert lends.torch.equal(loaded(lends.worker, unmapped)["key"], lends.torch.zeros(2, 3))
    report(lends.worker, lends.scheduler)
    assert lends.scheduler.take_unavailable_requests() == {"r"}
    assert "rows that are lent cannot be copied" in caplog.text


@pytest.mark.parametrize("parallel", [{"world_size": 2}, {"nnodes": 2}])  # several GPUs; rows by value
def test_nothing_is_lent_where_no_worker_could_copy_it(connector, parallel):
    with Scripted(info(), rows_reply()) as scripted:
        scheduler = connector(fovea_urls=[scripted.url], dtype="float32", parallel=parallel)
        assert scheduled(scheduler, request_of("key", 2)).memories == {}
        assert scripted.requests[-1] == "/v1/cache/key"


def test_another_fingerprint_is_refused_with_both(connector, server):
    with Client(server) as client:
        own = client.info()["fingerprint"]
    assert connector(fovea_urls=[server], fingerprint=own)
    with pytest.raises(ValueError, match=f"expected .* {'0' * 64} of the configuration, got {own}"):
        connector(fovea_urls=[server], fingerprint="0" * 64)


def test_servers_that_disagree_are_refused_with_both(connector, program, server):
    with served(program, MODEL, "--max-pixels", "4096") as other, Client(server) as client:
        with pytest.raises(ValueError, match=f"expected .* {client.info()['fingerprint']} of {server}, got "):
            connector(fovea_urls=[server, other])


def test_another_dtype_is_refused_with_both(connector, server):
    with Client(server) as client:
        dtype = client.info()["dtype"]
    assert connector(fovea_urls=[server], dtype=dtype)
    with pytest.raises(ValueError, match=f"sends rows of {dtype}, and vLLM computes in float64"):
        connector(fovea_urls=[server], dtype="float64")


def test_without_any_server_there_is_no_connector(connector, nobody):
    with pytest.raises(fovea.Error, match="no fovea server answered.*cannot connect") as caught:
        connector(fovea_urls=[nobody])
    assert caught.value.code == "unavailable"


def test_a_server_that_went_away_has_no_rows(connector, program, caplog):
    with served(program, MODEL) as url:
        publish(url, "away", IMAGES[0])
        rows = num_rows(url)
        scheduler = connector(fovea_urls=[url])
        assert "away" in scheduled(scheduler, request_of("away", rows)).rows
    step(scheduler, "away")  # evicted
    with caplog.at_level(logging.WARNING, "fovea"):
        assert scheduled(scheduler, request_of("away", rows)).rows == {}
    assert "cannot connect" in caplog.text


def test_a_server_that_is_stopped_holds_up_nobody_for_long(connector, program):
    with served(program, MODEL, pid=True) as (url, pid):
        publish(url, "stopped", IMAGES[0])
        request = request_of("stopped", num_rows(url))
        scheduler = connector(fovea_urls=[url], timeout_s=0.3)
        os.kill(pid, signal.SIGSTOP)
        assert not scheduler.ensure_cache_available(request, 0)
        assert scheduler.ensure_cache_available(ask(request_id="text"), 0)
        assert scheduled(scheduler, request).rows == {}
        scheduler.request_finished(request)
        os.kill(pid, signal.SIGCONT)
        while "stopped" not in scheduled(scheduler, request).rows:  # until a probe has found it
            scheduler.request_finished(request)


def test_a_server_without_a_fingerprint_is_refused(connector):
    with Scripted(reply(200, {"fingerprint": "", "dtype": "bfloat16"})) as scripted:
        with pytest.raises(ValueError, match="has no fingerprint"):
            connector(fovea_urls=[scripted.url])


class Metric:
    """A counter or gauge as Prometheus' client has them."""

    made = {}

    def __init__(self, name, text, labelnames, **_):
        Metric.made[name] = self
        self.names, self.values = labelnames, {}

    def labels(self, *values):
        assert len(values) == len(self.names)
        self.key = values
        return self

    def inc(self, by):
        self.values[self.key] = self.values.get(self.key, 0) + by

    def set(self, value):
        self.values[self.key] = value


def prometheus(kind):
    made = kind.build_prom_metrics(
        types.SimpleNamespace(ec_transfer_config=None), metric_types(), ["model_name"], {0: ["m"]}
    )
    return made, Metric.made


def metric_types():
    try:
        from prometheus_client import Counter, Gauge, Histogram
        from vllm.config import VllmConfig  # noqa: F401

        return {Counter: Metric, Gauge: Metric, Histogram: Metric}
    except ImportError:
        return {"counter": Metric, "gauge": Metric}


def test_counters_are_those_of_vllm(connector, server):
    publish(server, "counted", IMAGES[0])
    scheduler = connector(fovea_urls=[server])
    if not has("ECConnectorStats"):
        pytest.skip("this vLLM asks connectors for no statistics")
    scheduled(scheduler, request_of("counted", num_rows(server)))
    scheduled(scheduler, request_of("unknown", 1))
    stats = scheduler.get_ec_connector_stats()
    assert scheduler.get_ec_connector_stats() is None
    kind = type(scheduler)
    total = kind.build_ec_connector_stats(stats.data).aggregate(kind.build_ec_connector_stats({"found": 1}))
    assert not total.is_empty()
    assert total.reduce()["items found"] == 2
    assert total.reduce()["servers away"] == 0
    metrics, made = prometheus(kind)
    metrics.observe(stats.data)
    metrics.observe(stats.data)
    assert made["vllm:fovea_items"].values == {("m", "found"): 2, ("m", "absent"): 2}
    assert made["vllm:fovea_rows_bytes"].values[("m",)] == 2 * stats.data["bytes"] > 0
    assert made["vllm:fovea_servers_away"].values == {("m",): 0}
    total.reset()
    assert total.is_empty()


def test_a_vllm_without_background_lookups_is_refused(connector, server, monkeypatch):
    connector(fovea_urls=[server])
    base = sys.modules["fovea_encoder.integrations._vllm_interface"].ECConnectorBase
    monkeypatch.delattr(base, "ensure_cache_available")
    with pytest.raises(ImportError, match="expected vLLM 0.29 or newer"):
        connector(fovea_urls=[server])


def test_a_vllm_without_statistics_and_failures_gets_rows_by_value(connector, server, monkeypatch):
    forget_modules(monkeypatch)
    monkeypatch.setitem(sys.modules, METRICS, None)
    publish(server, "older", IMAGES[0])
    scheduler = connector(fovea_urls=[server])
    base = sys.modules["fovea_encoder.integrations._vllm_interface"].ECConnectorBase
    monkeypatch.delattr(base, "take_unavailable_requests", raising=False)
    scheduler = connector(fovea_urls=[server])
    assert scheduled(scheduler, request_of("older", num_rows(server))).rows["older"].data is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "fovea_urls is None"),
        ({"fovea_urls": "http://host"}, "not a list of URLs"),
        ({"fovea_urls": ["http://host"], "timeout": 1}, "unknown timeout; expected some of"),
        ({"fovea_urls": ["http://host"], "ec_role": "ec_both"}, 'expected ec_role "ec_consumer"'),
    ],
)
def test_options_that_make_no_sense(connector, options, message):
    with pytest.raises(ValueError, match=message):
        connector(**options)
