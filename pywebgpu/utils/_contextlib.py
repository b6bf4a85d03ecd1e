"""torch.utils._contextlib: `with` blocks that decorate functions as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function inside of a block, which is made anew for each call, and of a generator entered for each of its steps.

    ctx: the block, or what makes it. Raises TypeError for what is neither.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(f"Passed in {ctx} is both callable and also a valid context manager")
    if not callable(ctx) and not hasattr(ctx, "__enter__"):
        raise TypeError(f"Expected a context manager or a function that makes one, got {ctx}")
    make = ctx if callable(ctx) else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make, func)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return call


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator whose steps run inside of a block, and what runs between them outside."""

    @functools.wraps(func)
    def generate(*args: Any, **kwargs: Any) -> Any:
        generator, advance = func(*args, **kwargs), next
        step: Callable[[], Any] = lambda: advance(generator)  # noqa: E731
        try:
            while True:
                with ctx_factory():
                    value = step()
                try:
                    sent = yield value
                    step = functools.partial(generator.send, sent)
                except GeneratorExit:
                    with ctx_factory():
                        generator.close()
                    raise
                except BaseException as error:
                    step = functools.partial(generator.throw, error)
        except StopIteration as end:
            return end.value

    return generate


class _DecoratorContextManager:
    """A block that decorates functions. Subclasses with arguments of their own give `clone`."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one like this."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """That of a class that decorates a function without being called first: `@no_grad`."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        context = super().__new__(cls)
        return context if orig_func is None else context(orig_func)
