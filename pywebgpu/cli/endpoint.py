"""A language model behind the addresses and JSON of OpenAI's API: chat, completions, embeddings, and streams of them.

What a request asks for that is not computed here is refused, not left out.
Source: platform.openai.com/docs/api-reference.
"""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pywebgpu import errors
from pywebgpu.hosts.serve import Requests, Server
from pywebgpu.models.generation import Sampling
from pywebgpu.models.service import Request, Service
from pywebgpu.support import documents

if TYPE_CHECKING:
    from pywebgpu.models.chat import Answer
    from pywebgpu.models.embedding import TextEncoder

LARGEST = 1 << 22  # bytes of a request's body
INPUTS = 2048  # texts of one request for embeddings
# What a request may ask for, and what it may say of other things; others are refused.
COMMON = {"model", "max_tokens", "temperature", "top_p", "stop", "seed", "stream", "stream_options", "user"}
OWN = {"top_k", "min_p", "repetition_penalty"}
KNOWN = {
    "/v1/chat/completions": COMMON | OWN | {"messages", "max_completion_tokens", "metadata", "store"},
    "/v1/completions": COMMON | OWN | {"prompt"},
    "/v1/embeddings": {"model", "input", "encoding_format", "user"},
}
# Values that ask for nothing.
NEUTRAL: dict[str, Any] = {
    "n": 1,
    "best_of": 1,
    "echo": False,
    "suffix": "",
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "logit_bias": {},
    "logprobs": False,
    "tools": [],
    "response_format": {"type": "text"},
}


class Refusal(Exception):
    """A request that gets no answer, and why."""

    def __init__(self, text: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, code: str | None = None) -> None:
        super().__init__(text)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True)
class Models:
    """What is served, under which names. Only one thread at a time computes vectors."""

    name: str
    service: Service
    encoder_name: str = ""
    encoder: TextEncoder | None = None
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> list[str]:
        return [self.name, *([self.encoder_name] if self.encoder else [])]


def start(port: int, models: Models) -> Server:
    """A server of this machine that listens. Raises OSError for a port that is taken."""
    return Server(("127.0.0.1", port), partial(Handler, models))


class Handler(Requests):
    """GET of the list of models, POST of requests in JSON."""

    def __init__(self, models: Models, *rest: object) -> None:
        self.models = models
        super().__init__(*rest)  # type: ignore[arg-type]

    def wrong_body(self) -> tuple[HTTPStatus, str] | None:
        length = self.headers.get("Content-Length", "" if self.command == "POST" else "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            return HTTPStatus.LENGTH_REQUIRED, "A body has a Content-Length"
        if len(length) > 10 or int(length) > LARGEST:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A body has at most {LARGEST} bytes"
        # Pages of other sites may send text without asking first, and JSON not.
        kind = self.headers.get_content_type() if self.command == "POST" else "application/json"
        if kind != "application/json" or (self.command != "POST" and length != "0"):
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A request is POST with application/json, or GET without a body"
        return None

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_POST(self) -> None:
        self._respond(self._post)

    def _respond(self, answer: Callable[[str], None]) -> None:
        with self.server.answering(self.connection) as is_free:
            try:
                if not is_free:
                    raise Refusal("too many requests are being answered", HTTPStatus.SERVICE_UNAVAILABLE)
                answer(self.path.partition("?")[0])
            except Refusal as refusal:
                self._json(_error(str(refusal), "invalid_request_error", refusal.code), refusal.status)
            except errors.PywebgpuError as error:  # Such as a GPU that went away.
                self._json(_error(str(error), "server_error"), HTTPStatus.INTERNAL_SERVER_ERROR)

    def _get(self, path: str) -> None:
        name = path.removeprefix("/v1/models/")
        if path == "/v1/models":
            self._json({"object": "list", "data": [_model(known) for known in self.models.names]})
        elif name in self.models.names:
            self._json(_model(name))
        else:
            raise Refusal(f"there is no {path}", HTTPStatus.NOT_FOUND)

    def _post(self, path: str) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path not in KNOWN:
            raise Refusal(f"there is no {path}", HTTPStatus.NOT_FOUND)
        facts = _parse(body, path)
        own = self.models.encoder_name if path == "/v1/embeddings" else self.models.name
        if facts.get("model") != own or not own:
            text = f"there is no model {facts.get('model')!r} for this"
            raise Refusal(text, HTTPStatus.NOT_FOUND, "model_not_found")
        if path == "/v1/embeddings":
            self._json(_embeddings(facts, self.models))
        else:
            self._generate(facts, is_chat=path == "/v1/chat/completions")

    def _generate(self, facts: dict[str, Any], *, is_chat: bool) -> None:
        try:
            request = _request(facts, self.models.service, is_chat=is_chat)
            answer, pieces = self.models.service.answer(request)
        except ValueError as error:
            raise Refusal(str(error)) from None
        reply = _Reply(self.models.name, is_chat, len(request.ids), answer)
        with closing(pieces):  # Its turn ends also where the client has left.
            if facts.get("stream"):
                self._stream(reply, pieces, has_usage=bool(facts.get("stream_options", {}).get("include_usage")))
            else:
                self._json(reply.whole("".join(pieces)))

    def _stream(self, reply: _Reply, pieces: Iterable[str], *, has_usage: bool) -> None:
        """Server-sent events, a chunk each."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for piece in pieces:
                self._event(reply.part(piece))
            self._event(reply.part("", is_last=True))
            if has_usage:
                self._event({**reply.part(""), "choices": [], "usage": reply.usage()})
        except errors.PywebgpuError as error:
            self._event(_error(str(error), "server_error"))
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, value: object) -> None:
        self._chunk(f"data: {json.dumps(value)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _json(self, value: object, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class _Reply:
    """The JSON of an answer, whole or in parts."""

    def __init__(self, model: str, is_chat: bool, n_prompt: int, answer: Answer) -> None:
        self.is_chat, self.n_prompt, self.answer = is_chat, n_prompt, answer
        kind = "chat.completion" if is_chat else "text_completion"
        name = f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._head = {"id": name, "object": kind, "created": int(time.time()), "model": model}
        self._is_first = True

    def whole(self, text: str) -> dict[str, Any]:
        content = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": self._reason()}
        return {**self._head, "choices": [choice], "usage": self.usage()}

    def part(self, text: str, *, is_last: bool = False) -> dict[str, Any]:
        delta: dict[str, Any] = {"role": "assistant"} if self._is_first else {}
        self._is_first = False
        delta |= {} if is_last else {"content": text}
        content: dict[str, Any] = {"delta": delta} if self.is_chat else {"text": text}
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": self._reason() if is_last else None}
        kind = "chat.completion.chunk" if self.is_chat else "text_completion"
        return {**self._head, "object": kind, "choices": [choice]}

    def usage(self) -> dict[str, int]:
        n_answer = self.answer.tokens
        return {
            "prompt_tokens": self.n_prompt,
            "completion_tokens": n_answer,
            "total_tokens": self.n_prompt + n_answer,
        }

    def _reason(self) -> str:
        return "length" if self.answer.is_cut else "stop"


# Requests


def _parse(body: bytes, path: str) -> dict[str, Any]:
    """The fields of a request, without those that ask for nothing. Raises: Refusal."""
    try:
        facts = documents.parse(body)
    except documents.Malformed as error:
        raise Refusal(f"the body is no JSON: {error}") from None
    if not isinstance(facts, dict):
        raise Refusal("the body must be an object")
    facts = {name: value for name, value in facts.items() if value is not None}
    for name, value in list(facts.items()):
        if name in NEUTRAL and value == NEUTRAL[name]:
            del facts[name]
        elif name not in KNOWN[path]:
            raise Refusal(f"{name} is {documents.shown(value)}, which is not supported here", code="unsupported")
    return facts


def _request(facts: Mapping[str, Any], service: Service, *, is_chat: bool) -> Request:
    """What is asked for. Raises: Refusal; ValueError for numbers out of their ranges."""
    tokenizer = service.tokenizer
    ids = tokenizer.chat(_messages(facts.get("messages"))) if is_chat else _prompt(facts.get("prompt"), service)
    most = facts.get("max_completion_tokens", facts.get("max_tokens"))
    seed = facts.get("seed")
    for name, value in (("max_tokens", most), ("seed", seed), ("top_k", facts.get("top_k"))):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise Refusal(f"{name} is {documents.shown(value)}; a whole number is needed")
    if seed is not None and not 0 <= seed < 1 << 63:
        raise Refusal(f"seed is {seed}, out of its range")
    for name, kind in (("stream", bool), ("stream_options", dict)):
        if not isinstance(facts.get(name, kind()), kind):
            raise Refusal(f"{name} is {documents.shown(facts[name])}, which is of another type")
    stop = facts.get("stop", [])
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(text, str) for text in stop):
        raise Refusal("stop must be a text or a list of texts")
    sampling = Sampling(
        _number(facts, "temperature", 1.0),
        facts.get("top_k", 0),
        _number(facts, "top_p", 1.0),
        _number(facts, "min_p", 0.0),
        _number(facts, "repetition_penalty", 1.0),
    )
    return Request(ids, most, sampling, stop, seed)


def _number(facts: Mapping[str, Any], name: str, default: float) -> float:
    value = facts.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(f"{name} is {documents.shown(value)}; a number is needed")
    return value


def _messages(messages: object) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise Refusal("messages must be a list of at least one message")
    return [_message(message) for message in messages]


def _message(message: object) -> dict[str, str]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise Refusal("a message has a role and a content")
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        raise Refusal("the content of a message must be text")
    return {"role": message["role"], "content": "".join(map(str, texts))}


def _prompt(prompt: object, service: Service) -> list[int]:
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return service.tokenizer.encode(prompt)
    if not isinstance(prompt, list) or not all(
        type(token) is int and 0 <= token < service.vocab_size for token in prompt
    ):
        raise Refusal("prompt must be one text, or the numbers of its tokens")
    return prompt


def _embeddings(facts: Mapping[str, Any], models: Models) -> dict[str, Any]:
    """The vectors of texts. Raises: Refusal."""
    assert models.encoder is not None
    texts = facts.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not 1 <= len(texts) <= INPUTS or not all(isinstance(text, str) for text in texts):
        raise Refusal(f"input must be a text, or a list of 1 to {INPUTS} texts")
    form = facts.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Refusal(f"encoding_format is {documents.shown(form)}; float or base64 is needed")
    with models.turn:
        rows = models.encoder.encode(texts).tolist()
    n_tokens = sum(models.encoder.n_tokens(text) for text in texts)
    data = [
        {"object": "embedding", "index": index, "embedding": row if form == "float" else _packed(row)}
        for index, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": data, "model": models.encoder_name, "usage": usage}


def _packed(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def _error(text: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "pywebgpu"}
