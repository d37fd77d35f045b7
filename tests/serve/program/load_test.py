"""Crowds, slow clients, clients that leave, and the end of the server while they are there."""
import http.client
import os
import random
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest
from collections import Counter

from served import (IMAGES, PATIENCE, PHOTO, Served, data_url, image, in_parallel, main,
                    memory_bytes, png, tensors_of, wait_until)

RAW = "output.format=raw"
ROUTE = "/v1/encode"
ENDLESS = png(2000, 2000)  # takes seconds to encode on any processor
CORRUPT_ITEMS = int(os.environ.get("FOVEA_TEST_CORRUPT_ITEMS", "300"))


def request_bytes(data):
    head = f"POST {ROUTE}?{RAW} HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


class Crowds(unittest.TestCase):
    def test_more_clients_than_places_get_200_or_429_and_are_all_counted(self):
        places, seconds = 4, 3
        with Served("--max-concurrent-requests", str(places)) as server:
            photo = image("noise_101x61.png")
            end = time.monotonic() + seconds

            def one_client(_):
                seen = Counter()
                while time.monotonic() < end:
                    reply = server.encode(photo, RAW)
                    seen[reply.status] += 1
                    if reply.status == 429:
                        self.assertEqual(reply.code(), "queue_full")
                        self.assertTrue(1 <= int(reply.headers["Retry-After"]) <= 60)
                        time.sleep(0.05)
                return seen

            seen = sum(in_parallel(10 * places, one_client), Counter())
            self.assertEqual(set(seen), {200, 429})
            # A reply is counted just after its last byte.
            wait_until(lambda: server.metric("fovea_requests_total", route=ROUTE) == seen.total())
            for status, count in seen.items():
                self.assertEqual(server.metric("fovea_requests_total", route=ROUTE, status=status),
                                 count)
            self.assertEqual(server.metric("fovea_rejected_total", reason="queue_full"), seen[429])
            self.assertEqual(server.metric("fovea_items_total", result="ok"), seen[200])
            self.assertEqual(server.metric("fovea_work_in_flight"), 0)
            wait_until(lambda: server.metric("fovea_inflight_bytes") == 0)

    def test_a_client_that_leaves_its_place_in_the_queue(self):
        # While the engine is at work, a request waits for company, here for as long as one likes.
        flags = ("--max-queue-delay-us", "600000000", "--max-concurrent-requests", "2")
        with Served(*flags) as server:
            with socket.create_connection(("127.0.0.1", server.port)) as busy:
                busy.sendall(request_bytes(ENDLESS))
                wait_until(lambda: server.metric("fovea_running_batches") == 1)
                with socket.create_connection(("127.0.0.1", server.port)) as client:
                    client.sendall(request_bytes(image("noise_101x61.png")))
                    wait_until(lambda: server.metric("fovea_queue_requests") == 1)
                    self.assertEqual(server.encode(b"x").status, 429)
                wait_until(lambda: server.metric("fovea_requests_total", status=499) == 1)
                wait_until(lambda: server.metric("fovea_queue_requests") == 0)
            wait_until(lambda: server.metric("fovea_requests_total", status=499) == 2)
            wait_until(lambda: server.metric("fovea_work_in_flight") == 0)
            self.assertEqual(server.metric("fovea_rows_total"), 0)

    def test_a_deadline_that_cannot_be_kept(self):
        with Served() as server:
            reply = server.encode(ENDLESS, RAW, {"X-Request-Timeout-Ms": "100"})
            self.assertEqual((reply.status, reply.code()), (504, "deadline_exceeded"))


class Corrupt(unittest.TestCase):
    def corrupt_item(self, randomness):
        kind = randomness.randrange(6)
        whole = image(randomness.choice(IMAGES))
        if kind == 0:
            return whole[:randomness.randrange(1, len(whole) - 12)]
        if kind == 1:
            return randomness.randbytes(randomness.randrange(1, 5000))
        if kind == 2:
            return png(randomness.randrange(20000, 60000), 60000, pixels=False)
        if kind == 3:
            return png(randomness.randrange(1, 900), 1 << 30, pixels=False)
        if kind == 4:
            return whole[:8] + randomness.randbytes(2000)
        return png(300, 1)

    def test_a_good_item_after_many_corrupt_ones(self):
        randomness = random.Random(11)
        with Served() as server:
            good = server.encode(image(PHOTO), RAW).body
            for _ in range(50):
                server.encode(self.corrupt_item(randomness), RAW)
            before = memory_bytes(server)
            connection = server.connect()
            seen = Counter()
            for _ in range(CORRUPT_ITEMS):
                connection.request("POST", ROUTE + "?" + RAW, self.corrupt_item(randomness),
                                   {"Content-Type": randomness.choice(
                                       ("image/png", "image/jpeg", "application/octet-stream"))})
                reply = connection.getresponse()
                reply.read()
                seen[reply.status] += 1
            connection.close()
            # A JPEG that ends early, but after its last row, is whole enough.
            self.assertLessEqual(set(seen), {200, 422})
            self.assertGreater(seen[422], 0.9 * CORRUPT_ITEMS)
            self.assertLess(memory_bytes(server) - before, 32 << 20)
            self.assertEqual(server.encode(image(PHOTO), RAW + "&cache=bypass").body, good)
            self.assertEqual(server.get("/health").status, 200)
            wait_until(lambda: server.metric("fovea_inflight_bytes") == 0)


class Ends(unittest.TestCase):
    def test_every_accepted_request_has_its_reply_when_the_server_ends(self):
        with Served() as server:
            photo = image("shapes_120x90.png")
            seen = Counter()
            guard = threading.Lock()

            def one_client(_):
                while True:
                    try:
                        connection = server.connect()
                        connection.connect()
                    except OSError:
                        return  # nobody accepts any more
                    try:
                        connection.request("POST", f"{ROUTE}?{RAW}&cache=bypass", photo,
                                           {"Content-Type": "image/png"})
                        reply = connection.getresponse()
                        reply.read()  # IncompleteRead if it is cut
                        result = reply.status
                    except (OSError, http.client.HTTPException) as error:
                        result = type(error).__name__
                    finally:
                        connection.close()
                    with guard:
                        seen[result] += 1

            def end(_):
                wait_until(lambda: seen[200] > 20)
                server.process.send_signal(signal.SIGTERM)

            in_parallel(17, lambda i: end(i) if i == 0 else one_client(i))
            self.assertEqual(server.process.wait(PATIENCE), 0)
            log = server.text_of_log()
        # Connections that were in the backlog, or had sent nothing yet, are reset: such a client
        # may come again. Whoever's request was taken has a reply.
        self.assertLessEqual(set(seen), {200, 503, "ConnectionResetError", "RemoteDisconnected",
                                         "BrokenPipeError"})
        taken = log.count("path=" + ROUTE)
        self.assertEqual(taken, seen[200] + seen[503], seen)
        self.assertNotIn("status=499", log)

    def test_whoever_waits_longer_than_the_server_gets_503(self):
        with Served(settings={"shutdown-timeout": 0.2}) as server:
            def client(_):
                return server.encode(ENDLESS, RAW)

            def end(_):
                wait_until(lambda: server.metric("fovea_queue_items") == 3)
                server.process.send_signal(signal.SIGTERM)

            replies = in_parallel(4, lambda i: end(i) if i == 0 else client(i))[1:]
            self.assertEqual([(reply.status, reply.code()) for reply in replies],
                             [(503, "draining")] * 3)
            self.assertEqual(server.process.wait(PATIENCE), 0)

    def test_a_second_signal_does_not_wait_for_requests(self):
        with Served() as server:
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(request_bytes(ENDLESS))
                wait_until(lambda: server.metric("fovea_queue_items") == 1)
                server.process.send_signal(signal.SIGTERM)
                wait_until(lambda: "shutting_down" in server.text_of_log())
                time.sleep(0.1)  # two signals at once may be one
                self.assertEqual(server.end(), 128 + signal.SIGTERM)


class SlowClients(unittest.TestCase):
    def test_slow_clients_are_cut_and_the_others_are_served(self):
        with Served(settings={"header-timeout": 0.5, "body-timeout": 0.5,
                              "keep-alive-timeout": 60}) as server:
            address = ("127.0.0.1", server.port)
            idle = [socket.create_connection(address) for _ in range(200)]
            for client in idle:
                client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            whole = request_bytes(image(PHOTO))
            starts = (b"", b"POST /v1/enc", whole[:whole.index(b"\r\n\r\n") + 4], whole[:2000])
            slow = [socket.create_connection(address) for _ in range(40)]
            for number, client in enumerate(slow):
                client.sendall(starts[number % 4])
            replies = in_parallel(8, lambda _: [server.encode(image("noise_101x61.png"), RAW).status
                                                for _ in range(5)])
            self.assertEqual(replies, [[200] * 5] * 8)
            for number, client in enumerate(slow):
                if number % 4 == 0:
                    client.close()  # it has not begun a request: only keep-alive limits it
                    continue
                client.settimeout(PATIENCE)
                self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 408 "))
                client.close()
            wait_until(lambda: server.metric("fovea_requests_total", status=408) == 30)
            for client in idle:
                client.settimeout(PATIENCE)
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 "))
                client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 "))
                client.close()
            wait_until(lambda: server.metric("fovea_connections") == 1)  # that of the question

    def test_idle_connections_are_closed_in_time(self):
        with Served(settings={"keep-alive-timeout": 0.2}) as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 "))
                self.assertEqual(client.recv(4096), b"")

    def test_requests_in_single_bytes(self):
        with Served() as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in request_bytes(image(PHOTO)[:600]):
                    client.sendall(struct.pack("B", byte))
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 422 "))

    def test_half_closed_clients_are_cut_off(self):
        with Served() as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.sendall(request_bytes(image(PHOTO))[:500])
                client.shutdown(socket.SHUT_WR)
                self.assertEqual(client.recv(4096), b"")
            wait_until(lambda: server.metric("fovea_requests_total", status=499) == 1)


class Publishing(unittest.TestCase):
    def test_readers_of_the_folder_never_see_a_partial_file(self):
        with tempfile.TemporaryDirectory() as folder, Served("--ec-dir", folder) as server:
            writers, uuids = 8, 12
            url = [data_url(image(name)) for name in IMAGES]
            done = threading.Event()

            def publish(writer):
                for number in range(uuids):
                    part = {"type": "image_url", "image_url": {"url": url[number % len(url)]},
                            "uuid": f"u{(number + writer) % uuids}-{number % len(url)}"}
                    reply = server.post("/v1/chat/completions", {
                        "model": "m", "messages": [{"role": "user", "content": [part]}]})
                    if reply.status != 200:
                        return reply.body
                    path = os.path.join(folder, part["uuid"], "encoder_cache.safetensors")
                    if not os.path.exists(path):
                        return "no file when the reply came: " + path
                return None

            def read(_):
                """The files seen, and what was wrong with one."""
                seen = 0
                while not done.is_set():
                    for name in os.listdir(folder):
                        path = os.path.join(folder, name, "encoder_cache.safetensors")
                        try:
                            with open(path, "rb") as file:
                                data = file.read()
                        except FileNotFoundError:
                            continue
                        seen += 1
                        _, shape, rows = tensors_of(data)["ec_cache"]
                        if len(rows) != 2 * shape[0] * shape[1]:
                            return -1
                return seen

            def writer(number):
                try:
                    return publish(number)
                finally:
                    if self.last_one():
                        done.set()

            self.left, self.guard = writers, threading.Lock()
            results = in_parallel(2 * writers, lambda i: writer(i) if i < writers else read(i))
            self.assertEqual(results[:writers], [None] * writers)
            self.assertTrue(all(seen > 0 for seen in results[writers:]), results)
            self.assertEqual([name for _, _, names in os.walk(folder) for name in names
                              if name != "encoder_cache.safetensors"], [])

    def last_one(self):
        with self.guard:
            self.left -= 1
            return self.left == 0


if __name__ == "__main__":
    main()
