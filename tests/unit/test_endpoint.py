"""The server of models, with the package openai as its client: answers, streams, vectors, and what is refused."""

import http.client
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from pywebgpu import errors
from pywebgpu.cli import endpoint
from pywebgpu.cli import serve as command
from pywebgpu.hosts.serve import Server, address
from pywebgpu.models.bert import Bert, BertConfig
from pywebgpu.models.embedding import TextEncoder
from pywebgpu.models.generation import generate
from pywebgpu.models.llama import Llama
from pywebgpu.models.service import Service
from pywebgpu.models.tokenizer import Tokenizer
from pywebgpu.models.wordpiece import WordPiece
from tests.cases import spelling, text_encoders

MESSAGES: Any = [{"role": "user", "content": "hello"}]
WORDS = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "hello": 5, "world": 6}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Llama, Tokenizer]:
    file = spelling.write(spelling.model(), tmp_path_factory.mktemp("models") / "a.gguf")
    return Llama.from_file(file, "cpu"), Tokenizer.from_file(file)


@pytest.fixture(scope="module")
def server(model: tuple[Llama, Tokenizer]) -> Iterator[Server]:
    encoder = TextEncoder(Bert(BertConfig(**text_encoders.SIZES)).eval(), WordPiece(WORDS))  # type: ignore[arg-type]
    with endpoint.start(0, endpoint.Models("small", Service(*model), "vectors", encoder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address(server)}v1", api_key="none", max_retries=0) as client:
        yield client


def _expected(model: tuple[Llama, Tokenizer], ids: list[int], count: int) -> str:
    return model[1].decode(list(generate(model[0], ids, max_new_tokens=count, stop=model[1].stop)))


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [entry.id for entry in client.models.list()] == ["small", "vectors"]
    assert client.models.retrieve("small").id == "small"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("large")


def test_a_chat_is_answered(client: openai.OpenAI, model: tuple[Llama, Tokenizer]) -> None:
    ids = model[1].chat(MESSAGES)
    expected = _expected(model, ids, 12)
    reply = client.chat.completions.create(model="small", messages=MESSAGES, temperature=0, max_completion_tokens=12)
    assert reply.choices[0].message.content == expected
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].finish_reason == ("length" if len(expected) == 12 else "stop")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (len(ids), len(expected))
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
    again = client.chat.completions.create(model="small", messages=parts, temperature=0, max_tokens=12)
    assert again.choices[0].message.content == expected


def test_a_chat_is_streamed(client: openai.OpenAI, model: tuple[Llama, Tokenizer]) -> None:
    expected = _expected(model, model[1].chat(MESSAGES), 8)
    stream = client.chat.completions.create(
        model="small",
        messages=MESSAGES,
        temperature=0,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == expected
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]].count(None) == len(chunks) - 2
    assert chunks[-2].choices[0].finish_reason is not None
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(expected)
    assert len(chunks) == len(expected) + 2


def test_texts_and_tokens_are_completed(client: openai.OpenAI, model: tuple[Llama, Tokenizer]) -> None:
    ids = model[1].encode("once upon")
    expected = _expected(model, ids, 10)
    for prompt in ("once upon", ["once upon"], ids):
        reply = client.completions.create(model="small", prompt=prompt, temperature=0, max_tokens=10)
        assert reply.choices[0].text == expected
    chunks = client.completions.create(model="small", prompt=ids, temperature=0, max_tokens=10, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == expected


def test_a_text_ends_an_answer(client: openai.OpenAI, model: tuple[Llama, Tokenizer]) -> None:
    text = _expected(model, model[1].encode("once upon"), 20)
    stop = text[6:9]
    for streamed in (False, True):
        request: dict[str, Any] = {"model": "small", "prompt": "once upon", "temperature": 0, "max_tokens": 20}
        reply: Any = client.completions.create(**request, stop=[stop, "never said"], stream=streamed)
        replies = list(reply) if streamed else [reply]
        assert "".join(part.choices[0].text for part in replies) == text[: text.index(stop)]
        assert replies[-1].choices[0].finish_reason == "stop"


def test_seeds_repeat_what_is_drawn(client: openai.OpenAI) -> None:
    def said(seed: int, **options: Any) -> str:
        reply = client.chat.completions.create(
            model="small", messages=MESSAGES, temperature=2.0, top_p=0.9, seed=seed, max_tokens=12, extra_body=options
        )
        return reply.choices[0].message.content or ""

    assert said(1) == said(1) != said(2)
    assert said(1, top_k=1) == said(2, top_k=1)


def test_requests_take_turns(client: openai.OpenAI, model: tuple[Llama, Tokenizer]) -> None:
    prompts = ["once", "upon", "a time", "there was"]
    expected = [_expected(model, model[1].encode(prompt), 8) for prompt in prompts]

    def said(prompt: str) -> str:
        stream = client.completions.create(model="small", prompt=prompt, temperature=0, max_tokens=8, stream=True)
        return "".join(chunk.choices[0].text for chunk in stream)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(said, prompts * 2)) == expected * 2


def test_a_client_that_leaves_ends_its_turn(client: openai.OpenAI) -> None:
    stream = client.completions.create(model="small", prompt="once", temperature=2, stream=True)
    next(iter(stream))
    stream.close()
    assert client.completions.create(model="small", prompt="once", temperature=0, max_tokens=2).choices


@pytest.mark.parametrize("form", ["float", "base64"])
def test_texts_become_vectors(client: openai.OpenAI, form: Any) -> None:
    reply = client.embeddings.create(model="vectors", input=["hello", "hello world", "hello"], encoding_format=form)
    vectors = [entry.embedding for entry in reply.data]
    if form == "float":
        assert vectors[0] == pytest.approx(vectors[2], abs=1e-6)
        assert sum(number * number for number in vectors[1]) == pytest.approx(1, abs=1e-5)
    assert vectors[0] != vectors[1]
    assert reply.usage.prompt_tokens == 3 + 4 + 3
    assert len(client.embeddings.create(model="vectors", input="hello").data[0].embedding) == 48


@pytest.mark.parametrize(
    ("path", "fields", "text"),
    [
        ("chat/completions", {"messages": []}, "at least one message"),
        ("chat/completions", {"messages": [{"role": "user"}]}, "must be text"),
        ("chat/completions", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "must be text"),
        ("chat/completions", {"messages": [{"content": "a"}]}, "has a role"),
        ("chat/completions", {"n": 2}, "n is 2, which is not supported"),
        ("chat/completions", {"tools": [{"type": "function"}]}, "tools is"),
        ("chat/completions", {"response_format": {"type": "json_object"}}, "response_format is"),
        ("chat/completions", {"temperature": "hot"}, "temperature is 'hot'; a number"),
        ("chat/completions", {"temperature": -1}, "temperature is -1"),
        ("chat/completions", {"top_p": 2}, "top_p is 2"),
        ("chat/completions", {"seed": -1}, "seed is -1"),
        ("chat/completions", {"seed": 1.5}, "a whole number"),
        ("chat/completions", {"stop": [1]}, "stop must be"),
        ("chat/completions", {"max_tokens": 0}, "max_tokens is 0"),
        ("completions", {"prompt": "a" * 64}, "1 to 63 are possible"),
        ("completions", {"prompt": ["a", "b"]}, "prompt must be one text"),
        ("completions", {"prompt": [1, 50]}, "prompt must be one text"),
        ("completions", {"prompt": ""}, "the prompt has 0 tokens"),
        ("embeddings", {"input": []}, "input must be"),
        ("embeddings", {"input": "a", "dimensions": 2}, "dimensions is 2"),
        ("embeddings", {"input": "a", "encoding_format": "hex"}, "float or base64"),
    ],
)
def test_what_is_not_computed_is_refused(client: openai.OpenAI, path: str, fields: dict[str, Any], text: str) -> None:
    model = "vectors" if path == "embeddings" else "small"
    needed = {"messages": MESSAGES} if path == "chat/completions" else {}
    with pytest.raises(openai.BadRequestError, match=text):
        client.post(f"/{path}", body={"model": model, **needed, **fields}, cast_to=object)


VALUES: list[Any] = [
    True,
    -1,
    0,
    2,
    1e300,
    10**400,
    "",
    "a",
    [],
    [1],
    [[1]],
    ["a"],
    {},
    {"a": 1},
    [None],
    [{"role": 1}],
]


@pytest.mark.parametrize("path", endpoint.KNOWN)
def test_values_of_any_type_get_an_answer(server: Server, path: str) -> None:
    needed = {
        "/v1/chat/completions": {"model": "small", "messages": MESSAGES, "max_tokens": 1},
        "/v1/completions": {"model": "small", "prompt": "a", "max_tokens": 1},
        "/v1/embeddings": {"model": "vectors", "input": "a"},
    }[path]
    fields = sorted(endpoint.KNOWN[path] | endpoint.NEUTRAL.keys() - {"model"})
    connection = http.client.HTTPConnection("localhost", server.server_address[1], timeout=30)
    statuses = set()
    for field in fields:
        for value in VALUES:
            body = json.dumps({**needed, field: value})
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            statuses.add(answer.status)
    connection.close()
    assert statuses <= {200, 400, 404}


def test_a_device_that_fails_is_an_error_of_the_server(
    server: Server, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise errors.DeviceError("the device is lost")
        yield

    monkeypatch.setattr(Service, "_tokens", fail)
    with pytest.raises(openai.InternalServerError, match="the device is lost"):
        client.completions.create(model="small", prompt="a")
    with pytest.raises(openai.APIError, match="the device is lost"):
        list(client.completions.create(model="small", prompt="a", stream=True))


@pytest.mark.parametrize("name", ["large", "vectors", None])
def test_other_models_are_not_there(client: openai.OpenAI, name: str | None) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no model"):
        client.post("/chat/completions", body={"model": name, "messages": MESSAGES}, cast_to=object)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        ("POST", "/v1/completions", {"Content-Type": "text/plain"}, b"{}", 415),
        ("POST", "/v1/completions", {"Content-Type": "application/json"}, b"no JSON", 400),
        ("POST", "/v1/completions", {"Content-Type": "application/json"}, b"[]", 400),
        ("POST", "/v1/completions", {"Content-Type": "application/json", "Content-Length": "99999999"}, b"", 413),
        ("POST", "/v1/completions", {"Content-Type": "application/json", "Content-Length": "x"}, b"", 411),
        ("POST", "/v1/other", {"Content-Type": "application/json"}, b"{}", 404),
        ("POST", "/v1/completions", {"Content-Type": "application/json", "Host": "evil.example"}, b"{}", 421),
        ("GET", "/", {}, b"", 404),
        ("GET", "/v1/models", {"Content-Length": "2"}, b"{}", 415),
        ("PUT", "/v1/models", {}, b"", 501),
    ],
)
def test_other_requests_are_refused(
    server: Server, method: str, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    connection = http.client.HTTPConnection("localhost", server.server_address[1], timeout=10)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    assert answer.status == status
    if status in (400, 404):
        assert json.loads(answer.read())["error"]["type"] == "invalid_request_error"
    connection.close()


def test_the_command_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spelling.write(spelling.model(), tmp_path / "own.gguf")

    def ended(server: Server) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", ended)
    options = ["--device", "cpu", "--port", "0", "--embeddings", str(text_encoders.minilm())]
    assert command.main(["--model", str(tmp_path / "own.gguf"), *options]) == 0
    assert capsys.readouterr().out.split()[0].endswith("/v1")
    assert command.main([f"--model={tmp_path / 'none'}"]) == 2
    assert "No such file" in capsys.readouterr().err
