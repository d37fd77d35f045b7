"""Servers for the tests of clients: `fovea serve`, and one that does what a test says."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE = 120  # seconds that a slow machine may take for anything


@contextlib.contextmanager
def served(program, model, *flags, pid=False, device="cpu"):
    """The URL of a `fovea serve` that is ready, with `pid` that of its process, too; it is gone when
    the block ends."""
    from fovea_encoder.client import Client

    with tempfile.TemporaryDirectory() as folder:
        address = os.path.join(folder, "address")
        command = [program, "serve", model, "--device", device, "--threads", "2", "--port", "0"]
        with open(os.path.join(folder, "log"), "w+b") as log:
            process = subprocess.Popen(
                [*command, "--address-file", address, *flags], stdout=log, stderr=log
            )
            try:
                url = _address(process, address, log)
                with Client(url, timeout=PATIENCE) as client:
                    client.info()  # waits for the model
                yield (url, process.pid) if pid else url
            finally:
                process.kill()
                process.wait()


def _address(process, file, log):
    end = time.monotonic() + PATIENCE
    while not os.path.exists(file):
        if process.poll() is not None or time.monotonic() > end:
            log.seek(0)
            raise AssertionError("no server: " + log.read().decode())
        time.sleep(0.01)
    with open(file) as text:
        return text.read().strip()


def reply(status, document=None, headers="", body=None):
    """Bytes of a reply."""
    body = json.dumps(document or {}).encode() if body is None else body
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Scripted:
    """A server on loopback that gives one reply of `script` to each request; None closes the
    connection in place of a reply, and "wait" keeps it open. Replies with `Connection: close` end a
    connection, too. What stands in a tuple answers an empty line in place of a request."""

    def __init__(self, *script, close_after_reply=False):
        self._script = list(script)
        self._close = close_after_reply
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.url = "http://127.0.0.1:%d" % self._socket.getsockname()[1]
        self.requests = []
        self.connections = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._open:
            with contextlib.suppress(OSError):  # it is closed
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._thread.join()

    def _serve(self):
        while self._script:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            with contextlib.suppress(OSError), connection.makefile("rb") as lines:
                self._answer(connection, lines)
            if self._script or self._close:
                connection.close()

    def _answer(self, connection, lines):
        while self._script:
            head = lines.readline()
            if not head:
                return
            if isinstance(self._script[0], tuple):
                if head != b"\r\n":
                    return
                self._script[0] = self._script[0][0]
            length = 0
            while head.strip() and (line := lines.readline()).strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            lines.read(length)
            if head.strip():
                self.requests.append(head.decode().split(" ")[1])
            answer = self._script.pop(0)
            if answer is None:
                connection.close()
                lines.close()
                return connection.detach()
            if answer == "wait":
                return
            connection.sendall(answer)
            if self._close:
                return
