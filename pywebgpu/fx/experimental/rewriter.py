"""Tracing functions with `assert` and annotated values: both become calls before the function is traced."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType
from typing import Any

from pywebgpu.fx._symbolic_trace import Tracer
from pywebgpu.fx.graph import Graph
from pywebgpu.nn.module import Module


class AST_Rewriter(ast.NodeTransformer):
    """`assert a, b` becomes `torch._assert(a, b)`, and `a: T = b` becomes `a = annotate(b, T)`."""

    def rewrite(self, fn: Any) -> FunctionType:
        """A function of the same names."""
        source = textwrap.dedent(inspect.getsource(fn))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        space = fn.__globals__.copy()
        before = {*space}
        exec(compile(tree, "", "exec"), space)
        (name,) = {*space} - before or {fn.__name__}
        rewritten: FunctionType = space[name]
        own = FunctionType(
            rewritten.__code__, fn.__globals__, rewritten.__name__, rewritten.__defaults__, rewritten.__closure__
        )
        functools.update_wrapper(own, rewritten)
        own.__kwdefaults__ = copy.copy(rewritten.__kwdefaults__)
        return own

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """An `assert`."""
        call = ast.parse("torch._assert(0, 0)", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.test, node.msg or ast.Constant(value="")]
        return ast.copy_location(ast.Expr(value=call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A value with an annotation."""
        args = [node.value or ast.Constant(value=None), node.annotation]
        call = ast.Call(func=ast.Name(id="annotate", ctx=ast.Load()), args=args, keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=call), node)


class RewritingTracer(Tracer):
    """A Tracer of functions and modules that are rewritten first."""

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """As Tracer.trace."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)
    own = type("RewrittenModule", (Module,), {"forward": AST_Rewriter().rewrite(type(fn).forward)})()
    for name, value in vars(fn).items():
        own.__dict__[name] = copy.copy(_rewrite(value) if isinstance(value, Module) else value)
    return own
