"""FoveaECConnector with a server: through vLLM's factory where vLLM is installed, otherwise over a
base class with the same methods."""

import abc
import logging
import pickle
import socket
import sys
import types

import pytest
from conftest import IMAGES, MODEL
from servers import Scripted, reply, served
from test_client import publish

import fovea
from fovea.client import Client


def stand_in():
    """Modules of vLLM, as far as the connector imports them. Source: vLLM 0.33,
    vllm/distributed/ec_transfer/ec_connector/base.py."""

    class ECConnectorBase(abc.ABC):
        def __init__(self, vllm_config, role):
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

    base = types.ModuleType("base")
    base.ECConnectorBase = ECConnectorBase
    base.ECConnectorMetadata = type("ECConnectorMetadata", (), {})
    platforms = types.ModuleType("platforms")
    platforms.current_platform = types.SimpleNamespace(device_type="cpu", is_cuda_alike=lambda: False)
    return {
        **{name: types.ModuleType(name) for name in ("vllm", "vllm.distributed")},
        "vllm.distributed.ec_transfer": types.ModuleType("ec_transfer"),
        "vllm.distributed.ec_transfer.ec_connector": types.ModuleType("ec_connector"),
        "vllm.distributed.ec_transfer.ec_connector.base": base,
        "vllm.platforms": platforms,
    }


@pytest.fixture(scope="module")
def connector():
    """Makes connectors of a role, from options."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            import vllm.platforms
            from vllm.platforms.cpu import CpuPlatform

            patch.setattr(vllm.platforms, "_current_platform", CpuPlatform())
        except ImportError:
            for name, module in stand_in().items():
                patch.setitem(sys.modules, name, module)
            patch.delitem(sys.modules, "fovea.integrations._vllm_connector", raising=False)

        def make(role="WORKER", dtype=None, ec_role="ec_consumer", **options):
            model = None if dtype is None else types.SimpleNamespace(dtype=dtype)
            return create(role, model, ec_role, {"start_timeout_s": 0, **options})

        yield make
        sys.modules.pop("fovea.integrations._vllm_connector", None)


def create(role, model, ec_role, options):
    try:
        from vllm.config.ec_transfer import ECTransferConfig
        from vllm.distributed.ec_transfer.ec_connector.base import ECConnectorRole
        from vllm.distributed.ec_transfer.ec_connector.factory import ECConnectorFactory
    except ImportError:
        from fovea.integrations import vllm

        transfer = types.SimpleNamespace(
            is_ec_producer=ec_role != "ec_consumer",
            is_ec_consumer=ec_role != "ec_producer",
            ec_connector_extra_config=options,
        )
        config = types.SimpleNamespace(model_config=model, ec_transfer_config=transfer)
        return vllm.FoveaECConnector(config, role)
    transfer = ECTransferConfig(
        ec_connector="FoveaECConnector",
        ec_role=ec_role,
        ec_connector_module_path="fovea.integrations.vllm",
        ec_connector_extra_config=options,
    )
    config = types.SimpleNamespace(model_config=model, ec_transfer_config=transfer)
    return ECConnectorFactory.create_connector(config, getattr(ECConnectorRole, role))


@pytest.fixture
def nobody():
    """A URL at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "http://127.0.0.1:%d" % free.getsockname()[1]


def scheduled(scheduler, key):
    """What the scheduler tells the worker in a step that takes rows of `key`."""
    feature = types.SimpleNamespace(identifier=key)
    request = types.SimpleNamespace(mm_features=[feature], get_num_encoder_embeds=lambda index: 1)
    scheduler.update_state_after_alloc(request, 0)
    return pickle.loads(pickle.dumps(scheduler.build_connector_meta(None)))  # another process


def test_rows_of_a_server_reach_the_worker(connector, server, nobody, caplog):
    torch = pytest.importorskip("torch")
    publish(server, "reaches", IMAGES[0])
    with caplog.at_level(logging.WARNING, "fovea"):
        scheduler = connector("SCHEDULER", fovea_urls=[nobody, server])
        assert "cannot connect" in caplog.text
    worker = connector("WORKER", fovea_urls=[nobody, server])
    assert scheduler.has_cache_item("reaches")
    assert not scheduler.has_cache_item("unknown")
    worker.bind_connector_metadata(scheduled(scheduler, "reaches"))
    cache = {"unknown": None}
    worker.start_load_caches(cache)
    with Client(server) as client:
        (item,) = client.encode(IMAGES[0])
    assert torch.equal(cache["reaches"], item.torch())


def test_what_is_not_published_is_not_loaded(connector, server):
    scheduler = connector("SCHEDULER", fovea_urls=[server])
    assert scheduled(scheduler, "unknown").urls == {}


def test_a_step_ends_with_its_metadata(connector, server):
    publish(server, "step", IMAGES[0])
    scheduler = connector("SCHEDULER", fovea_urls=[server])
    assert scheduled(scheduler, "step").urls == {"step": server}
    assert scheduler.build_connector_meta(None).urls == {}


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
    assert connector(fovea_urls=[server], dtype=f"torch.{dtype}")
    with pytest.raises(ValueError, match=f"sends rows of {dtype}, and vLLM computes in float64"):
        connector(fovea_urls=[server], dtype="torch.float64")


def test_without_any_server_there_is_no_connector(connector, nobody):
    with pytest.raises(fovea.Error, match="no fovea server answered.*cannot connect") as caught:
        connector(fovea_urls=[nobody])
    assert caught.value.code == "unavailable"


def test_a_server_that_went_away_has_no_rows(connector, program, caplog):
    with served(program, MODEL) as url:
        publish(url, "away", IMAGES[0])
        scheduler, worker = connector("SCHEDULER", fovea_urls=[url]), connector(fovea_urls=[url])
        assert scheduler.has_cache_item("away")
        loads = scheduled(scheduler, "away")
    with caplog.at_level(logging.WARNING, "fovea"):
        assert not scheduler.has_cache_item("away")
    assert "cannot connect" in caplog.text
    worker.bind_connector_metadata(loads)
    with pytest.raises(fovea.Error, match=f"{url}: cannot connect"):
        worker.start_load_caches({})


def test_a_server_that_comes_back_with_another_model_is_passed_over(connector, caplog):
    def info(fingerprint):
        return reply(200, {"fingerprint": fingerprint, "dtype": "float32"})

    with Scripted(info("a"), None, None, info("b")) as scripted:
        scheduler = connector("SCHEDULER", fovea_urls=[scripted.url])
        assert not scheduler.has_cache_item("key")
        scheduler._servers._away_until.clear()
        with caplog.at_level(logging.WARNING, "fovea"):
            assert not scheduler.has_cache_item("key")
        assert "got b" in caplog.text


def test_rows_that_are_gone_are_an_error(connector, server):
    with pytest.raises(fovea.Error, match="rows of gone were there and are gone"):
        connector(fovea_urls=[server])._servers.rows(server, "gone")


def test_a_server_without_a_fingerprint_is_refused(connector):
    with Scripted(reply(200, {"fingerprint": "", "dtype": "float32"})) as scripted:
        with pytest.raises(ValueError, match="has no fingerprint"):
            connector(fovea_urls=[scripted.url])


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
