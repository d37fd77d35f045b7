"""A running `fovea serve`, and requests to it, with the standard library alone."""
import base64
import concurrent.futures
import http.client
import io
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zipfile
import zlib

PROGRAM = os.environ.get("FOVEA_TEST_PROGRAM", "fovea")
MODEL = os.environ.get("FOVEA_TEST_MODEL", "")
PATIENCE = 120  # seconds that a slow machine may take for anything


def read(path):
    with open(path, "rb") as file:
        return file.read()


def image(name):
    return read(os.path.join(MODEL, "images", name))


PHOTO = "photo_180x180.jpg"
IMAGES = (PHOTO, "gradient_64x200.png", "noise_101x61.png", "shapes_120x90.png")


def data_url(data, kind="image/jpeg"):
    return f"data:{kind};base64," + base64.b64encode(data).decode()


class Reply:
    def __init__(self, reply):
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The code of an error."""
        return self.json()["error"]["code"]


def variables(settings):
    """The environment in which a server has these settings."""
    return {"FOVEA_" + name.upper().replace("-", "_"): str(value)
            for name, value in settings.items()}


class Served:
    """A server on a port of its own; gone, with all that it started, when the block ends."""

    def __init__(self, *flags, wait=True, environment=None, settings=None, model=MODEL,
                 verb="serve", prefix=()):
        """`settings` are what has no flag, by name. Without `wait` it may not even listen yet.
        `prefix` is a command that executes the one behind it."""
        self.folder = tempfile.TemporaryDirectory()
        self.address_file = os.path.join(self.folder.name, "address")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        command = [*prefix, PROGRAM, verb, model, "--device", "cpu", "--threads", "2", "--port", "0",
                   "--address-file", self.address_file, "--served-model-name", "m", *flags]
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log,
                                        env={**os.environ, **(environment or {}),
                                             **variables(settings or {})})
        self.port = None
        if wait:
            try:
                self.wait_for_address()
                self.wait_until_ready()
            except BaseException:
                self.close()
                raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def text_of_log(self):
        self.log.flush()
        with open(self.log.name) as file:
            return file.read()

    def wait_for_address(self):
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.address_file):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("no server: " + self.text_of_log())
            time.sleep(0.01)
        with open(self.address_file) as file:
            self.address = file.read().strip()
        if not self.address.startswith("unix:"):
            self.port = int(self.address.rsplit(":", 1)[1])

    def wait_until_ready(self):
        end = time.monotonic() + PATIENCE
        while self.get("/readyz").status != 200:
            if time.monotonic() > end:
                raise AssertionError("never ready: " + self.text_of_log())
            time.sleep(0.02)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        return self.request("POST", path, body, headers)

    def metric(self, name, **labels):
        """The sum of all samples of this name that have these labels."""
        total = 0
        for line in self.get("/metrics").body.decode().splitlines():
            if not line.startswith((name + "{", name + " ")):
                continue
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def encode(self, data, query="output.format=safetensors", headers=None):
        """The bytes of one item in the body."""
        return self.post("/v1/encode?" + query, data,
                         {"Content-Type": "application/octet-stream", **(headers or {})})

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE)


def memory_bytes(server, name="VmRSS"):
    """What the process holds in memory; by another name of /proc, its peak ("VmHWM")."""
    with open(f"/proc/{server.process.pid}/status") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no " + name)


def wait_until(holds):
    """Returns once holds() is true; fails if that takes too long."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it never came to hold")
        time.sleep(0.01)


def png(width, height, pixels=True):
    """A grey PNG; without pixels, one that only says that it has some."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    size = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height) if pixels else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", rows) +
            chunk(b"IEND", b""))


def tensors_of(data):
    """Name -> (dtype, shape, bytes) of a safetensors file."""
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    start = 8 + size
    return {name: (entry["dtype"], entry["shape"],
                   data[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def encoded_by_program(names, dtype, folder, *flags):
    """What `fovea encode` makes of images: name -> (dtype, shape, bytes)."""
    output = os.path.join(folder, f"rows_{dtype}.safetensors")
    subprocess.run([PROGRAM, "encode", MODEL, *(os.path.join(MODEL, "images", n) for n in names),
                    "--device", "cpu", "--dtype", dtype, "--output", output, "--no-table",
                    *flags], check=True)
    return tensors_of(read(output))


def payload_of_npy(data):
    size, = struct.unpack_from("<H", data, 8)
    return data[10 + size:]


def payload_of_torch(text):
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(text, validate=True)))
    return archive.read("archive/data/0")


def in_parallel(count, call):
    """The results of call(0) ... call(count - 1), from as many threads."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


main = unittest.main
