"""The kernels of a Program, each written once: groups that differ in nothing but their buffers share one.

A model's layers are alike, so most of its groups are; to compare two costs a fraction of writing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from pywebgpu.compiler.fusion_group import FusionGroup
from pywebgpu.ir import key
from pywebgpu.ir.graph import HOST, Node
from pywebgpu.kernels import launch
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.kernel import Kernel
from pywebgpu.kernels.target import Target
from pywebgpu.ops import movement

LARGE = 10**8  # multiplications of a product that is worth telling of
Bound = tuple[Node, int | None]  # a value whose buffer is bound, and which window of it, where it has several


@dataclass(slots=True)
class KernelTable:
    """stored: ids of the values that have a buffer.  numbers: by id, the index of a host number.

    A kernel knows host numbers by their place among those of its group, so that groups with other ones share it.

    alias: by id, a value -> the one whose buffer it takes over.
    unpacked: ids of stored values of which each element has a word (see packed_stores.py).
    begin: is told each kernel once it is written.
    """

    stored: set[int]
    numbers: Mapping[int, int]
    alias: Mapping[int, Node]
    target: Target
    unpacked: set[int]
    begin: Callable[[Kernel], None]
    kernels: list[Kernel] = field(default_factory=list)
    _number: dict[Kernel, int] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], list[tuple[int, list[tuple[int, int | None]]]]] = field(default_factory=dict)

    def find(self, group: FusionGroup) -> list[tuple[int, list[Bound], tuple[int, ...]]]:
        """For each kernel that a group is run by, one mostly: its number, what it binds, in order, and host numbers."""
        form, owners, own = self._form(group)
        if form not in self._known:
            index = {id(owner): index for index, owner in enumerate(owners)}
            self._known[form] = [
                (self._add(kernel), [(index[id(node)], window) for node, window in bound])
                for kernel, bound in self._write(group, {node: index for index, node in enumerate(own)})
            ]
        numbers = tuple([self.numbers[node] for node in own])
        return [
            (
                number,
                [(owners[owner_index], window) for owner_index, window in bound],
                numbers if self.kernels[number].numbers else (),
            )
            for number, bound in self._known[form]
        ]

    def _write(self, group: FusionGroup, numbers: dict[int, int]) -> list[tuple[Kernel, list[Bound]]]:
        template = group.template
        stored = self.stored - {id(node) for node in group.nodes}
        build = Builder(stored, numbers, self.alias, self.target.limits, self.unpacked)
        problem = template.problem(group, build)
        template.write(group, launch.choose(template, problem, self.target), build)
        work = prod(problem.sizes) if template.name == "matmul" else 0
        work = work if work >= LARGE else 0
        return [(replace(kernel, work=work, problem=(template.name, problem)), bound) for kernel, bound in build.parts]

    def _add(self, kernel: Kernel) -> int:
        if kernel not in self._number:
            self._number[kernel] = len(self.kernels)
            self.kernels.append(kernel)
            self.begin(kernel)
        return self._number[kernel]

    def _form(self, group: FusionGroup) -> tuple[tuple[Any, ...], list[Node], list[int]]:
        """All that a group's kernel may depend on, the nodes that have the buffers it may bind, ids of host numbers.

        In the form a node is a number: it counts from the group's own nodes down to what is read from memory. Of what
        is read only the spec and the buffer count, of which there is one for a value and the one that it overwrites.
        """
        words: list[Any] = [group.template, group.domain.space]
        number: dict[int, int] = {}
        owners: dict[int, tuple[int, Node]] = {}
        own: list[int] = []
        inside = {id(node) for node in group.nodes}
        stack = group.nodes[::-1]
        while stack:
            node = stack[-1]
            if id(node) in number:
                stack.pop()
                continue
            is_read = node.buffer is not None or (id(node) in self.stored and id(node) not in inside)
            waiting = [] if is_read else [source for source in node.inputs if id(source) not in number]
            if waiting:
                stack += waiting[::-1]
                continue
            stack.pop()
            number[id(node)] = len(number)
            if node.op is HOST:
                words.append(("host", node.spec))
                own.append(id(node))
                continue
            meaning: tuple[Any, ...] = ()
            if not is_read:
                attrs = () if node.op is movement.barrier else key.attributes(node)  # Its token is no kernel's matter.
                meaning = node.op, attrs, *[number[id(source)] for source in node.inputs]
            where: tuple[Any, ...] = ()
            if is_read or id(node) in self.stored:
                owner = self.alias.get(id(node), node)
                where = owners.setdefault(id(owner), (len(owners), owner))[0], owner.spec, id(owner) in self.unpacked
            words.append((meaning, where, node.spec, group.domain.levels.get(id(node))))
        words += [tuple([number[id(node)] for node in nodes]) for nodes in (group.nodes, group.outputs)]
        return tuple(words), [owner for _, owner in owners.values()], own
