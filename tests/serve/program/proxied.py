"""A running `fovea proxy`, and chats with it."""
import http.client
import json

from served import PATIENCE, PHOTO, Served, data_url, image, wait_until

CHAT = "/v1/chat/completions"


def proxy(*models, flags=(), settings=None, up=None, prefix=()):
    """A proxy that has found as many of its language models up as there are, or `up`."""
    urls = [part for model in models for part in ("--llm", model.url)]
    server = Served(*urls, *flags, verb="proxy", prefix=prefix,
                    settings={"llm-health-interval": 0.1, **(settings or {})})
    try:
        wait_until(lambda: server.metric("fovea_llm_up") == (len(models) if up is None else up))
    except BaseException:
        server.close()
        raise
    return server


def picture(name=PHOTO):
    return {"type": "image_url", "image_url": {"url": data_url(image(name))}}


def chat(*parts, stream=True, **members):
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"model": "m", "messages": [{"role": "user", "content": content}], "stream": stream,
            **members}


def events(text):
    return [json.loads(line[6:]) if line != "data: [DONE]" else None
            for line in text.decode().split("\n\n") if line]


def words(text):
    """What an event stream says; its last word must be followed by [DONE]."""
    found = events(text)
    assert found[-1] is None, text
    return "".join(event["choices"][0]["delta"]["content"] for event in found[:-1]).split()


def wait_for_metric(server, name, value, **labels):
    wait_until(lambda: server.metric(name, **labels) == value)


class Open:
    """A request whose answer is read piece by piece."""

    def __init__(self, server, body, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        self.connection.request("POST", CHAT, json.dumps(body), headers or {})

    def answer(self):
        self.reply = self.connection.getresponse()
        return self.reply

    def read(self):
        """The rest of the answer, and then the end of the connection."""
        text = (getattr(self, "reply", None) or self.answer()).read()
        self.close()
        return text

    def close(self):
        self.connection.close()
