"""Bodies that are small and become much: what they cost the server, and who else waits for it.

The limits are those of docs/security.md, memory of three times a body and 8 MiB, and 20 ms of CPU
for a megabyte, the latter ten times over, because the machine may be slow."""
import json
import os
import resource
import socket
import time
import unittest

from served import PHOTO, Served, image, main, memory_bytes

MB = 1_000_000
SIZE = 8 * MB
ENCODE, EMBED, EMBEDDINGS, CHAT = "/v1/encode", "/v2/embed", "/v1/embeddings", "/v1/chat/completions"
KSERVE = "/v2/models/m/infer"
JSON = "application/json"


def filled(head, piece, tail, size=SIZE):
    return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail


def form(options):
    boundary = b"--b\r\nContent-Disposition: form-data; name="
    return (boundary + b'"file"\r\n\r\nx\r\n' + boundary + b'"options"\r\n\r\n' + options
            + b"\r\n--b--\r\n")


def binary_tensor(elements, shape):
    data = b"\0" * 4 * elements
    head = json.dumps({"inputs": [{"name": "media", "shape": [shape], "datatype": "BYTES",
                                   "parameters": {"binary_data_size": len(data)}}]}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


def keys(count):
    return b"{" + b",".join(b'"%x":0' % i for i in range(count)) + b"}"


# Route, type, body.
BODIES = {
    "empty objects": (ENCODE, JSON, filled(b'{"items":[', b"{},", b"{}]}")),
    "empty lists": (ENCODE, JSON, filled(b'{"items":[', b"[],", b"[]]}")),
    "empty texts": (ENCODE, JSON, filled(b'{"items":[', b'"",', b'""]}')),
    "numbers": (ENCODE, JSON, filled(b'{"items":[', b"0,", b"0]}")),
    "objects of one key": (ENCODE, JSON, filled(b'{"items":[', b'{"":0},', b"{}]}")),
    "nested lists": (ENCODE, JSON,
                     filled(b'{"items":[', b"[" * 29 + b"]" * 29 + b",", b"0]}")),
    "keys": (ENCODE, JSON, keys(800_000)),
    "keys within the limit": (ENCODE, JSON, keys(45_000)),
    "one text": (ENCODE, JSON, filled(b'{"items":[{"image":"', b"A", b'"}]}')),
    "one escaped text": (ENCODE, JSON, filled(b'{"items":[{"image":"', b"\\/", b'"}]}')),
    "frames": (ENCODE, JSON, filled(b'{"items":[{"frames":[', b'"A",', b'"A"]}]}')),
    "frames of a text": (ENCODE, JSON,
                         filled(b'{"items":[{"video":"data:video/jpeg;base64,', b",", b'"}]}')),
    "images": (EMBED, JSON, filled(b'{"model":"m","images":[', b'"x",', b'"x"]}')),
    "inputs": (EMBEDDINGS, JSON, filled(b'{"model":"m","input":[', b'"x",', b'"x"]}')),
    "tokens": (EMBEDDINGS, JSON, filled(b'{"model":"m","input":[', b"1,", b"1]}")),
    "parts": (CHAT, JSON,
              filled(b'{"messages":[{"content":[', b'{"image_url":"a"},', b'"a"]}]}')),
    "options of a form": (ENCODE, "multipart/form-data; boundary=b",
                          form(filled(b'{"output":[', b"{},", b"{}]}"))),
    "parts of a form": (ENCODE, "multipart/form-data; boundary=b",
                        filled(b"", b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n',
                               b"--b--\r\n")),
}


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Costs(unittest.TestCase):
    def check(self, server, path, body, headers):
        with open(f"/proc/{server.process.pid}/clear_refs", "w") as file:
            file.write("5")  # forgets the peak
        before, start = memory_bytes(server, "VmRSS"), cpu_seconds(server)
        reply = server.post(path, body, headers)
        self.assertIn(reply.status, (400, 422), reply.body[:200])
        peak = memory_bytes(server, "VmHWM") - before
        self.assertLessEqual(peak, 3 * len(body) + (8 << 20))
        self.assertLessEqual(cpu_seconds(server) - start, 0.2 * len(body) / MB + 0.2)

    def test_a_body_costs_what_its_bytes_say(self):
        with Served() as server:
            server.encode(image(PHOTO))
            for name, (path, kind, body) in BODIES.items():
                with self.subTest(name):
                    self.check(server, path, body, {"Content-Type": kind})
            self.assertEqual(server.encode(image(PHOTO)).status, 200)

    def test_a_binary_tensor_is_counted_before_it_is_split(self):
        with Served() as server:
            server.encode(image(PHOTO))
            for elements, shape in ((5 * MB, 1), (MB, MB)):
                body, headers = binary_tensor(elements, shape)
                with self.subTest(shape=shape):
                    headers["Content-Type"] = "application/octet-stream"
                    self.check(server, KSERVE, body, headers)


class Company(unittest.TestCase):
    def test_nobody_waits_for_bodies_whose_clients_have_left(self):
        body = filled(b'{"items":[', b"{},", b"{}]}")
        head = (f"POST {ENCODE} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        with Served(settings={"shutdown-timeout": 10}) as server:
            for _ in range(2 * max(8, os.cpu_count())):
                with socket.create_connection(("127.0.0.1", server.port)) as client:
                    client.sendall(head + body)
            start = time.monotonic()
            self.assertEqual(server.get("/livez").status, 200)
            self.assertLess(time.monotonic() - start, 10)
            self.assertEqual(server.end(), 0)

    def test_a_server_without_memory_goes_on(self):
        with Served() as server:
            reply = server.encode(image(PHOTO))
            self.assertEqual(reply.status, 200)
            limit = memory_bytes(server, "VmSize") + (24 << 20)
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, (limit, limit))
            for size in (2 * MB, 8 * MB, 16 * MB, 24 * MB, 40 * MB):
                for piece in (b"[],", b'{"":0},', b'"\\/\\/",'):
                    try:
                        reply = server.post(ENCODE, filled(b'{"items":[', piece, b"0]}", size),
                                            {"Content-Type": JSON})
                        self.assertIn(reply.status, (400, 500, 503))
                    except OSError:
                        pass  # the body did not fit, and its connection went
            self.assertIsNone(server.process.poll(), server.text_of_log())
            self.assertEqual(server.encode(image(PHOTO)).status, 200)


if __name__ == "__main__":
    main()
