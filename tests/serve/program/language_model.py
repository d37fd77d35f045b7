"""A stand-in for the server of a language model: says back what it was sent, word by word.

usage: language_model.py NAME [SECONDS_BETWEEN_WORDS]; writes its port to stdout
"""
import http.server
import json
import sys
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        model = self.server.model
        if self.path == "/health":
            return self.reply(model.health, b"", "text/plain")
        if self.path.startswith("/v1/models"):
            model.note(self, None)
            return self.reply(200, json.dumps({"path": self.path, "server": model.name}).encode())
        self.reply(404, b'{"error":{"message":"no such route"}}')

    def do_POST(self):
        model = self.server.model
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        model.note(self, request)
        if model.behaviour is not None and model.behaviour(self, request):
            return
        words = model.words(request)
        if not request.get("stream"):
            time.sleep(model.pause * len(words))
            text = " ".join(words)
            return self.reply(200, json.dumps({"choices": [{"message": {"content": text}}]}).encode())
        self.begin_stream()
        for word in words:
            self.send_event({"choices": [{"delta": {"content": word + " "}}]})
            time.sleep(model.pause)
        self.send_chunk(b"data: [DONE]\n\n")
        self.send_chunk(b"")

    def reply(self, status, body, kind="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def send_event(self, event):
        self.send_chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

    def is_left(self):
        """Whether the other side has closed; waits until it has, a minute at most."""
        self.connection.settimeout(60)
        return self.connection.recv(1) == b""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        pass  # clients leave


class LanguageModel:
    """`behaviour(handler, request)` may answer in its place, and says whether it has."""

    def __init__(self, name="llm", pause=0.0, behaviour=None, address="127.0.0.1", port=0):
        self.name, self.pause, self.behaviour, self.health = name, pause, behaviour, 200
        self.lock, self.requests, self.headers = threading.Lock(), [], []
        self.server = Server((address, port), Handler)
        self.server.model = self
        self.port = self.server.server_address[1]
        self.url = f"http://{address}:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, handler, request):
        with self.lock:
            self.requests.append(request)
            self.headers.append(handler.headers)

    def words(self, request):
        """Who answers, what was asked, and how many of each kind of part came."""
        said = [self.name]
        if "prompt" in request:
            return said + [request["prompt"]]
        for message in request["messages"]:
            content = message["content"]
            if isinstance(content, str):
                said.append(content)
                continue
            for part in content:
                kind = part.get("type")
                said.append(part["text"] if kind == "text" else f"<{kind}:{part.get('uuid', '')[:8]}>")
        return said + ["end"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    model = LanguageModel(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    print(model.port, flush=True)
    threading.Event().wait()
