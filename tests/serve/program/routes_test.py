"""Routes, statuses, codes of errors and headers, as a client sees them."""
import json
import socket
import unittest

from served import PHOTO, Served, data_url, image, main, png

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
URL = data_url(image(PHOTO))
ITEM = {"type": "image", "image": URL}
PART = {"type": "image_url", "image_url": {"url": URL}}


def chat(*parts, **members):
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}], **members}


def tensor(**members):
    return {"inputs": [{"name": "media", "datatype": "BYTES", "shape": [1], "data": [URL],
                        **members}]}


# Path and body (an object: JSON; bytes: an item) of a POST -> status, code.
REFUSED = (
    ("/v1/encode", b"{", 400, "invalid_json"),
    ("/v1/encode", b"[" * 100, 400, "invalid_json"),
    ("/v1/encode", {}, 400, "missing_field"),
    ("/v1/encode", {"items": [{"type": "image"}]}, 400, "missing_field"),
    ("/v1/encode", {"items": [ITEM], "colour": 1}, 400, "unknown_field"),
    ("/v1/encode", {"items": [{**ITEM, "colour": 1}]}, 400, "unknown_field"),
    ("/v1/encode", {"items": []}, 400, "invalid_value"),
    ("/v1/encode", {"items": [ITEM], "timeout_ms": 0}, 400, "invalid_value"),
    ("/v1/encode", {"items": [{"type": "image", "image": "data:,x"}]}, 400, "invalid_value"),
    ("/v1/encode", {"items": [ITEM] * 3}, 400, "too_many_items"),
    ("/v1/encode", {"items": [ITEM], "output": {"format": "json"}}, 400,
     "response_too_large_for_json"),
    ("/v1/encode", {"items": [ITEM], "output": {"format": "npy", "dtype": "bfloat16"}}, 400,
     "unsupported_dtype"),
    ("/v1/encode", {"items": [ITEM], "model": "other"}, 404, "model_not_found"),
    ("/v1/encode", {"items": [{"type": "image", "image": "http://127.0.0.1:1/x"}]}, 403,
     "media_url_blocked"),
    ("/v1/encode", {"items": [{"type": "image", "image": "file:///etc/passwd"}]}, 403,
     "local_media_forbidden"),
    ("/v1/embeddings", {"model": "m", "input": "a cat"}, 400, "text_not_supported"),
    ("/embeddings", {"model": "m"}, 400, "missing_field"),
    ("/v1/embeddings", chat(PART, PART), 400, "multiple_media_in_conversation"),
    ("/v1/embeddings", {"model": "m", "input": [URL], "dimensions": 1000000}, 400,
     "invalid_value"),
    ("/pooling", {"model": "m", "input": [URL], "task": "encode"}, 400, "invalid_value"),
    ("/v1/chat/completions", chat(PART, stream=True), 400, "invalid_value"),
    ("/v1/chat/completions", chat({**PART, "uuid": ".."}), 400, "invalid_uuid"),
    ("/v1/chat/completions", chat({**PART, "uuid": "a/b"}), 400, "invalid_uuid"),
    ("/v1/chat/completions", chat({**PART, "uuid": "a\nb"}), 400, "invalid_uuid"),
    ("/v1/chat/completions", chat({**PART, "uuid": "a\x9bb"}), 400, "invalid_uuid"),
    ("/v1/chat/completions", chat({**PART, "uuid": "x" * 256}), 400, "invalid_uuid"),
    ("/v1/chat/completions", chat({**PART, "uuid": "x"},
                                  media_io_kwargs={"image": {"image_mode": "RGB"}}),
     400, "options_change_the_key"),
    ("/v1/plan", {"items": [{"type": "image", "width": 0, "height": 9}]}, 400, "invalid_value"),
    ("/nowhere", {}, 404, "route_not_found"),
    ("/v1/encode/", {}, 404, "route_not_found"),
    ("/health", {}, 405, "method_not_allowed"),
)

# Bytes of an item -> code; the status is 422.
BROKEN = (
    (b"no image at all", "decode_failed"),
    (image(PHOTO)[:300], "decode_failed"),
    (image("noise_101x61.png")[:-400], "decode_failed"),
    (png(2, 9), "image_too_small"),
    (png(40000, 40000, pixels=False), "image_too_large"),
    (png(70000, 2, pixels=False), "image_too_large"),
    (png(2010, 10), "aspect_ratio_too_large"),
)


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served("--media-url-policy", "none", settings={
            "max-items-per-request": 2, "max-body-bytes": "1Mi", "max-json-values": 1000,
            "body-timeout": 0.3, "header-timeout": 0.3})

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def expect(self, reply, status, code):
        self.assertEqual((reply.status, reply.code()), (status, code), reply.body)
        self.assertEqual(reply.headers["Content-Type"], "application/json")
        self.assertEqual(reply.json()["error"]["request_id"], reply.headers["X-Request-Id"])

    def test_refused_requests_have_stable_codes(self):
        for path, body, status, code in REFUSED:
            with self.subTest(path=path, code=code, body=str(body)[:60]):
                self.expect(self.server.post(path, body, JSON), status, code)

    def test_broken_media_are_422_and_name_the_item(self):
        for data, code in BROKEN:
            with self.subTest(code=code, bytes=len(data)):
                reply = self.server.encode(data)
                self.expect(reply, 422, code)
                self.assertEqual(reply.json()["error"]["param"], "body")
        reply = self.server.post("/v1/encode", {"items": [ITEM, {**ITEM, "image": "AAAA"}],
                                                "output": {"format": "safetensors"}})
        self.expect(reply, 422, "decode_failed")
        self.assertEqual(reply.json()["error"]["param"], "items[1].image")

    def test_errors_below_v2_are_one_line(self):
        for path, body, status, code in (
                ("/v2/models/m/infer", {}, 400, "missing_field"),
                ("/v2/models/m/infer", tensor(name="pixels"), 400, "invalid_value"),
                ("/v2/models/m/infer", tensor(), 400, "unsupported_dtype"),  # BF16 in JSON
                ("/v2/models/other/infer", tensor(), 404, "model_not_found"),
                ("/v2/nowhere", {}, 404, "route_not_found")):
            with self.subTest(path=path, code=code):
                reply = self.server.post(path, body)
                self.assertEqual(reply.status, status, reply.body)
                self.assertTrue(reply.json()["error"].startswith(code + ": "), reply.body)

    def test_what_is_not_there(self):
        for path, code in (("/v1/cache/x", "key_not_found"), ("/v1/models/x", "model_not_found"),
                           ("/v1", "route_not_found"), ("/%2e%2e/etc", "route_not_found")):
            with self.subTest(path=path):
                self.expect(self.server.get(path), 404, code)

    def test_a_wrong_method_is_told_the_right_one(self):
        for method, path, allowed in (("GET", "/v1/encode", "POST"),
                                      ("PUT", "/health", "GET, HEAD"),
                                      ("POST", "/v1/models", "GET, HEAD")):
            with self.subTest(path=path):
                reply = self.server.request(method, path)
                self.expect(reply, 405, "method_not_allowed")
                self.assertEqual(reply.headers["Allow"], allowed)

    def test_a_body_over_the_limit_is_refused_before_it_comes(self):
        connection = self.server.connect()
        connection.putrequest("POST", "/v1/encode")
        connection.putheader("Content-Length", str(2 << 20))
        connection.endheaders()
        reply = connection.getresponse()
        self.assertEqual(reply.status, 413)
        message = json.loads(reply.read())["error"]
        self.assertEqual(message["code"], "body_too_large")
        self.assertIn("max-body-bytes", message["message"])
        connection.close()

    def test_a_chunked_body_over_the_limit_is_refused(self):
        pieces = (b"x" * 65536 for _ in range(17))
        self.expect(self.server.request("POST", "/v1/encode", pieces, BYTES), 413,
                    "body_too_large")

    def test_a_wrong_type_of_body(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "nonsense"):
            with self.subTest(kind=kind):
                reply = self.server.post("/v1/encode", b"x", {"Content-Type": kind})
                self.expect(reply, 415, "unsupported_content_type")

    def sent_slowly(self, data):
        """The reply to what never gets whole."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as client:
            client.sendall(data)
            reply = b""
            while piece := client.recv(65536):
                reply += piece
        return reply

    def test_slow_heads_and_bodies_end_with_408(self):
        for data in (b"POST /v1/encode HTT",
                     b"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"):
            with self.subTest(data=data):
                reply = self.sent_slowly(data)
                self.assertTrue(reply.startswith(b"HTTP/1.1 408 "), reply)
                self.assertIn(b"slow_request", reply)
                self.assertIn(b"Connection: close", reply)

    def test_ambiguous_requests_are_refused(self):
        start = b"POST /v1/encode HTTP/1.1\r\nHost: x\r\n"
        for head, status in (
                (start + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
                (start + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
                (start + b"Transfer-Encoding: gzip\r\n\r\n", b"501"),
                (start + b"Expect: tea\r\n\r\n", b"417"),
                (start + b"A: b\r\n c\r\n\r\n", b"400"),
                (b"GET / HTTP/1.1\r\n\r\n", b"400"),
                (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", b"505"),
                (start + b"X: " + b"y" * 70000 + b"\r\n\r\n", b"431")):
            with self.subTest(head=head[-60:]):
                self.assertEqual(self.sent_slowly(head).split(b" ")[1], status)

    def test_ids_of_requests(self):
        reply = self.server.get("/health", {"X-Request-Id": "a-1"})
        self.assertEqual(reply.headers["X-Request-Id"], "a-1")
        for bad in ("x" * 129, "two words"):
            made = self.server.get("/health", {"X-Request-Id": bad}).headers["X-Request-Id"]
            self.assertRegex(made, r"^fov-[0-9a-f]{32}$")

    def test_headers_of_a_good_reply(self):
        reply = self.server.encode(image(PHOTO))
        self.assertEqual(reply.status, 200, reply.body)
        self.assertRegex(reply.headers["Server"], r"^fovea/\d+\.\d+")
        self.assertEqual(reply.headers["X-Fovea-Rows"], "36")
        self.assertEqual(reply.headers["X-Fovea-Format"], "safetensors")
        self.assertRegex(reply.headers["X-Fovea-Graph"], r"^hit=\d+,partial=0,miss=\d+$")
        for stage in ("fetch", "decode", "prep", "queue", "encode", "total"):
            self.assertRegex(reply.headers["Server-Timing"], rf"\b{stage};dur=\d+\.\d+")

    def test_a_client_may_ask_for_less_time(self):
        for limit in ("0", "-1", "soon"):
            reply = self.server.encode(image(PHOTO), headers={"X-Request-Timeout-Ms": limit})
            self.expect(reply, 400, "invalid_value")

    def test_ways_to_every_service(self):
        for path in ("/", "/health", "/livez", "/health/live", "/readyz", "/health/ready", "/ping",
                     "/health_generate", "/version", "/info", "/metrics", "/v1/models", "/models",
                     "/v1/models/m", "/v1/cache", "/v2", "/v2/health/live",
                     "/v2/health/ready", "/v2/models/m", "/v2/models/m/ready",
                     "/v2/models/m/versions/1", "/v2/models/m/versions/1/ready"):
            with self.subTest(path=path):
                self.assertEqual(self.server.get(path).status, 200)
                head = self.server.request("HEAD", path)
                self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(self.server.get("/health").json(), {"status": "ok"})

    def test_rows_by_the_name_that_a_client_gave(self):
        reply = self.server.post("/v1/chat/completions", chat({**PART, "uuid": "lora:abc"}))
        self.assertEqual(reply.status, 200, reply.body)
        entry = reply.json()["ec_transfer_params"]["lora:abc"]
        self.assertEqual(entry["item_indices"], [0])
        self.assertEqual(entry["fovea"]["path"], "/v1/cache/lora%3Aabc")
        rows = self.server.get("/v1/cache/lora%3Aabc")
        self.assertEqual(rows.status, 200)
        self.assertEqual(rows.headers["X-Fovea-Shape"], "36,256")
        self.assertRegex(rows.headers["ETag"], '^"[0-9a-f]{64}"$')
        self.assertEqual(self.server.request("DELETE", "/v1/cache/lora:abc").status, 200)
        self.assertEqual(self.server.get("/v1/cache/lora:abc").status, 404)

    def test_no_media_is_no_error_for_a_proxy(self):
        reply = self.server.post("/v1/chat/completions", chat({"type": "text", "text": "hi"}))
        self.assertEqual(reply.status, 200, reply.body)
        self.assertIsNone(reply.json()["ec_transfer_params"])

    def test_one_connection_for_good_and_bad_requests(self):
        connection = self.server.connect()
        for path, status in (("/health", 200), ("/nowhere", 404), ("/v1/encode", 405),
                             ("/health", 200)):
            connection.request("GET", path)
            reply = connection.getresponse()
            reply.read()
            self.assertEqual(reply.status, status)
            self.assertFalse(reply.will_close)
        connection.close()

    def test_errors_show_nothing_of_the_server(self):
        for path, body, *_ in REFUSED:
            reply = self.server.post(path, body, JSON).body
            self.assertNotIn(b"/golden", reply)
            self.assertNotIn(b"src/serve", reply)


if __name__ == "__main__":
    main()
