"""Exported chats: templates as data, patterns in JavaScript's spelling, what is refused."""

import pytest

from pywebgpu.errors import CaptureError
from pywebgpu.exporter import chat
from pywebgpu.models.byte_pairs import BytePairs
from pywebgpu.models.tokenizer import Tokenizer
from tests import tiny_chat

DEFAULT_SYSTEM = (
    "{% for message in messages %}{% if loop.first and message.role != 'system' %}<|im_start|>system\nHelp.<|im_end|>\n"
    "{% endif %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
TRIMMED = (
    "{{ bos_token }}{% for message in messages %}[{{ message.role }}]\n\n{{ message.content | trim }}<|im_end|>"
    "{% endfor %}[assistant]\n\n"
)
NO_SYSTEM = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('none') }}{% endif %}"
    "{{ message.content }};{% endfor %}"
)
LENGTHS = "{% for message in messages %}{{ message.content | length }}{{ message.content }}{% endfor %}"
ONLY_LAST = "{{ messages[-1].content }}"
MESSAGES = [("system", "Be kind."), ("user", " Hi \n"), ("assistant", "Hello!"), ("user", "And?")]


def _tokenizer(template: str | None) -> Tokenizer:
    backend = BytePairs(tiny_chat.TOKENS, [("a", "b")], [], tiny_chat.MARKS)
    return Tokenizer(backend, bos=len(tiny_chat.TOKENS) - 2, chat_template=template)


@pytest.mark.parametrize("template", [tiny_chat.TEMPLATE, DEFAULT_SYSTEM, TRIMMED, NO_SYSTEM])
def test_messages_are_joined_as_the_template_does(template: str) -> None:
    tokenizer = _tokenizer(template)
    facts = chat._chat_facts(tokenizer)
    assert (facts["system"] is None) == (template == NO_SYSTEM)
    for first in (0, 1) if facts["system"] else (1,):
        messages = [{"role": role, "content": content} for role, content in MESSAGES[first:]]
        assert chat._joined(facts, messages) == tokenizer.chat_text(messages)


@pytest.mark.parametrize("template", [LENGTHS, ONLY_LAST, None])
def test_other_templates_are_refused(template: str | None) -> None:
    with pytest.raises(CaptureError):
        chat._chat_facts(_tokenizer(template))


def test_patterns_are_spelled_for_javascript() -> None:
    assert chat._in_javascript(r"(?i:'s|'re)|[^\s\p{L}]+|\s+(?!\S)") == (
        r"(?:'[sS\u017f]|'[rR][eE])|[^\p{White_Space}\p{L}]+|\p{White_Space}+(?!\P{White_Space})".replace(
            r"\u017f", "\u017f"
        )
    )
