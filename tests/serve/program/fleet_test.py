"""Servers and proxies that share rows: in a folder, and in a real Redis or Valkey server."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from language_model import LanguageModel
from proxied import CHAT, chat, picture, proxy, wait_for_metric, words
import served
from served import IMAGES, PHOTO, PROGRAM, Served, image, in_parallel, png, tensors_of, wait_until

REDIS = shutil.which("redis-server") or shutil.which("valkey-server")
LOOKUPS, WRITES = "fovea_shared_rows_lookups_total", "fovea_shared_rows_writes_total"


def sharing(place, *flags):
    return Served("--shared-rows", place, *flags)


def rows_of(reply):
    assert reply.status == 200, reply.body
    return tensors_of(reply.body)


def speaks_redis():
    """Whether the program was built with libhiredis: it says so before it loads a model."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([PROGRAM, "encode", served.MODEL, os.path.join(served.MODEL, "images", PHOTO),
                              "--output", os.path.join(folder, "rows.safetensors"), "--encoder-cache-size", "1M",
                              "--shared-rows", "redis://127.0.0.1:9/0"], capture_output=True, check=False)
        return b"speaks to no Redis server" not in run.stderr


class Shared:
    """What holds wherever rows are shared; `place` is where."""

    def test_rows_of_one_server_are_those_of_the_other(self):
        with sharing(self.place) as one, sharing(self.place) as other:
            expected = [rows_of(one.encode(image(name))) for name in IMAGES]
            wait_for_metric(one, WRITES, len(IMAGES), result="stored")
            for name, rows in zip(IMAGES, expected):
                reply = other.encode(image(name))
                self.assertEqual(rows_of(reply), rows)
                self.assertEqual(reply.headers["X-Fovea-Cache"], "hit=1,join=0,miss=0,bypass=0")
            wait_for_metric(other, LOOKUPS, len(IMAGES), result="hit")
            self.assertEqual(other.metric("fovea_graph_items_total"), 0, "it has encoded nothing")

    def test_a_server_that_starts_again_has_them(self):
        with sharing(self.place) as server:
            rows = rows_of(server.encode(image(PHOTO)))
            wait_for_metric(server, WRITES, 1, result="stored")
        with sharing(self.place) as server:
            self.assertEqual(rows_of(server.encode(image(PHOTO))), rows)
            wait_for_metric(server, LOOKUPS, 1, result="hit")

    def test_proxies_share_them(self):
        flags = ("--shared-rows", self.place)
        with LanguageModel() as model, proxy(model, flags=flags) as one, proxy(model, flags=flags) as other:
            self.assertEqual(words(one.post(CHAT, chat(picture())).body)[-1], "end")
            wait_for_metric(one, WRITES, 1, result="stored")
            self.assertEqual(words(other.post(CHAT, chat(picture())).body)[-1], "end")
            wait_for_metric(other, LOOKUPS, 1, result="hit")
            self.assertEqual(model.requests[0], model.requests[1])


class Folder(Shared, unittest.TestCase):
    def setUp(self):
        self.place = self.enterContext(tempfile.TemporaryDirectory())

    def test_a_file_that_is_torn_is_none(self):
        with sharing(self.place) as server:
            rows = rows_of(server.encode(image(PHOTO)))
            wait_for_metric(server, WRITES, 1, result="stored")
        for folder, _, names in os.walk(self.place):
            for name in names:
                if not name.startswith("."):
                    os.truncate(os.path.join(folder, name), 1000)
        with sharing(self.place) as server:
            self.assertEqual(rows_of(server.encode(image(PHOTO))), rows)
            wait_for_metric(server, LOOKUPS, 1, result="miss")

    def test_a_folder_that_is_not_there_is_refused(self):
        with Served("--shared-rows", self.place + "/none", wait=False) as server:
            self.assertEqual(server.process.wait(served.PATIENCE), 1)
            self.assertIn("no such folder for shared rows", server.text_of_log())


@unittest.skipUnless(REDIS, "there is no redis-server or valkey-server")
@unittest.skipUnless(speaks_redis(), "the program was built without libhiredis")
class Redis(Shared, unittest.TestCase):
    def setUp(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.redis = subprocess.Popen([REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                       "--appendonly", "no", "--logfile", "/dev/null"])
        self.addCleanup(self.redis.wait)
        self.addCleanup(self.redis.kill)
        self.place = f"redis://127.0.0.1:{port}/0"
        wait_until(lambda: self.answers(port))

    @staticmethod
    def answers(port):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False

    def test_a_server_that_stands_still_is_passed_over(self):
        with sharing(self.place) as server:
            rows = rows_of(server.encode(image(PHOTO)))
            wait_for_metric(server, WRITES, 1, result="stored")
            self.redis.send_signal(signal.SIGSTOP)
            fresh = [png(28 * (1 + i), 56) for i in range(16)]
            replies = in_parallel(len(fresh), lambda i: server.encode(fresh[i]))
            self.assertEqual({reply.status for reply in replies}, {200})
            wait_for_metric(server, "fovea_shared_rows_up", 0)
            self.assertEqual(rows_of(server.encode(image(PHOTO))), rows, "of its own memory")
            self.assertEqual(server.text_of_log().count("shared_rows.away"), 1)
            self.redis.send_signal(signal.SIGCONT)
            sizes = iter(range(2, 1000))

            def is_back():
                server.encode(png(28, 28 * (2 + next(sizes) % 40)))
                return server.metric("fovea_shared_rows_up") == 1

            wait_until(is_back)
            self.assertIn("shared_rows.back", server.text_of_log())

    def test_a_server_that_ends_is_passed_over(self):
        with sharing(self.place) as server:
            self.redis.kill()
            self.redis.wait()
            self.assertEqual(server.encode(image(PHOTO)).status, 200)
            self.assertIn("shared_rows.away", server.text_of_log())

    def test_passwords_are_not_shown(self):
        secret = "redis://:hunter2@127.0.0.1:1/0"
        shown = subprocess.run([PROGRAM, "serve", served.MODEL, "--shared-rows", secret, "--print-config"],
                               capture_output=True, text=True, check=True)
        self.assertIn("shared-rows", shown.stdout)
        self.assertNotIn("hunter2", shown.stdout)
        with sharing(secret) as server:
            server.encode(image(PHOTO))
            self.assertIn("redis://127.0.0.1:1/0", server.text_of_log())
            for text in (server.text_of_log(), server.get("/info").body.decode()):
                self.assertNotIn("hunter2", text)


if __name__ == "__main__":
    served.main()
