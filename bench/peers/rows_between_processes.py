#!/usr/bin/env python3
"""How long rows of `fovea serve` take to reach another process of the same host, which is this one.

    python3 bench/peers/rows_between_processes.py FOVEA bench/configs/qwen3_vl_30b_a3b --device cuda:0
    python3 bench/peers/rows_between_processes.py FOVEA bench/configs/qwen3_vl_2b --device cpu --layers 3
    python3 bench/peers/rows_between_processes.py --lender build/release/bench/fovea_bench_lending_server --uds

Starts a server with random weights, has it encode --images pictures of 440 patches (352 x 320, patches of 16), and
then takes their rows from it --repetitions times in each way, in turns:

  socket        as many bytes from a process that does nothing but send them: what the kernel takes
  HTTP          GET /v1/cache/{key} for one after the other over a connection that is kept, into memory of this process
  HTTP xN       the same over N connections with a thread each
  HTTP to GPU   HTTP, then one copy to a GPU of this process
  lent, once    POST /v1/cache/lend for all over a connection of its own, and the end of that: lending without a copy
  device_rows   Client.device_rows() for all: lending, copies on the GPU into fresh tensors, and waiting for these
    request     what of that is not the copies: the request over a connection that is kept, and what its reply says
    copy        the copies, and waiting for these

All but the first three need a GPU, and device_rows torch and the package fovea-encoder (PYTHONPATH=build/.../python);
there all bytes are compared once. --uds has the server listen on a unix socket, in place of loopback. --layers keeps
so many layers of the tower, so that a CPU makes rows of the same size soon. Where there is no GPU, --lender measures
what lending takes without the copies: with a server that lends memory of a CPU, fovea_bench_lending_server.

Prints median, 90th percentile and least milliseconds as a table, then as one line of JSON. Measure with a server that
is optimised: presets `ci` and those of sanitizers build it without. Standard library only, but for what is said above.
"""

import argparse
import base64
import contextlib
import http.client
import json
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

WIDTH, HEIGHT = 352, 320  # 22 x 20 patches of 16
PATIENCE = 1800  # seconds for a CPU that encodes
SENDER = """
import os, socket, sys
connection, data = socket.socket(fileno=int(sys.argv[1])), os.urandom(int(sys.argv[2]))
while connection.recv(1):
    connection.sendall(data)
"""


def picture(seed):
    """A PNG with an edge at a place of its own."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes((x * (seed + 3) + y * c) % 251 for x in range(WIDTH) for c in (1, 2, 3)) for y in range(HEIGHT)
    )
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def shallow(model, layers, folder):
    """The configuration with fewer layers, and rows of the same width."""
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    vision = config["vision_config"]
    levels = len(vision["deepstack_visual_indexes"])
    if layers < levels:
        raise SystemExit(f"--layers: expected at least {levels}, one for each deepstack level, got {layers}")
    vision["depth"], vision["deepstack_visual_indexes"] = layers, list(range(levels))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@contextlib.contextmanager
def server(arguments, folder):
    """The address of a server that is ready."""
    address = folder / "address"
    model = shallow(arguments.model, arguments.layers, folder) if arguments.layers else arguments.model
    command = [arguments.fovea, "serve", str(model), "--load-format", "dummy", "--device", arguments.device]
    command += ["--uds", str(folder / "socket")] if arguments.uds else ["--port", "0"]
    command += ["--address-file", str(address)]
    if arguments.device != "cpu":
        command += ["--encoder-device-cache-size", "1Gi", "--lend-rows", "4"]
    with open(folder / "log", "w+b") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while not (address.exists() and is_ready(address.read_text().strip())):
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("no server: " + (folder / "log").read_text())
                time.sleep(0.05)
            yield address.read_text().strip()
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def lender(arguments, folder):
    """The address of a server that lends what no other process can map."""
    command = [arguments.lender, str(arguments.images), *([str(folder / "socket")] if arguments.uds else [])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()  # which ends it
        process.wait()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def connect(address):
    if address.startswith("unix:"):
        return UnixConnection(address.removeprefix("unix:"))
    return http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)


def is_ready(address):
    try:
        connection = connect(address)
        connection.request("GET", "/readyz")
        reply = connection.getresponse()
        connection.close()
        return reply.status == 200
    except (OSError, http.client.HTTPException):
        return False  # it ends, and its log says why


def publish(address, count):
    """Has the server encode pictures, one request each as towers on CPUs are slow. Returns their keys and the
    bytes of their rows."""
    connection = connect(address)
    keys, total = [], 0
    for i in range(count):
        url = "data:image/png;base64," + base64.b64encode(picture(i)).decode()
        part = {"type": "image_url", "image_url": {"url": url}, "uuid": f"picture-{i}"}
        body = json.dumps({"messages": [{"role": "user", "content": [part]}]})
        headers = {"Content-Type": "application/json", "X-Request-Timeout-Ms": str(PATIENCE * 1000)}
        connection.request("POST", "/v1/chat/completions", body, headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        if reply.status != 200:
            raise SystemExit(f"the server refused a picture: {answer}")
        rows = answer["ec_transfer_params"][f"picture-{i}"]["fovea"]
        if rows["rows"] != 110:
            raise SystemExit(f"expected 110 rows of 440 patches, got {rows['rows']}: another patch size")
        keys.append(f"picture-{i}")
        total += rows["rows"] * rows["width"] * (4 if rows["dtype"] == "float32" else 2)
    return keys, total


class Socket:
    """Bytes from another process over a socket of the kind that the server has."""

    def __init__(self, address, size):
        self.memory = memoryview(bytearray(size))
        if address.startswith("unix:"):
            self.here, there = socket.socketpair()
        else:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.here = socket.create_connection(listener.getsockname())
                there = listener.accept()[0]
        command = [sys.executable, "-c", SENDER, str(there.fileno()), str(size)]
        self.process = subprocess.Popen(command, pass_fds=[there.fileno()])
        there.close()

    def __call__(self):
        self.here.send(b"x")
        filled = 0
        while filled < len(self.memory):
            filled += self.here.recv_into(self.memory[filled:])

    def close(self):
        self.here.close()
        self.process.wait()


class OverHttp:
    """Files of rows over connections that are kept, into memory that is kept."""

    def __init__(self, address, keys, connections=1):
        self.keys = keys
        self.connections = [connect(address) for _ in range(connections)]
        self.files = {key: bytearray() for key in keys}

    def fetch(self, connection, keys):
        for key in keys:
            connection.request("GET", f"/v1/cache/{key}")
            reply = connection.getresponse()
            if reply.status != 200:
                raise SystemExit(f"GET of {key}: status {reply.status}")
            if len(self.files[key]) != reply.length:
                self.files[key] = bytearray(reply.length)
            view, filled = memoryview(self.files[key]), 0
            while filled < len(view):
                filled += reply.readinto(view[filled:])
            reply.read()

    def __call__(self):
        count = len(self.connections)
        if count == 1:
            return self.fetch(self.connections[0], self.keys)
        threads = [
            threading.Thread(target=self.fetch, args=(connection, self.keys[i::count]))
            for i, connection in enumerate(self.connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rows(self, key):
        """The elements, without the header of the file."""
        (length,) = struct.unpack_from("<Q", self.files[key])
        return memoryview(self.files[key])[8 + length :]


def lending_once(address, keys):
    body = json.dumps({"keys": keys})

    def lend():
        connection = connect(address)
        connection.request("POST", "/v1/cache/lend", body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        line = reply.readline()
        if reply.status != 200:
            raise SystemExit(f"the server lends nothing: {line.decode()}")
        connection.close()
        reply.close()

    return lend


class DeviceRows:
    """Client.device_rows() for all. `parts` are the milliseconds of a call that are the request, and the copies."""

    def __init__(self, client, keys):
        self.client, self.keys = client, keys
        self.parts = {"request": [], "copy": []}
        self.copy, client._mappings.copy = client._mappings.copy, self.timed_copy

    def timed_copy(self, lent):
        begin = time.perf_counter()
        tensors = self.copy(lent)
        self.parts["copy"].append(1000 * (time.perf_counter() - begin))
        return tensors

    def __call__(self):
        begin = time.perf_counter()
        tensors = self.client.device_rows(self.keys)
        took = 1000 * (time.perf_counter() - begin)
        self.parts["request"].append(took - self.parts["copy"][-1])
        return tensors


def ways_on_gpu(address, keys, device):
    """What is measured on a GPU, and what closes it."""
    import torch

    from fovea_encoder.client import Client

    client = Client(address)
    over_http = OverHttp(address, keys)

    def to_gpu():
        over_http()
        rows = bytearray().join(over_http.rows(key) for key in keys)
        tensor = torch.frombuffer(rows, dtype=torch.uint8).to(device)
        torch.cuda.synchronize()
        return tensor

    def compare():
        over_http()
        for key, tensor in client.device_rows(keys).items():
            if tensor is None:
                raise SystemExit(f"{key} is not in memory of the GPU")
            here = torch.frombuffer(over_http.rows(key), dtype=torch.uint8)
            if not torch.equal(tensor.contiguous().view(torch.uint8).flatten().cpu(), here):
                raise SystemExit(f"{key}: other bytes than over HTTP")

    compare()
    once = lending_once(address, keys)
    return {"HTTP to GPU": to_gpu, "lent, once": once, "device_rows": DeviceRows(client, keys)}, client.close


def ways_without_gpu(address, keys):
    """What is measured of lending alone, and what closes it."""
    from fovea_encoder.client import Client

    client = Client(address)
    client._mappings.copy = lambda lent: {place.key: place for place in lent.places}
    if len(client.device_rows(keys)) != len(keys) or None in client.device_rows(keys).values():
        raise SystemExit("not all rows are lent")
    return {"lent, once": lending_once(address, keys), "device_rows": DeviceRows(client, keys)}, client.close


def measure(ways, repetitions):
    """Milliseconds of each way and its parts, in turns, behind three that do not count."""
    times = {name: [] for name in ways}
    for repetition in range(-3, repetitions):
        for name, way in ways.items():
            begin = time.perf_counter()
            result = way()
            took = 1000 * (time.perf_counter() - begin)
            del result  # memory of a GPU is given back behind the time
            if repetition >= 0:
                times[name].append(took)
    for way in list(ways.values()):
        for name, taken in getattr(way, "parts", {}).items():
            times[name] = taken[-repetitions:]
    return {
        name: {
            "median_ms": statistics.median(taken),
            "p90_ms": sorted(taken)[int(0.9 * (len(taken) - 1))],
            "least_ms": min(taken),
        }
        for name, taken in times.items()
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fovea", nargs="?", help="the program")
    parser.add_argument("model", nargs="?", help="folder with a config.json of Qwen3-VL")
    parser.add_argument("--lender", help="fovea_bench_lending_server, in place of program and model")
    parser.add_argument("--device", default="cuda:0", help="of the server, cpu or cuda:N (default: %(default)s)")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--connections", type=int, default=4, help="at a time, in 'HTTP xN'")
    parser.add_argument("--only", default="", metavar="WAY", help="one call of it after the other, no turns")
    parser.add_argument("--uds", action="store_true", help="a unix socket in place of loopback")
    parser.add_argument("--layers", type=int, default=0, help="of the tower (default: all)")
    arguments = parser.parse_args()
    if bool(arguments.lender) == bool(arguments.model):
        parser.error("expected FOVEA and MODEL, or --lender")
    return arguments


def print_table(arguments, times, total):
    kind = "a unix socket" if arguments.uds else "loopback"
    size = f"{total / 1e6:.1f} MB, " if total else ""
    print(f"{arguments.images} images of 440 patches, {size}{arguments.repetitions} repetitions, {kind}")
    print(f"{'':14}{'median ms':>11}{'p90 ms':>9}{'least ms':>10}{'GB/s':>7}")
    for name, taken in times.items():
        is_part = name in ("request", "copy")
        rate = f"{total / taken['median_ms'] / 1e6:7.1f}" if total and not is_part and name != "lent, once" else ""
        label = "  " + name if is_part else name
        print(f"{label:14}{taken['median_ms']:11.3f}{taken['p90_ms']:9.3f}{taken['least_ms']:10.3f}{rate}")
    device = None if arguments.lender else arguments.device
    asked = {"images": arguments.images, "device": device, "uds": arguments.uds}
    print(json.dumps({**asked, "bytes": total, "times": times}))


def measure_lender(arguments, folder):
    with lender(arguments, folder) as address:
        ways, close = ways_without_gpu(address, [f"picture-{i}" for i in range(arguments.images)])
        times = measure(ways, arguments.repetitions)
        close()
    print_table(arguments, times, 0)


def main():
    arguments = parse_arguments()
    if arguments.lender:
        with tempfile.TemporaryDirectory() as folder:
            return measure_lender(arguments, pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder, server(arguments, pathlib.Path(folder)) as address:
        keys, total = publish(address, arguments.images)
        raw = Socket(address, total)
        ways = {
            "socket": raw,
            "HTTP": OverHttp(address, keys),
            f"HTTP x{arguments.connections}": OverHttp(address, keys, arguments.connections),
        }
        close = lambda: None  # noqa: E731
        if arguments.device != "cpu":
            more, close = ways_on_gpu(address, keys, arguments.device)
            ways.update(more)
        if arguments.only and arguments.only not in ways:
            raise SystemExit(f"--only: expected one of {', '.join(ways)}, got {arguments.only}")
        times = measure(
            {name: way for name, way in ways.items() if arguments.only in ("", name)}, arguments.repetitions
        )
        close()
        raw.close()
    print_table(arguments, times, total)


if __name__ == "__main__":
    main()
