"""What a few lines of user code are compiled to, on a machine without a GPU."""

from collections.abc import Callable
from typing import Any

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.compiler.driver import compile_graph
from pywebgpu.compiler.program import Program, Written
from pywebgpu.ir.graph import Node
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.target import Target
from pywebgpu.runtime import executor, program_cache, state

NULL: Any = devices.open_device("null")


def leaf(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> Any:
    """A tensor that has its buffer."""
    x = torch.empty(*shape, dtype=dtype, device="null").fill_(0)
    settle()
    return x.requires_grad_() if grad else x


def settle() -> None:
    executor.submit(NULL)


def programs(function: Callable[[], Any]) -> list[Program]:
    """Every Program that the device is given while `function` runs and right after it, with its results alive."""
    settle()
    program_cache.clear()
    before, failed = len(NULL.loaded), {*state.default.failed}
    results = function()
    settle()
    assert failed.issuperset(state.default.failed), "a value could not be compiled"
    del results
    return list(NULL.loaded[before:])


def only(function: Callable[[], Any]) -> Program:
    (program,) = programs(function)
    return program


def for_limits(limits: Limits, *wanted: Any, written: Written = ()) -> Program:
    """The Program of some tensors, or of nodes, for a device with these limits."""
    roots = tuple(x if isinstance(x, Node) else x._node for x in wanted)
    return compile_graph(roots, Target(wgsl=True, limits=limits), written)


def kernel(*wanted: Any) -> Kernel:
    """The kernel of tensors that one dispatch computes."""
    program = for_limits(Limits(), *wanted)
    assert len(program.steps) == 1, [k.name for k in program.kernels]
    return program.kernels[0]
