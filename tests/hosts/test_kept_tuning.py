"""A tuning is kept on every host: in the cache folder, or in the storage of a page's origin."""

import json
from pathlib import Path

import pytest

from tests.hosts.host import HOSTS


@pytest.mark.parametrize(
    ("host", "place"), [("native", "/tuning/"), ("node", "/tuning/"), ("chromium", "this origin's")]
)
def test_a_device_that_is_opened_again_has_what_was_kept(
    host: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = HOSTS[host]
    if there.missing():
        pytest.skip(there.missing())
    monkeypatch.setenv("PYWEBGPU_CACHE", str(tmp_path))
    found = json.loads(there.results("kept_tuning.py", there.device, "results", result="results"))
    where, before, after, is_there = found
    assert place in where
    assert (after - before, is_there) == (1, True)
