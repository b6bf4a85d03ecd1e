"""Running passes in an order that keeps constraints."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pywebgpu.fx.graph_module import GraphModule
from pywebgpu.fx.passes.infra.pass_base import PassResult
from pywebgpu.nn.module import Module

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]  # whether the first may come before the second


def pass_result_wrapper(fn: Any) -> Any:
    """A pass that returns a PassResult, of one that returns a module or None."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def call(gm: Any) -> PassResult:
        result = fn(gm)
        return result if isinstance(result, PassResult) else PassResult(gm if result is None else result, modified=True)

    if not inspect.isfunction(fn):
        call.__name__ = type(fn).__name__
    return call


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint: one pass comes before another."""
    return lambda first, second: first != that or second != this


def _validate_pass_schedule_constraint(constraint: Constraint, passes: list[Pass]) -> None:
    for i, first in enumerate(passes):
        for j, second in enumerate(passes[i + 1 :]):
            if not constraint(first, second):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {first} before {second} but found {first} at index "
                    f"{i} and {second} at index {j} in pass list."
                )


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """The passes in an order that keeps all constraints. Raises RuntimeError where there is none."""
    sorter: TopologicalSorter[Pass] = TopologicalSorter()
    for first in passes:
        later = [other for other in passes if other != first]
        sorter.add(first, *(other for other in later if any(not allows(first, other) for allows in constraints)))
    try:
        return [*sorter.static_order()] if constraints else passes
    except CycleError as error:
        cycle = [*dict.fromkeys(error.args[1])]
        raise RuntimeError(f"Circular dependency detected within the following passes: {cycle}") from error


class PassManager:
    """Runs passes on a module, each of which returns a PassResult.

    steps: how often at most, until nothing changes. run_checks_after_each_pass: whether `check` runs in between.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises RuntimeError where the order of the passes breaks a constraint."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
        self._validated = True

    def solve_constraints(self) -> None:
        """Orders the passes."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Says what is checked. Raises TypeError for a function of several arguments."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign, assignment]

    def check(self, module: Module) -> None:
        """Nothing, until add_checks says what."""

    def __call__(self, module: Any) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, again = self._once(module)
            changed |= again
            if not again:
                break
        return PassResult(module, changed)

    def _once(self, module: Any) -> tuple[Any, bool]:
        changed = False
        names = [
            function.__name__ if inspect.isfunction(function) else type(function).__name__ for function in self.passes
        ]
        for index, function in enumerate(self.passes):
            try:
                result = function(module)
                if not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {names[index]} should be type PassResult.Please wrap it with "
                        "pass_result_wrapper()"
                    )
                module, changed = result.graph_module, changed or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                raise Exception(
                    f"An error occurred when running the '{names[index]}' pass after the following passes: "
                    f"{names[:index]}"
                ) from error
        return module, changed
