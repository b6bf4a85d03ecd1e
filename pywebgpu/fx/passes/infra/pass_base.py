"""What a pass is."""

from __future__ import annotations

import abc
from typing import Any, NamedTuple


class PassResult(NamedTuple):
    """A graph module, and whether it is another than before."""

    graph_module: Any
    modified: bool


class PassBase(abc.ABC):
    """A pass as an object; `call` does the work, between two checks."""

    def __call__(self, graph_module: Any) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: Any) -> PassResult | None:
        """The work."""

    def requires(self, graph_module: Any) -> None:  # noqa: B027 - a pass may have no check
        """The check before."""

    def ensures(self, graph_module: Any) -> None:  # noqa: B027 - a pass may have no check
        """The check afterwards."""
