"""A hub of one model, as the pages of its API describe it, on loopback."""

import contextlib
import hashlib
import http.server
import json
import threading

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = ".safetensors"


def etag(name, content):
    if name.endswith(LARGE):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def log_message(self, *_):
        pass

    def _answer(self, with_body):
        hub = self.server.hub
        path = self.path.split("?")[0]
        hub.requests.append((self.command, path))
        if path == f"/api/models/{hub.name}/tree/{COMMIT}":
            return self._send(200, json.dumps(hub.tree()).encode(), {"Content-Type": "application/json"}, with_body)
        if path.startswith(f"/api/models/{hub.name}"):
            listing = {"id": hub.name, "sha": COMMIT, "siblings": [{"rfilename": name} for name in hub.files]}
            return self._send(200, json.dumps(listing).encode(), {"Content-Type": "application/json"}, with_body)
        kind, _, name = path.partition(f"/resolve/{COMMIT}/")
        kind, _, name = (kind, _, name) if name else path.partition("/resolve/main/")
        if kind == "/storage":
            return self._send_file(hub.files[name], with_body)
        if kind != f"/{hub.name}" or name not in hub.files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"}, with_body)
        content = hub.files[name]
        facts = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag(name, content)}"'}
        if not name.endswith(LARGE):
            return self._send(200, content, facts, with_body)
        facts.update({"X-Linked-Etag": facts["ETag"], "X-Linked-Size": str(len(content))})
        facts["Location"] = f"http://localhost:{self.server.server_port}/storage/resolve/{COMMIT}/{name}"
        return self._send(302, b"", facts, with_body)

    def _send_file(self, content, with_body):
        begin = int(self.headers.get("Range", "bytes=0-")[len("bytes=") :].split("-")[0])
        last = len(content) - 1
        headers = {"Content-Range": f"bytes {begin}-{last}/{len(content)}"} if begin else {}
        self._send(206 if begin else 200, content[begin:], headers, with_body)

    def _send(self, status, body, headers, with_body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


class Hub:
    """`files` by name; `requests` are those so far, (method, path)."""

    def __init__(self, name, files):
        self.name, self.files, self.requests = name, files, []

    def tree(self):
        entries = []
        for name, content in self.files.items():
            digest, size = etag(name, content), len(content)
            entries.append({"type": "file", "path": name, "size": size, "oid": digest[:40]})
            if name.endswith(LARGE):
                entries[-1]["lfs"] = {"oid": digest, "size": size, "pointerSize": 134}
        return entries

    def downloads(self):
        return [path for method, path in self.requests if method == "GET" and "/resolve/" in path]


@contextlib.contextmanager
def hub_of(name, files):
    """A Hub with its `url`, which is gone when the block ends."""
    hub = Hub(name, files)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.hub = hub
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
