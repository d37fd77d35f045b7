"""Clients of a soak: honest ones, who compare every row, and hostile ones, who keep connections busy."""
import base64
import collections
import http.client
import json
import os
import random
import socket
import threading
import time

from served import (IMAGES, MODEL, data_url, encoded_by_program, image, payload_of_npy, png, read,
                    tensors_of)

FRAMES = os.path.join(MODEL, "video_frames")
KEY = {"Authorization": "Bearer soak"}
PUBLISHED = 16  # keys of published rows, fewer than rows so that they are written over and over


class Truth:
    """The rows of `fovea encode`: what every reply is compared with."""

    def __init__(self, folder):
        self.rows = {dtype: {name: tensors[f"item_{i}"][2] for i, name in enumerate(IMAGES)}
                     for dtype, tensors in
                     ((dtype, encoded_by_program(IMAGES, dtype, folder))
                      for dtype in ("float32", "bfloat16"))}
        self.vectors = {}  # of the route of embeddings: those of the first reply
        self.guard = threading.Lock()

    def same_vector(self, name, vector):
        with self.guard:
            return self.vectors.setdefault(name, vector) == vector


class Tally:
    """What the clients saw."""

    def __init__(self):
        self.guard = threading.Lock()
        self.replies = collections.Counter()  # (kind, status)
        self.wrong = []  # rows that differ
        self.lost = []  # requests without a whole reply
        self.refused = []  # honest requests that were refused for another reason than load
        self.seconds = []  # of honest requests that were answered 200
        self.probes = []  # seconds of /livez

    def add(self, kind, status):
        with self.guard:
            self.replies[kind, status] += 1

    def note(self, list_of_faults, text):
        with self.guard:
            list_of_faults.append(text)


class Weather:
    """Whether a fault lasts that excuses errors: descriptors or disks that ran out, a restart."""

    AFTER = 3  # seconds in which its effects may still be seen

    def __init__(self):
        self.until = {}

    def storm(self, kind, seconds):
        self.until[kind] = time.monotonic() + seconds + self.AFTER

    def excuses(self, begun):
        """Whether a request that began then may have failed for it."""
        return any(until >= begun for until in self.until.values())


class Honest:
    """Sends one request after the other on a connection of its own, with a pause between them."""

    def __init__(self, server, truth, tally, weather, seed, pause=0):
        self.server, self.truth, self.tally, self.weather = server, truth, tally, weather
        self.random = random.Random(seed)
        self.seed, self.sent, self.pause = seed, 0, pause
        self.connection = None
        self.kinds = (self.raw, self.fresh, self.npy, self.many, self.vector, self.publish,
                      self.plan, self.leave)

    def run(self, over):
        while not over():
            kind = self.random.choice(self.kinds)
            begun = time.monotonic()
            try:
                kind()
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.drop()
                if not self.weather.excuses(begun):
                    self.tally.note(self.tally.lost, f"{kind.__name__}: {error!r}")
                time.sleep(0.05)
            time.sleep(self.random.uniform(0, 2 * self.pause))

    def drop(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def ask(self, kind, method, path, body=b"", headers=()):
        """The body of a reply with status 200, or None."""
        if self.connection is None:
            self.connection = self.server.connect()
        begun = time.monotonic()
        self.connection.request(method, path, body, {**KEY, **dict(headers)})
        reply = self.connection.getresponse()
        data = reply.read()
        self.tally.add(kind, reply.status)
        if reply.status == 200:
            with self.tally.guard:
                self.tally.seconds.append(time.monotonic() - begun)
            return data
        if reply.status == 429:
            time.sleep(self.random.uniform(0.01, 0.2))
        elif not self.weather.excuses(begun):
            self.tally.note(self.tally.refused, f"{kind}: {reply.status} {data[:300]!r}")
        return None

    def post_json(self, kind, path, body):
        return self.ask(kind, "POST", path, json.dumps(body).encode(),
                        {"Content-Type": "application/json"})

    def expect(self, kind, name, got, wanted):
        if got != wanted:
            self.tally.note(self.tally.wrong, f"{kind}: {name}: {len(got)} bytes differ")

    def one_item(self, kind, name, data, output_format, dtype):
        query = f"output.format={output_format}&output.dtype={dtype}"
        return self.ask(kind, "POST", "/v1/encode?" + query, data,
                        {"Content-Type": "application/octet-stream"})

    def raw(self):
        name, dtype = self.random.choice(IMAGES), self.random.choice(("float32", "bfloat16"))
        data = self.one_item("raw", name, image(name), "raw", dtype)
        if data is not None:
            self.expect("raw", name, data, self.truth.rows[dtype][name])

    def fresh(self):
        """An image that no cache has: bytes behind its end make it another one."""
        name = self.random.choice(IMAGES)
        self.sent += 1
        data = self.one_item("fresh", name, image(name) + b"%d %d" % (self.seed, self.sent), "raw",
                             "float32")
        if data is not None:
            self.expect("fresh", name, data, self.truth.rows["float32"][name])

    def npy(self):
        name = self.random.choice(IMAGES)
        data = self.one_item("npy", name, image(name), "npy", "float32")
        if data is not None:
            self.expect("npy", name, payload_of_npy(data), self.truth.rows["float32"][name])

    def many(self):
        names = self.random.choices(IMAGES, k=self.random.randint(1, 8))
        data = self.post_json("many", "/v1/encode", {
            "items": [{"type": "image", "image": data_url(image(name))} for name in names],
            "output": {"format": "safetensors", "dtype": "bfloat16"}})
        if data is None:
            return
        tensors = tensors_of(data)
        for i, name in enumerate(names):
            self.expect("many", name, tensors[f"item_{i}"][2], self.truth.rows["bfloat16"][name])

    def vector(self):
        name = self.random.choice(IMAGES)
        part = {"type": "image_url", "image_url": {"url": data_url(image(name))}}
        data = self.post_json("vector", "/v1/embeddings", {
            "model": "m", "messages": [{"role": "user", "content": [part]}],
            "encoding_format": "base64"})
        if data is not None:
            vector = base64.b64decode(json.loads(data)["data"][0]["embedding"])
            if not self.truth.same_vector(name, vector):
                self.tally.note(self.tally.wrong, f"vector: {name}")

    def publish(self):
        """Publishes rows under a key that others publish, too, and reads them back."""
        number = self.random.randrange(PUBLISHED)
        name = IMAGES[number % len(IMAGES)]
        part = {"type": "image_url", "image_url": {"url": data_url(image(name))},
                "uuid": f"soak-{number}"}
        if self.post_json("publish", "/v1/chat/completions", {
                "model": "m", "messages": [{"role": "user", "content": [part]}]}) is None:
            return
        data = self.ask("published", "GET", f"/v1/cache/soak-{number}")
        if data is not None:
            self.expect("published", name, tensors_of(data)["ec_cache"][2],
                        self.truth.rows["bfloat16"][name])

    def plan(self):
        self.post_json("plan", "/v1/plan", {"items": [
            {"type": "image", "width": self.random.randint(30, 900),
             "height": self.random.randint(30, 900)} for _ in range(self.random.randint(1, 9))]})

    def leave(self):
        """A client that goes while its request runs."""
        name = self.random.choice(IMAGES)
        connection = self.server.connect()
        self.sent += 1
        connection.request("POST", "/v1/encode?output.format=raw",
                           image(name) + b"%d left %d" % (self.seed, self.sent), KEY)
        time.sleep(self.random.uniform(0, 0.02))
        connection.close()
        self.tally.add("leave", 0)


class Hostile:
    """Connections that cost places and memory, or hold what is no request at all."""

    def __init__(self, server, tally, seed):
        self.server, self.tally = server, tally
        self.random = random.Random(seed)
        self.kinds = (self.silence, self.slow_head, self.half_body, self.announcement, self.noise,
                      self.damage, self.bytewise, self.depth, self.deaf)

    def run(self, over):
        while not over():
            kind = self.random.choice(self.kinds)
            try:
                with socket.create_connection(("127.0.0.1", self.server.port), 5) as connection:
                    kind(connection, over)
            except OSError:
                time.sleep(0.05)
            self.tally.add("hostile " + kind.__name__, 0)

    def head(self, length, path="/v1/encode?output.format=raw", kind="image/png"):
        return (f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer soak\r\n"
                f"Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n").encode()

    def hold(self, over, seconds):
        end = time.monotonic() + self.random.uniform(0, seconds)
        while time.monotonic() < end and not over():
            time.sleep(0.1)

    def silence(self, _, over):
        self.hold(over, 5)

    def slow_head(self, connection, over):
        for byte in self.head(10)[:self.random.randint(5, 60)]:
            connection.sendall(bytes([byte]))
            self.hold(over, 0.2)

    def half_body(self, connection, over):
        whole = image(self.random.choice(IMAGES))
        connection.sendall(self.head(len(whole)) + whole[:len(whole) // 2])
        self.hold(over, 5)

    def announcement(self, connection, over):
        connection.sendall(self.head(self.random.choice((100 << 20, 700 << 20, 1 << 40))))
        self.hold(over, 5)

    def noise(self, connection, _):
        connection.sendall(self.random.randbytes(self.random.randint(1, 4000)) + b"\r\n\r\n")
        connection.recv(4096)

    def damage(self, connection, _):
        data = bytearray(image(self.random.choice(IMAGES)))
        for _ in range(self.random.randint(1, 20)):
            data[self.random.randrange(len(data))] = self.random.randrange(256)
        connection.sendall(self.head(len(data)) + data)
        connection.recv(1 << 16)

    def bytewise(self, connection, _):
        head = self.head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        connection.sendall(head + b"1\r\nx\r\n" * self.random.randint(1, 20000) + b"0\r\n\r\n")
        connection.recv(4096)

    def depth(self, connection, _):
        body = self.random.choice((b'{"items":' + b"[" * 100000, b'{"items":[' + b"{}," * 50000,
                                   b'{"a":"' + b"\\u0000" * 20000, b"{" * 1000))
        connection.sendall(self.head(len(body), "/v1/encode", "application/json") + body)
        connection.recv(4096)

    def deaf(self, connection, over):
        """Asks for much and reads nothing."""
        large = png(300, 300)
        for _ in range(20):
            connection.sendall(self.head(len(large)) + large)
        self.hold(over, 5)


def probe(server, tally, over):
    """Asks whether the server lives, four times a second."""
    while not over():
        begun = time.monotonic()
        try:
            status = server.get("/livez", KEY).status
        except (OSError, http.client.HTTPException):
            status = 0
        tally.add("livez", status)
        with tally.guard:
            tally.probes.append(time.monotonic() - begun)
        time.sleep(0.25)


def read_folder(folder, tally, over):
    """Reads published files as another process would: each is whole, or not there."""
    while not over():
        for name in os.listdir(folder):
            try:
                data = read(os.path.join(folder, name, "encoder_cache.safetensors"))
            except (FileNotFoundError, NotADirectoryError):
                continue
            _, shape, rows = tensors_of(data)["ec_cache"]
            if len(rows) != 2 * shape[0] * shape[1]:
                tally.note(tally.wrong, f"torn file {name}")
        time.sleep(0.1)
