"""Traces of a running server and of a proxy, as a collector gets them."""
import http.server
import json
import threading
import unittest

import otlp
import proxied
from language_model import LanguageModel
from served import PHOTO, Served, image, wait_until

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "tracestate": "vendor=1"}


class Collector:
    """Keeps the spans that it is sent."""

    def __init__(self):
        self.lock, self.spans, self.resources, self.types = threading.Lock(), [], [], set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    collector.types.add(self.headers["Content-Type"])
                    for resource in otlp.request_of(self.headers["Content-Type"], body):
                        collector.resources.append(attributes(resource["resource"]))
                        for scope in resource["scopeSpans"]:
                            collector.spans += scope["spans"]
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def named(self, name, trace=TRACE):
        with self.lock:
            return [span for span in self.spans if span["name"] == name and trace in ("", span["traceId"])]


def attributes(holder):
    """Their values by name; whole numbers are text in OTLP's JSON."""
    values = {}
    for entry in holder["attributes"]:
        (kind, value), = entry["value"].items()
        values[entry["key"]] = int(value) if kind == "intValue" else value
    return values


FAST = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_SERVICE_NAME": "rows",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"}


class Tracing(unittest.TestCase):
    def test_a_request_has_a_span_for_each_stage(self):
        with Collector() as collector, Served("--otlp-endpoint", collector.url, "--log-format", "json",
                                              environment=FAST) as server:
            reply = server.encode(image(PHOTO), "output.format=npy&output.dtype=float32", headers=PARENT)
            self.assertEqual(reply.status, 200)
            wait_until(lambda: collector.named("encode batch", ""))
            request, = collector.named("POST /v1/encode")
            self.assertEqual((request["kind"], request["parentSpanId"], request["traceState"]),
                             (2, "b7ad6b7169203331", "vendor=1"))
            said = attributes(request)
            self.assertEqual((said["http.route"], said["http.response.status_code"], said["url.path"]),
                             ("/v1/encode", 200, "/v1/encode"))
            self.assertEqual(said["http.request.body.size"], len(image(PHOTO)))
            end = request["startTimeUnixNano"]
            for name in ("receive", "parse", "plan", "queue", "encode", "reply"):
                span, = collector.named(name)
                self.assertEqual(span["parentSpanId"], request["spanId"], name)
                self.assertEqual(span["startTimeUnixNano"], end, name)
                end = span["endTimeUnixNano"]
            self.assertEqual(end, request["endTimeUnixNano"])
            encode, = collector.named("encode")
            batch, = collector.named("encode batch", "")
            self.assertEqual(batch["links"], [{"traceId": TRACE, "spanId": encode["spanId"]}])
            self.assertEqual(encode["links"][0]["spanId"], batch["spanId"])
            self.assertGreater(attributes(encode)["fovea.rows"], 0)
            self.assertEqual(collector.types, {"application/x-protobuf"})
            self.assertEqual(collector.resources[0]["service.name"], "rows")
            self.assertEqual(collector.resources[0]["deployment.environment.name"], "test")
            wait_until(lambda: server.metric("fovea_trace_spans_total", result="sent") >= 8)
            lines = [json.loads(line) for line in server.text_of_log().splitlines()]
            line, = [line for line in lines if line.get("path") == "/v1/encode"]
            self.assertEqual((line["trace_id"], line["status"]), (TRACE, 200))
            self.assertIsInstance(line["ms"], (int, float))

    def test_json_where_it_is_asked_for(self):
        with Collector() as collector, Served("--otlp-endpoint", collector.url,
                                              environment={**FAST, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}) as server:
            self.assertEqual(server.encode(image(PHOTO), "output.format=npy", headers=PARENT).status, 200)
            self.assertEqual(server.end(), 0)
            self.assertEqual(collector.types, {"application/json"})
            request, = collector.named("POST /v1/encode")
            self.assertEqual(attributes(request)["http.response.status_code"], 200)

    def test_failures_and_probes(self):
        with Collector() as collector, Served(environment={**FAST, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) \
                as server:
            self.assertEqual(server.post("/v1/encode", {"items": [{"image": "data:image/png;base64,AAAA"}]}, PARENT).status, 422)
            bad = {"traceparent": "00-" + "0" * 32 + "-b7ad6b7169203331-01"}
            self.assertEqual(server.post("/v1/encode", {}, bad).status, 400)
            unsampled = {"traceparent": PARENT["traceparent"][:-1] + "0"}
            self.assertEqual(server.post("/v1/encode", {}, unsampled).status, 400)
            self.assertEqual(server.get("/readyz").status, 200)
            self.assertEqual(server.end(), 0)  # sends what is left
            spans = collector.named("POST /v1/encode", "")
            self.assertEqual(len(spans), 2, "the unsampled one is not recorded")
            self.assertEqual(attributes(spans[0])["http.response.status_code"], 422)
            self.assertNotIn("status", spans[0], "a mistake of the client is none of the server")
            self.assertNotIn("parentSpanId", spans[1], "its header is ignored")
            self.assertFalse(collector.named("GET /readyz", ""))

    def test_a_proxy_passes_its_own_span_on(self):
        with Collector() as collector, LanguageModel("one") as model, \
                proxied.proxy(model, flags=("--otlp-endpoint", collector.url)) as server:
            reply = server.post(proxied.CHAT, proxied.chat("what", proxied.picture(), stream=False), PARENT)
            self.assertEqual(reply.status, 200)
            self.assertEqual(server.end(), 0)
            asked, = collector.named("POST")
            request, = collector.named("POST /v1/chat/completions")
            self.assertEqual((asked["kind"], asked["parentSpanId"]), (3, request["spanId"]))
            said = attributes(asked)
            self.assertEqual((said["http.response.status_code"], said["server.port"]), (200, model.port))
            self.assertEqual(said["url.full"], model.url + proxied.CHAT)
            headers = model.headers[-1]
            self.assertEqual(headers.get_all("traceparent"), [f"00-{TRACE}-{asked['spanId']}-01"])
            self.assertEqual(headers.get_all("tracestate"), ["vendor=1"])

    def test_without_a_collector_headers_pass_as_they_came(self):
        with LanguageModel("one") as model, proxied.proxy(model) as server:
            self.assertEqual(server.post(proxied.CHAT, proxied.chat("hello", stream=False), PARENT).status, 200)
            self.assertEqual(model.headers[-1]["traceparent"], PARENT["traceparent"])
            self.assertNotIn(b"fovea_trace_spans_total", server.get("/metrics").body)

    def test_what_is_not_honoured_is_refused_by_name(self):
        with Served("--otlp-endpoint", "http://127.0.0.1:1", wait=False,
                    environment={"OTEL_TRACES_SAMPLER": "jaeger_remote"}) as server:
            self.assertNotEqual(server.process.wait(timeout=60), 0)
            self.assertIn("OTEL_TRACES_SAMPLER: expected always_on", server.text_of_log())


if __name__ == "__main__":
    unittest.main()
