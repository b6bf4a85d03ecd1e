"""torch.utils._mode_utils: blocks without modes and classes that say what operators do."""

from collections.abc import Sequence

from pywebgpu.tensor.dispatch import NoDispatch

no_dispatch = NoDispatch


def all_same_mode(modes: Sequence[object]) -> bool:
    """Whether all modes are the same."""
    return all(mode == modes[0] for mode in modes)
