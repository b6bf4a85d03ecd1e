"""torch.utils.flop_counter: a counter of operations can be made and asked; torch.explain says what a step costs."""

from __future__ import annotations

from typing import Any, NoReturn

from pywebgpu.support.lazy import absent

__getattr__ = absent(__name__)


class FlopCounterMode:
    """Counts nothing, and says so where a block begins."""

    def __init__(
        self, mods: object = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.depth, self.display = depth, display

    def __enter__(self) -> NoReturn:
        raise NotImplementedError("FlopCounterMode is not here: torch.explain(tensor) says what a step computes")

    def __exit__(self, *error: object) -> None: ...

    def get_total_flops(self) -> int:
        """Those of the blocks before: none."""
        return 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Those of the blocks before, by module: none."""
        return {}
