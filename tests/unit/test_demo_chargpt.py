"""The character GPT of the demos: it goes on as if never stopped, and says in a line what is wrong."""

import hashlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import pywebgpu as torch

DEMO = Path(__file__).parents[2] / "demos" / "chargpt"
NAMES = ("data", "model", "texts", "train", "main")
TEXT = "The quick brown fox jumps over the lazy dog, and the dog does not mind. " * 20
TINY = {"steps": 20, "batch": 4, "context": 16, "layers": 2, "heads": 2, "width": 16}
VERSE = "3dcb2718b150"  # of SHA-256: a model that was trained before fits no other text
OPTIONS = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """The modules of the demo. It is a program of its own, so their names are plain."""
    monkeypatch.syspath_prepend(str(DEMO))
    found = SimpleNamespace(**{name: import_module(name) for name in NAMES})
    yield found
    torch.set_default_device(None)
    for name in NAMES:
        del sys.modules[name]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


def new_run(demo: SimpleNamespace, **changes: float) -> SimpleNamespace:
    settings = demo.train.Settings(**(TINY | changes))
    corpus = demo.data.Corpus(TEXT, context=settings.context, seed=settings.seed)
    return demo.train.Run(corpus, settings, "cpu")


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(DEMO / "main.py"), "--device", "cpu", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_resumed_run_has_the_losses_of_one_that_never_stopped(demo: SimpleNamespace, tmp_path: Path) -> None:
    whole = new_run(demo, rate=0.02)
    losses = [whole.advance() for _ in range(20)]
    first = new_run(demo, rate=0.02)
    for _ in range(10):
        first.advance()
    "".join(first.sample("The ", 5))  # What a sample draws must not matter to what is learnt.
    file = str(tmp_path / "checkpoint.safetensors")
    first.save(file, None)
    state = demo.train.read_checkpoint(file)
    second = new_run(demo, rate=0.02)
    second.restore(state)
    assert second.step == 10
    for _ in range(10):
        second.advance()
    assert second.losses == losses
    assert losses[-1] < losses[0]
    for ours, theirs in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_samples_depend_on_seed_and_step(demo: SimpleNamespace) -> None:
    first, second, other = new_run(demo), new_run(demo), new_run(demo, seed=2)
    sample = "".join(first.sample("The ", 30))
    assert len(sample) == 34
    assert sample.startswith("The ")
    assert "".join(second.sample("The ", 30)) == sample
    assert "".join(other.sample("The ", 30)) != sample


def test_the_likeliest_character_is_drawn_when_only_one_may_be(demo: SimpleNamespace) -> None:
    run = new_run(demo)
    passages = {"".join(run.sample("The ", 20, temperature, top_k=1)) for temperature in (0.1, 1.0, 3.0)}
    assert len(passages) == 1


def test_batches_depend_on_seed_part_and_step(demo: SimpleNamespace) -> None:
    corpus = demo.data.Corpus(TEXT, context=16, seed=1)
    inputs, targets = corpus.batch("train", 3, 5)
    assert (inputs, targets) == demo.data.Corpus(TEXT, context=16, seed=1).batch("train", 3, 5)
    assert [len(row) for row in (*inputs, *targets)] == [16] * 10
    assert all(row[1:] == moved[:-1] for row, moved in zip(inputs, targets, strict=True))
    assert inputs != corpus.batch("train", 4, 5)[0]
    assert inputs != demo.data.Corpus(TEXT, context=16, seed=2).batch("train", 3, 5)[0]


def test_the_unseen_text_is_the_end_of_it(demo: SimpleNamespace) -> None:
    corpus = demo.data.Corpus(TEXT, context=16, seed=1)
    train, validation = corpus.parts["train"], corpus.parts["validation"]
    assert corpus.decode(train + validation) == TEXT
    assert len(validation) == len(TEXT) // 10


def test_the_default_text_is_english(demo: SimpleNamespace) -> None:
    text = demo.data.python_documentation()
    assert len(text) > 100_000
    assert text.isascii()
    letters = sum(character.isalpha() or character in " ,.\n" for character in text)
    assert letters > 0.95 * len(text)
    assert len(set(text.splitlines())) == len(text.splitlines())


def test_verse_rhymes_and_is_the_same_on_every_host(demo: SimpleNamespace) -> None:
    text = demo.texts.named("verse")
    assert hashlib.sha256(text.encode()).hexdigest().startswith(VERSE)
    rhymes = {word: family for family in demo.texts.RHYMES for word in family}
    stanzas = [stanza.splitlines() for stanza in text.split("\n\n")[:-1]]
    lasts = [[re.findall(r"\w+", line)[-1] for line in stanza[1::2]] for stanza in stanzas if len(stanza) > 1]
    assert len(lasts) > 500
    assert all(rhymes[first] == rhymes[second] and first != second for first, second in lasts)


def test_a_run_leaves_picture_samples_and_checkpoint(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("--data", text, "--out", out, "--every", "10", "--length", "40", *OPTIONS)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert output.startswith("device: cpu, because --device says so\n")
    assert "A passage" in output
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "samples.txt").read_text(encoding="utf-8").count("--- ") == 2
    assert (out / "checkpoint.safetensors").stat().st_size > 1000
    assert "20/20" in errors
    assert "tokens/s" in errors


def test_the_prompt_is_made_of_the_texts_characters(demo: SimpleNamespace) -> None:
    assert demo.main.prompt_of(None, demo.data.Corpus(TEXT, context=16, seed=1)) == "The "
    assert demo.main.prompt_of(None, demo.data.Corpus("abc\u4e2d" * 50, context=16, seed=1)) == "a"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a child")
def test_ctrl_c_saves_and_resume_finishes(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("--data", text, "--out", out, "--every", "5", *OPTIONS, "--steps", "5000")
    deadline = time.monotonic() + 60
    while not (out / "checkpoint.safetensors").exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    message = errors.splitlines()[-1]
    assert message.startswith("stopped after step ")
    assert "--resume" in message
    done = int(message.split()[3])
    assert done > 0
    again = start("--out", out, "--resume", "--every", "5")
    for line in again.stdout:
        if line.startswith("going on"):
            break
    assert line == f"going on after step {done} of 5000\n"
    time.sleep(0.5)
    again.send_signal(signal.SIGINT)
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 130, errors


def wrong(demo: SimpleNamespace, capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The line that the demo prints when it refuses."""
    assert demo.main.main([str(argument) for argument in ("--device", "cpu", *arguments)]) == 2
    captured = capsys.readouterr().err
    assert captured.startswith("chargpt: ")
    assert captured.count("\n") == 1
    return captured


def test_a_text_that_cannot_be_used_is_told_of(
    demo: SimpleNamespace, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file, out = tmp_path / "text.txt", ("--out", tmp_path / "out")
    assert "No such file" in wrong(demo, capsys, "--data", file, *out)
    assert "cannot read" in wrong(demo, capsys, "--data", tmp_path, *out)
    file.write_text(" \n")
    assert "empty" in wrong(demo, capsys, "--data", file, *out)
    file.write_text("too short")
    assert "9 characters" in wrong(demo, capsys, "--data", file, *out)
    file.write_bytes(b"\xff\xfe\x00\xd8" * 100)
    assert "UTF-8" in wrong(demo, capsys, "--data", file, *out)


def test_a_checkpoint_that_cannot_be_used_is_told_of(
    demo: SimpleNamespace, capsys: pytest.CaptureFixture[str], text: Path, tmp_path: Path
) -> None:
    resume = ("--resume", "--out", tmp_path)
    assert "there is no checkpoint" in wrong(demo, capsys, *resume)
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(b"not at all")
    assert "cannot read" in wrong(demo, capsys, *resume)
    run = new_run(demo)
    run.save(str(file), str(text))
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    assert "cannot read" in wrong(demo, capsys, *resume)
    file.write_bytes(whole)
    assert "made with --width 16" in wrong(demo, capsys, *resume, "--width", "32")
    text.write_text(TEXT.upper(), encoding="utf-8")
    assert "another text" in wrong(demo, capsys, *resume)
    torch.save({"weights": torch.zeros(3)}, str(file))
    assert "not a checkpoint of this program" in wrong(demo, capsys, *resume)
    torch.save({"format": demo.train.FORMAT, "settings": {}, "losses": 3}, str(file))
    assert "is damaged: text, losses" in wrong(demo, capsys, *resume)


def test_impossible_options_are_refused(
    demo: SimpleNamespace, capsys: pytest.CaptureFixture[str], text: Path, tmp_path: Path
) -> None:
    common = ("--data", text, "--out", tmp_path / "out", *OPTIONS)
    assert "--width 15" in wrong(demo, capsys, *common, "--width", "15")
    assert "'@'" in wrong(demo, capsys, *common, "--prompt", "@")
    assert "--prompt" in wrong(demo, capsys, *common, "--prompt", "")
    for option, value in (("--steps", "0"), ("--rate", "-1"), ("--temperature", "nan"), ("--seed", "x")):
        with pytest.raises(SystemExit) as stopped:
            demo.main.main([option, value])
        assert stopped.value.code == 2
    capsys.readouterr()
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "cannot write" in wrong(demo, capsys, "--data", text, "--out", blocked, *OPTIONS)
