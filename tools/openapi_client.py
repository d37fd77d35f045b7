#!/usr/bin/env python3
"""Checks /openapi.json of `fovea serve` and `fovea proxy` as those who read it would: a validator reads it,
a client is generated from it and calls every route, and requests are made up from it, which the server
has to answer as it says.

usage: openapi_client.py [--fovea PROGRAM] [--model DIR] [--seconds N]

Needs the packages openapi-spec-validator, openapi-python-client and schemathesis (PyPI), in the environment
that it runs in; `scripts/check --openapi` makes one. Ends with 0 if all holds.
"""
import argparse
import base64
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = "shapes_120x90.png"

# Random texts are neither pictures nor URLs, so most bodies of the right form are refused, too.
EXCLUDED = "positive_data_acceptance"
# GET and DELETE of /v1/cache/{key} take the key "reset", and Allow says so.
SETTINGS = """
[[operations]]
include-path = "/v1/cache/reset"
checks.allow_header_conformance.enabled = false
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fovea", default=str(ROOT / "build/ci/apps/cli/fovea"))
    parser.add_argument("--model", default=str(ROOT / "tests/golden/qwen3_vl"))
    parser.add_argument("--seconds", type=int, default=60, help="of requests that are made up")
    return parser.parse_args()


def document_of(server):
    document = server.get("/openapi.json").json()
    from openapi_spec_validator import validate
    validate(document)
    return document


def generated_client(document, folder, name):
    """The package of a generated client, which is imported."""
    path = Path(folder) / f"{name}.json"
    path.write_text(json.dumps(document))
    made = subprocess.run([str(Path(sys.executable).parent / "openapi-python-client"), "generate", "--path", path,
                           "--output-path", Path(folder) / name, "--meta", "none"],
                          capture_output=True, text=True, check=True)
    # It knows no ranges of types; bytes go as application/octet-stream.
    problems = [line for line in made.stdout.splitlines() if line.startswith("Unsupported")]
    assert set(problems) <= {"Unsupported content type image/*", "Unsupported content type video/*"}, made.stdout
    sys.path.insert(0, str(folder))
    for part in ("client", "models", "types"):
        importlib.import_module(f"{name}.{part}")
    return sys.modules[name]


class Caller:
    """Calls functions of a generated client by the names of operations, and notes which."""

    def __init__(self, package, document, url):
        self.package, self.called = package, set()
        self.client = package.client.Client(base_url=url, timeout=120)
        self.module_of = {operation["operationId"]: f"{package.__name__}.api.{operation['tags'][0]}"
                          for methods in document["paths"].values() for operation in methods.values()}

    def __call__(self, name, *names, status=200, **members):
        module = importlib.import_module(f"{self.module_of[name]}.{name}")
        reply = module.sync_detailed(*names, client=self.client, **members)
        assert reply.status_code == status, (name, reply.status_code, reply.content[:500])
        self.called.add(name)
        return reply

    def model(self, name, values):
        """A model of the client, of the module that defines it."""
        return getattr(self.package.models, name).from_dict(values)

    def check_complete(self):
        assert self.called == set(self.module_of), set(self.module_of) ^ self.called


def call_common(call, picture, url):
    types = call.package.types
    body = call.model("EncodeBody", {"items": [{"image": url, "id": "a", "uuid": "b"}]})
    encoded = call("post_v1_encode", body=body).parsed
    rows = encoded.data[0].num_embeds
    assert rows > 0 and len(encoded.data[0].data) == rows and encoded.data[0].id == "a"
    as_bytes = call("post_v1_encode", body=types.File(payload=picture), id="c",
                    output_include=[call.package.models.PostV1EncodeOutputIncludeItem(name)
                                    for name in ("grid", "timings")]).parsed
    assert as_bytes.data[0].data == encoded.data[0].data and as_bytes.data[0].id == "c"
    assert as_bytes.data[0].timings_ms
    form = call.package.models.PostV1EncodeFilesBody(
        file=[types.File(payload=picture, file_name="a.png", mime_type="image/png")] * 2)
    assert len(call("post_v1_encode", body=form).parsed.data) == 2
    sizes = call.model("PlanBody", {"items": [{"type": "image", "width": 120, "height": 90}]})
    assert call("post_v1_plan", body=sizes).parsed.data[0].num_embeds == rows
    for name in ("post_v1_embeddings", "post_embeddings"):
        vectors = call(name, body=call.model("EmbeddingBody", {"input": [url]})).parsed
        assert len(vectors.data) == 1 and vectors.usage.prompt_tokens == rows
    assert len(call("post_pooling", body=call.model("PoolingBody", {"input": url})).parsed.data[0].data) == rows
    cohere = call("post_v2_embed", body=call.model("EmbedBody", {"images": [url]})).parsed
    assert len(cohere.embeddings.float_) == 1
    infer = {"inputs": [{"name": "media", "datatype": "BYTES", "shape": [1],
                         "data": [base64.b64encode(picture).decode()]}], "parameters": {"dtype": "float32"}}
    for name, path in (("post_v2_models_m_infer", ("m",)), ("post_v2_models_m_versions_v_infer", ("m", "1"))):
        tensors = call(name, *path, body=call.model("InferBody", infer)).parsed.outputs
        assert tensors[0].shape[0] == rows and len(tensors[0].data) == tensors[0].shape[0] * tensors[0].shape[1]
    for name in ("get_v2_models_m", "get_v2_models_m_ready", "get_v2_models_m_stats"):
        call(name, "m")
        call(name.replace("models_m", "models_m_versions_v"), "m", "1")
    for name in ("get_health", "get_readyz", "get_health_ready", "get_ping", "get_livez", "get_health_live",
                 "get_health_generate", "get_version", "get_info", "get_metrics", "get_openapi_json", "get_docs",
                 "get_root", "post_start_profile", "post_stop_profile"):
        call(name)
    for name in ("get_v2", "get_v2_health_live", "get_v2_health_ready"):
        call(name)
    assert call("get_info").parsed.model == "m"


def call_serve(call, url):
    part = {"type": "image_url", "image_url": {"url": url}, "uuid": "key"}
    body = {"messages": [{"role": "user", "content": [part]}]}
    chat = call("post_v1_chat_completions", body=call.model("EncoderChatBody", body)).parsed
    assert chat.ec_transfer_params["key"].fovea.rows > 0
    assert call("get_v1_cache").parsed.row_store.entries == 1
    assert len(call("get_v1_cache_key", "key").parsed.payload.read()) > 100
    call("delete_v1_cache_key", "key")
    call("post_v1_cache_reset")
    assert call("get_v1_models").parsed.data[0].id == call("get_v1_models_id", "m").parsed.id
    call("get_models")
    call("get_v1_models_organisation_id", "somebody", "m", status=404)


def call_proxy(call, url):
    chat = {"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "what is it"}, {"type": "image_url", "image_url": {"url": url}}]}]}
    answer = call("post_v1_chat_completions", body=call.model("ProxyChatBody", chat)).parsed
    assert "choices" in answer.to_dict()
    call("post_v1_completions", body=call.model("PostV1CompletionsBody", {"model": "m", "prompt": "Once"}))
    call("get_v1_models")
    call("get_v1_models_id", "m")
    call("get_v1_models_organisation_id", "o", "m")


def make_requests_up(server, folder, seconds):
    """What Schemathesis makes of the document."""
    settings = Path(folder) / "schemathesis.toml"
    settings.write_text(SETTINGS)
    program = str(Path(sys.executable).parent / "schemathesis")
    subprocess.run([program, "--config-file", settings, "run", server.address + "/openapi.json", "--phases",
                    "coverage,fuzzing", "--continue-on-failure", "--exclude-checks", EXCLUDED, "--max-time",
                    str(seconds), "--warnings", "off", "--seed", "1"], cwd=folder, check=True)


def main():
    given = arguments()
    os.environ.update(FOVEA_TEST_PROGRAM=given.fovea, FOVEA_TEST_MODEL=given.model)
    sys.path.insert(0, str(ROOT / "tests/serve/program"))
    import proxied
    from language_model import LanguageModel
    from served import Served
    picture = (Path(given.model) / "images" / PICTURE).read_bytes()
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--profile-dir", folder, "--media-url-policy", "none")
        with Served(*flags) as server:
            document = document_of(server)
            call = Caller(generated_client(document, folder, "serve_client"), document, server.address)
            call_common(call, picture, url)
            call_serve(call, url)
            call.check_complete()
            print(f"fovea serve: {len(call.called)} operations called", flush=True)
            make_requests_up(server, folder, given.seconds)
        with LanguageModel("one") as model, proxied.proxy(model, flags=flags) as server:
            document = document_of(server)
            call = Caller(generated_client(document, folder, "proxy_client"), document, server.address)
            call_common(call, picture, url)
            call_proxy(call, url)
            call.check_complete()
            print(f"fovea proxy: {len(call.called)} operations called")


if __name__ == "__main__":
    main()
