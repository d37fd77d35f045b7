"""Who holds a place of the server, and what others find meanwhile."""
import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from served import (MODEL, PATIENCE, PHOTO, PROGRAM, Reply, Served, image, main, memory_bytes, png,
                    wait_until)

RAW = "output.format=raw"
NOBODY = 65534


def head_of(length):
    return (f"POST /v1/encode?{RAW} HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\n"
            f"Content-Length: {length}\r\n\r\n").encode()


@contextlib.contextmanager
def sockets(server, count, text=b""):
    """Connections that send a text and then nothing."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            one.sendall(text)
            found.append(one)
        yield found


def ask_from(server, address, method, path, body=None, headers=None):
    """As Served.request, from another address of this machine: another client."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE,
                                            source_address=(address, 0))
    try:
        connection.request(method, path, body, headers or {})
        return Reply(connection.getresponse())
    finally:
        connection.close()


class Bodies(unittest.TestCase):
    def test_lengths_that_are_announced_take_no_room(self):
        with Served() as server:
            with sockets(server, 12, head_of(768 << 20) + b"begun"):
                wait_until(lambda: server.metric("fovea_requests_in_flight") >= 12)
                self.assertEqual(server.encode(image(PHOTO), RAW).status, 200)
                # Room of the request goes a moment after its reply.
                wait_until(lambda: server.metric("fovea_inflight_bytes") <= 12 * (64 << 10))

    def test_bodies_that_do_not_come_take_no_place(self):
        with Served("--max-concurrent-requests", "4") as server:
            with sockets(server, 20, head_of(100) + b"begun"):
                wait_until(lambda: server.metric("fovea_requests_in_flight") >= 20)
                self.assertEqual(server.metric("fovea_work_in_flight"), 0)
                self.assertEqual(server.encode(image(PHOTO), RAW).status, 200)

    def test_a_client_leaves_room_for_the_bodies_of_others(self):
        most = 8 << 20
        with Served(settings={"max-inflight-bytes": "8Mi"}) as server:
            with sockets(server, 12, head_of(1 << 20) + b"x" * ((1 << 20) - 1)):
                wait_until(lambda: server.metric("fovea_rejected_total", reason="memory") > 0)
                reply = ask_from(server, "127.0.0.2", "POST", "/v1/encode?" + RAW, image(PHOTO),
                                 {"Content-Type": "image/jpeg"})
                self.assertEqual(reply.status, 200)
                wait_until(lambda: server.metric("fovea_inflight_bytes") <= most / 2)

    def test_chunks_of_a_byte_cost_what_their_bytes_say(self):
        size = 2_000_000
        with Served() as server:
            server.encode(image(PHOTO), RAW)
            before = memory_bytes(server, "VmRSS")
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(f"POST /v1/encode?{RAW} HTTP/1.1\r\nHost: x\r\nContent-Type: "
                               "image/png\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
                for _ in range(100):
                    client.sendall(b"1\r\nA\r\n" * (size // 100))
                wait_until(lambda: server.metric("fovea_inflight_bytes") >= size)
                self.assertLess(memory_bytes(server, "VmHWM") - before, 3 * size + (8 << 20))


class Connections(unittest.TestCase):
    def test_silent_connections_give_way_to_new_ones(self):
        with Served(settings={"max-connections": "20"}) as server:
            with sockets(server, 60):
                for _ in range(5):
                    self.assertEqual(server.get("/livez").status, 200)

    def test_slow_bodies_of_one_client_give_way_to_another(self):
        with Served(settings={"max-connections": "20"}) as server:
            with sockets(server, 20, head_of(100) + b"begun"):
                for _ in range(5):
                    reply = ask_from(server, "127.0.0.2", "GET", "/livez")
                    self.assertEqual(reply.status, 200)


class Life(unittest.TestCase):
    def test_a_server_at_work_on_one_large_item_lives_and_says_that_it_is_busy(self):
        large = png(3000, 3000)
        with Served(settings={"stall-timeout": 1}) as server:
            with sockets(server, 1, head_of(len(large)) + large):
                wait_until(lambda: server.metric("fovea_running_batches") == 1)

                def is_busy():
                    self.assertEqual(server.get("/livez").status, 200)
                    return server.get("/readyz").json() == {"status": "busy"}

                wait_until(is_busy)
                self.assertEqual(server.get("/readyz").status, 503)
                self.assertEqual(server.metric("fovea_stalled"), 0)
            wait_until(lambda: server.get("/readyz").status == 200)

    def test_a_server_whose_work_does_not_move_does_not_live(self):
        large = png(10000, 10000)
        with Served("--decode-processes", "1", settings={"stall-timeout": 1}) as server:
            server.encode(image(PHOTO), RAW)  # starts the process that decodes
            children = subprocess.run(["pgrep", "-P", str(server.process.pid)], text=True,
                                      capture_output=True).stdout.split()
            if not children:
                self.skipTest("there is no pgrep")
            for child in children:
                os.kill(int(child), signal.SIGSTOP)
            with sockets(server, 1, head_of(len(large)) + large):
                wait_until(lambda: server.get("/livez").status == 503)
                self.assertEqual(server.encode(image(PHOTO), RAW).code(), "unhealthy")
                for child in children:
                    os.kill(int(child), signal.SIGCONT)
                wait_until(lambda: server.get("/livez").status == 200)

    def test_health_is_tried_whatever_the_queue_holds(self):
        large = png(3000, 3000)
        with Served(settings={"max-queue-items": "1"}) as server:
            with sockets(server, 1, head_of(len(large)) + large):
                wait_until(lambda: server.metric("fovea_running_batches") == 1)
                self.assertEqual(server.encode(image(PHOTO), RAW).status, 429)
            wait_until(lambda: server.metric("fovea_queue_items") == 0)
            jobs = server.metric("fovea_jobs_total")
            self.assertEqual(server.get("/health_generate").status, 200)
            self.assertEqual(server.metric("fovea_jobs_total"), jobs)


class Fetches(unittest.TestCase):
    def test_urls_that_hang_leave_fetches_to_other_clients(self):
        picture = image(PHOTO)
        with contextlib.ExitStack() as stack:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
            hung = []

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        one, _ = listening.accept()
                        head = one.recv(4096)
                        if head.startswith(b"GET /hang"):
                            hung.append(one)
                            continue
                        one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                                    % len(picture) + picture)
                        one.close()

            threading.Thread(target=serve, daemon=True).start()
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"

            def body(path):
                return json.dumps({"items": [{"type": "image", "image": url + path}],
                                   "output": {"format": "raw"}}).encode()

            kind = {"Content-Type": "application/json"}
            server = stack.enter_context(Served(
                "--media-url-policy", "any", "--allowed-media-ports", url.rsplit(":", 1)[1],
                settings={"max-media-fetches": 4, "image-fetch-timeout": 600,
                          "request-timeout": 600}))
            text = body("/hang")
            stack.enter_context(sockets(
                server, 8, (f"POST /v1/encode HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                            f"\r\nContent-Length: {len(text)}\r\n\r\n").encode() + text))
            wait_until(lambda: len(hung) == 2)  # half of them
            reply = ask_from(server, "127.0.0.2", "POST", "/v1/encode", body("/picture"), kind)
            self.assertEqual(reply.status, 200)
            self.assertEqual(len(hung), 2)
            for one in hung:
                one.close()


class Threads(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "needs a user without processes")
    def test_a_server_that_may_start_no_more_threads_says_so_and_ends(self):
        for most in (1, 3, 6, 12, 18, 24):
            def become_nobody(most=most):
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)

            with self.subTest(threads=most), tempfile.TemporaryFile() as messages:
                process = subprocess.Popen(
                    [PROGRAM, "serve", MODEL, "--port", "0", "--threads", "1", "--device", "cpu"],
                    preexec_fn=become_nobody, stderr=messages, stdout=messages)
                try:
                    code = process.wait(PATIENCE)
                finally:
                    process.kill()
                    process.wait()
                messages.seek(0)
                text = messages.read().decode()
                self.assertEqual(code, 1, text)
                self.assertIn("thread", text.splitlines()[-1])


if __name__ == "__main__":
    main()
