"""Where media come from: what is fetched or read for a request, what is refused, and how."""
import http.server
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from served import (IMAGES, MODEL, PHOTO, PROGRAM, Reply, Served, data_url, encoded_by_program, image,
                    main, read, tensors_of, wait_until)


class Pictures(http.server.BaseHTTPRequestHandler):
    """Serves the pictures of the model, and replies that go wrong."""

    def do_GET(self):
        self.server.seen.append(dict(self.headers))
        name = self.path.lstrip("/")
        if name.startswith("to/"):
            self.send_response(302)
            self.send_header("Location", "http://" + name[3:])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif name in IMAGES:
            self.reply(200, image(name))
        elif name.isdigit():
            self.reply(int(name), b"no picture")
        else:
            self.reply(404, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Elsewhere:
    """Another server on a loopback address."""

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
        self.server.seen = self.seen = []  # headers of requests
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def encode(server, *urls):
    return server.post("/v1/encode", {"items": [{"type": "image", "image": url} for url in urls],
                                      "output": {"format": "safetensors"}})


class Fetching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.elsewhere = Elsewhere()
        cls.addClassCleanup(cls.elsewhere.close)
        cls.url = f"http://127.0.0.1:{cls.elsewhere.port}/"
        cls.server = Served("--media-url-policy", "any",
                            "--allowed-media-ports", str(cls.elsewhere.port))
        cls.addClassCleanup(cls.server.close)

    def test_fetched_rows_are_those_of_the_bytes(self):
        fetched = encode(self.server, self.url + PHOTO, data_url(image(IMAGES[1])),
                         self.url + "to/127.0.0.1:" + str(self.elsewhere.port) + "/" + IMAGES[2])
        sent = encode(self.server, *(data_url(image(name)) for name in IMAGES[:3]))
        self.assertEqual((fetched.status, sent.status), (200, 200))
        self.assertEqual(tensors_of(fetched.body), tensors_of(sent.body))

    def test_frames_are_the_video_of_their_folder(self):
        folder = os.path.join(MODEL, "video_frames")
        frames = [data_url(read(os.path.join(folder, name))) for name in sorted(os.listdir(folder))]
        with tempfile.TemporaryDirectory() as out:
            expected = encoded_by_program([], "float32", out, "--video", folder)
        items = [{"type": "video", "frames": frames},
                 {"type": "video", "video": "data:video/jpeg;base64," +
                  ",".join(frame.split(",")[1] for frame in frames)}]
        for item in items:
            reply = self.server.post("/v1/encode", {
                "items": [item], "output": {"format": "safetensors", "dtype": "float32"}})
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(tensors_of(reply.body)["item_0"], expected["item_0"])
        plan = self.server.post("/v1/plan", {"items": items[:1]})
        self.assertEqual(plan.json()["data"][0]["num_frames"], len(frames))

    def test_the_frame_that_is_wrong_is_named(self):
        good = data_url(image(PHOTO))
        for frames, status, code, param in (
                ([good, data_url(b"x")], 422, "decode_failed", "items[0].frames"),
                ([good, self.url + "404"], 422, "media_fetch_4xx", "items[0].frames[1]"),
                ([good] * 2049, 422, "too_many_frames", "items[0].frames")):
            reply = self.server.post("/v1/encode", {"items": [{"frames": frames}]})
            self.assertEqual((reply.status, reply.code()), (status, code), reply.body)
            self.assertEqual(reply.json()["error"]["param"], param)

    def test_what_the_other_server_answers(self):
        for path, status, code in (("404", 422, "media_fetch_4xx"),
                                   ("429", 502, "media_fetch_failed"),
                                   ("503", 502, "media_fetch_failed"),
                                   ("200", 422, "decode_failed")):
            reply = encode(self.server, data_url(image(PHOTO)), self.url + path)
            self.assertEqual((reply.status, reply.code()), (status, code), path)
            self.assertEqual(reply.json()["error"]["param"], "items[1].image")


class Headers(unittest.TestCase):
    def test_credentials_go_to_their_origin_and_into_no_log(self):
        with tempfile.TemporaryDirectory() as folder:
            elsewhere, other = Elsewhere(), Elsewhere()
            self.addCleanup(elsewhere.close)
            self.addCleanup(other.close)
            secrets = os.path.join(folder, "secrets.json")
            with open(secrets, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                json.dump({f"http://127.0.0.1:{elsewhere.port}": {"Authorization": "Bearer s3cret"}}, file)
            with Served("--media-url-policy", "any", "--log-level", "debug",
                        "--allowed-media-ports", f"{elsewhere.port},{other.port}",
                        "--media-header", "User-Agent: me/1.0", "--media-headers-file", secrets) as server:
                url = f"http://127.0.0.1:{elsewhere.port}/"
                reply = encode(server, url + PHOTO, url + f"to/127.0.0.1:{other.port}/{PHOTO}")
                self.assertEqual(reply.status, 200, reply.body)
                for text, event in (("{", "not reloaded"), (json.dumps({url[:-1]: {"Authorization": "new"}}), "reloaded")):
                    with open(secrets, "w", encoding="utf-8") as file:
                        file.write(text)
                    count = server.text_of_log().count(event)
                    server.process.send_signal(signal.SIGHUP)
                    wait_until(lambda: server.text_of_log().count(event) > count)
                    self.assertEqual(encode(server, url + PHOTO).status, 200)
                self.assertEqual(server.end(), 0)
                self.assertNotIn("s3cret", server.text_of_log())
            self.assertEqual([(seen["User-Agent"], seen.get("Authorization")) for seen in elsewhere.seen],
                             [("me/1.0", "Bearer s3cret")] * 3 + [("me/1.0", "new")])
            self.assertEqual([(seen["User-Agent"], seen.get("Authorization")) for seen in other.seen],
                             [("me/1.0", None)])

    def test_proxies_of_the_environment_count_if_asked_for(self):
        proxy, elsewhere = Elsewhere(), Elsewhere()
        self.addCleanup(proxy.close)
        self.addCleanup(elsewhere.close)
        flags = ("--media-url-policy", "any", "--allowed-media-ports", str(elsewhere.port))
        variables = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": "example.org"}
        url = f"http://127.0.0.1:{elsewhere.port}/{PHOTO}"
        with Served(*flags, environment=variables) as server:
            self.assertEqual(encode(server, url).status, 200)
        with Served(*flags, "--media-proxy", "environment", environment=variables) as server:
            self.assertEqual(encode(server, url).code(), "media_fetch_failed")  # it opens no tunnels
        self.assertEqual((len(elsewhere.seen), len(proxy.seen)), (1, 0))


class Pages(unittest.TestCase):
    def test_pages_of_listed_origins_may_read_replies(self):
        origin = {"Origin": "https://app.test"}
        asking = origin | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Authorization"}
        with Served("--allowed-origins", '["https://app.test"]', "--api-key", "one") as server:
            reply = server.request("OPTIONS", "/v1/encode", headers=asking)
            self.assertEqual((reply.status, reply.headers["Access-Control-Allow-Origin"],
                              reply.headers["Access-Control-Allow-Headers"]),
                             (200, "https://app.test", "Authorization"))
            reply = server.post("/v1/encode", {"items": []}, origin)
            self.assertEqual((reply.status, reply.headers["Access-Control-Allow-Origin"]),
                             (401, "https://app.test"))
            reply = server.post("/stop_profile", {}, origin | {"Authorization": "Bearer one"})
            self.assertEqual((reply.status, reply.code()), (403, "foreign_origin"))
        with Served() as server:
            self.assertEqual(server.request("OPTIONS", "/v1/encode", headers=asking).status, 405)
            self.assertIsNone(server.get("/livez", origin).headers["Access-Control-Allow-Origin"])


class Refusing(unittest.TestCase):
    def test_private_addresses_without_a_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(0)
            port = listener.getsockname()[1]
            with Served("--allowed-media-ports", str(port)) as server:
                messages = set()
                for host in ("127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433",
                             "0x7f000001", "127.1", "0177.0.0.1", "localhost", "user@127.0.0.1",
                             "example.org\\@127.0.0.1", "169.254.169.254"):
                    reply = encode(server, f"http://{host}:{port}/")
                    self.assertEqual((reply.status, reply.code()), (403, "media_url_blocked"), host)
                    messages.add(reply.json()["error"]["message"])
                self.assertEqual(encode(server, "http://127.0.0.1:22/").status, 403)
                self.assertEqual(len(messages), 1)
            with self.assertRaises(BlockingIOError):
                listener.accept()

    def test_all_urls_with_the_policy_none(self):
        with Served("--media-url-policy", "none") as server:
            self.assertEqual(encode(server, "https://example.org/a.png").code(), "media_url_blocked")
            self.assertEqual(encode(server, data_url(image(PHOTO))).status, 200)

    def test_files_outside_of_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            allowed = os.path.join(folder, "allowed")
            os.mkdir(allowed)
            for place in (folder, allowed):
                with open(os.path.join(place, "a.jpg"), "wb") as file:
                    file.write(image(PHOTO))
            os.symlink("../a.jpg", os.path.join(allowed, "link.jpg"))
            with Served("--allowed-local-media-path", allowed) as server:
                self.assertEqual(encode(server, f"file://{allowed}/a.jpg").status, 200)
                for url in (f"file://{folder}/a.jpg", f"file://{allowed}/../a.jpg",
                            f"file://{allowed}/link.jpg", f"file://{allowed}/none.jpg",
                            "file:///etc/passwd"):
                    reply = encode(server, url)
                    self.assertEqual((reply.status, reply.code()), (403, "local_media_forbidden"), url)
                    self.assertNotIn(folder, reply.body.decode())

    def test_media_that_are_too_large(self):
        with Served("--max-image-bytes", "1Ki") as server:
            for reply in (encode(server, data_url(bytes(2000))), server.encode(bytes(2000))):
                self.assertEqual((reply.status, reply.code()), (422, "image_too_large"))
                self.assertIn("--max-image-bytes", reply.json()["error"]["message"])


class DecodeProcesses(unittest.TestCase):
    def setUp(self):
        facts = subprocess.run([PROGRAM, "env"], capture_output=True, text=True, check=True).stdout
        if not any("limits" in line for line in facts.splitlines() if line.startswith("decode")):
            self.skipTest("there is no fovea-decoder")

    def test_one_that_cannot_be_started_is_503_and_names_no_path(self):
        with Served("--decode-processes", "1") as server:
            connection = server.connect()
            self.addCleanup(connection.close)

            def encode():
                connection.request("POST", "/v1/encode?output.format=raw", image(PHOTO),
                                   {"Content-Type": "image/jpeg"})
                return Reply(connection.getresponse())

            connection.request("GET", "/livez")  # it is accepted while there are descriptors
            self.assertEqual(Reply(connection.getresponse()).status, 200)
            limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
            reply = encode()
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
            self.assertEqual((reply.status, reply.code()), (503, "decoder_unavailable"))
            self.assertGreaterEqual(int(reply.headers["Retry-After"]), 1)
            message = reply.json()["error"]["message"]
            self.assertIn("cannot start fovea-decoder: Too many open files", message)
            self.assertNotIn("/", message)
            self.assertEqual(encode().status, 200)


if __name__ == "__main__":
    main()
