"""Python in the worker of language models: what the tabs Chat, Fine-tune and Search ask of it, one thing at a time."""

import contextlib
import json
from typing import Any

import chatting
import searching
import tuning
from desk import Desk

import pywebgpu as torch
from pywebgpu.errors import PywebgpuError

with contextlib.suppress(ImportError):  # Templates of chats need it.
    import jinja2.sandbox  # noqa: F401

TABS = {"chat": chatting.Tab, "tune": tuning.Tab, "search": searching.Tab}


async def main(port: Any) -> None:
    """Opens the device, then does what the page asks."""
    desk = Desk(port, TABS)
    try:
        await torch.webgpu.init()
    except PywebgpuError as error:
        return desk.tell("broken", text=str(error))
    torch.set_default_device("webgpu")
    port.loaded()
    desk.tell("ready")
    while True:
        command = json.loads(port.take() or "null")
        if command is None:
            await port.arrived()
        elif command["do"] != "stop":  # What it would have stopped has ended.
            await desk.do(command)
