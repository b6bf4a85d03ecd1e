"""Makes a kernel: elements of nodes as expressions, among the statements of blocks.py.

`Builder.value(node, at)` gives the node's element at symbolic coordinates, adding what is needed to compute it to the
current block. Views only change the coordinates. What was computed before at the same position is found again, so a
kernel generator puts the results of its own loops (a row's sum, a tile's product) there with `define`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

from pywebgpu import dtypes
from pywebgpu.errors import CompileError
from pywebgpu.ir.graph import HOST, Custom, Generator, Movement, Node, Pointwise, Reduction, Structural
from pywebgpu.kernels import access, hoisting, intrinsics, ir, vectors, wgsl, window_parts, windows
from pywebgpu.kernels.blocks import Blocks
from pywebgpu.kernels.intrinsics import rounded
from pywebgpu.kernels.ir import U32, Expr, Var
from pywebgpu.kernels.kernel import Checks, Kernel, Limits
from pywebgpu.ops import contraction, indexing, movement, pointwise
from pywebgpu.support.formats import WIDE, Format
from pywebgpu.support.numbers import WORD
from pywebgpu.support.symbolic import ZERO, Sym, constant, flatten, unflatten

Coords = tuple[Sym, ...]


class Builder(Blocks):
    """Makes one kernel. `stored` are ids of nodes that have a buffer; `numbers` says where host numbers lie.

    alias: id of a node that is written -> the node whose buffer it takes over.
    unpacked: ids of stored nodes of which each element has a word, though their format packs several into one.
    """

    def __init__(
        self,
        stored: Collection[int],
        numbers: Mapping[int, int],
        alias: Mapping[int, Node],
        limits: Limits,
        unpacked: Collection[int] = (),
    ) -> None:
        super().__init__()
        self._stored, self._numbers, self._alias, self._unpacked = stored, numbers, alias, unpacked
        self.limits = limits
        self.bound: dict[int, tuple[Node, ir.Array]] = {}  # id of the buffer's node -> node, binding
        self._host_numbers = ir.Array("uniform", "numbers", ir.Type("u32", 4), -(-len(numbers) // 4))
        self._gathered: dict[int, Var] = {}  # by id of a packed result: the bits of the word that is being made
        self._waiting: dict[int, list[Expr]] = {}  # the same, where that is known while the kernel is made
        self._words: dict[tuple[Sym, int], tuple[Sym, Sym]] = {}
        self._numbered: list[Expr] = []
        self.parts: list[tuple[Kernel, list[tuple[Node, int | None]]]] = []

    # Buffers

    def buffer(self, node: Node) -> ir.Array:
        """The binding of the node's buffer."""
        owner = self._alias.get(id(node), node)
        binding = self.bound.get(id(owner))
        if binding is None:
            format_ = self._format(owner)
            # Where a CPU plays the GPU, the length is told: it would ask at every load.
            words = max(format_.words(count(owner)), 1)
            name, length = f"b{len(self.bound)}", words if self.limits.emulated else 0
            array = ir.Array("storage", name, ir.SCALARS[format_.word], length, words)
            self.bound[id(owner)] = binding = owner, array
        return binding[1]

    def _format(self, node: Node) -> Format:
        """How a stored value lies in its buffer."""
        dtype = node.spec.dtype
        return WIDE[str(dtype.compute)] if id(node) in self._unpacked else dtype.format

    def has_buffer(self, node: Node) -> bool:
        """Whether the value is loaded rather than computed here."""
        return node.buffer is not None or id(node) in self._stored

    def gather(self, nodes: Sequence[Node]) -> int:
        """Has `store` make the words of these results, from here on. How many neighbours an invocation must visit.

        One invocation stores all elements of a word, from the lowest to the highest.
        """
        packed = [node for node in nodes if self.per_word(node) > 1]
        for node in packed:
            self._gathered[id(node)] = self.var(ir.Const(U32, 0), self.fresh("word"))
        return max(map(self.per_word, packed), default=1)

    def store(self, node: Node, position: Sym, value: Expr) -> None:
        format_, array = self._format(node), self.buffer(node)
        each = format_.per_word
        if each == 1:
            if not format_.pack:
                value = value if self._is_rounded(node) else rounded(value, node.spec.dtype)
            self.assign(array[ir.Index(position)], self.packed(node, value) if format_.pack else value)
            return
        (where, part), size = self._in_word(position, each), count(node)
        if part.is_constant:
            is_last = position.is_constant and position.const == size - 1
            self._store_known(node, where, self.packed(node, value), is_last=is_last)
            return
        word = self._gathered[id(node)]
        self.assign(word, ir.Call(_SHIFTED, U32, self.packed(node, value), _bits_below(part, format_)), "|=")
        is_whole = ir.Index(part).eq(each - 1)
        with self.if_(is_whole | ir.Index(position).eq(size - 1) if size % each else is_whole):
            self.assign(array[ir.Index(where)], word)
            self.assign(word, 0)

    def _store_known(self, node: Node, where: Sym, bits: Expr, *, is_last: bool) -> None:
        """An element whose place in its word is the same in each run: the last one stores the word."""
        waiting = self._waiting.setdefault(id(node), [])
        waiting.append(bits)
        if len(waiting) == self.per_word(node) or is_last:
            self.store_word(node, where, waiting)
            waiting.clear()

    def store_word(self, node: Node, where: Sym, elements: Sequence[Expr]) -> None:
        """Elements that share a word: their bits, as `packed` gives them. where: the number of the word."""
        step = 8 * self._format(node).itemsize
        parts = [
            ir.Call(_SHIFTED, U32, bits, ir.Const(U32, index * step)) for index, bits in enumerate(elements) if index
        ]
        word = reduce(lambda a, b: ir.Call(_OR, U32, a, b), parts, elements[0])
        self.assign(self.buffer(node)[ir.Index(where)], word)

    def packed(self, node: Node, value: Expr) -> Expr:
        """An element's bits in memory, the others zero."""
        value = value if self.rounds(node) or self._is_rounded(node) else rounded(value, node.spec.dtype)
        return ir.Call(ir.template(self._format(node).pack), U32, value)

    def rounds(self, node: Node) -> bool:
        """Whether storing an element rounds it to what its dtype can hold."""
        return self._format(node).rounds

    def per_word(self, node: Node) -> int:
        """How many elements of a stored value share a word of memory."""
        return self._format(node).per_word

    def _is_rounded(self, node: Node) -> bool:
        """Whether its elements are what its dtype can hold as soon as they are computed."""
        while access.only_moves(node) and not self.has_buffer(node):
            node = node.inputs[0]
        known = isinstance(node.op, Reduction) or node.op is contraction.matmul
        return known or (isinstance(node.op, Pointwise) and node.op.wgsl != "{0}")

    def _loaded(self, node: Node, position: Sym) -> Expr:
        format_, array = self._read_format(node), self.buffer(node)
        unpack, type_ = ir.template(format_.unpack), ir.scalar(node.spec.dtype)
        if format_.per_word == 1:
            word = array[ir.Index(position)]
            return ir.Call(unpack, type_, word) if format_.unpack else word
        where, part = self._in_word(position, format_.per_word)
        return ir.Call(unpack, type_, self._word_at(array, where), _bits_below(part, format_))

    def _find_known(self, key: tuple[int, Sym]) -> Expr | None:
        for known in reversed(self._known):
            expr = known.get(key)
            if expr is not None:
                return expr
        return None

    def word(self, node: Node, ats: Sequence[Coords]) -> Expr | None:
        """A load of the word that some elements share, in this order; None where there is no such word."""
        source, elements = access.below(node), [access.down(node, coords) for coords in ats]
        if None in elements or not self.has_buffer(source) or self._read_format(source).per_word != len(ats):
            return None
        places = [self._in_word(location[1], len(ats)) for location in elements if location]
        where = places[0][0]
        is_it = all(place == (where, constant(index)) for index, place in enumerate(places))
        return self.buffer(source)[ir.Index(where)] if is_it else None

    def _word_at(self, array: ir.Array, where: Sym) -> Expr:
        word = self._find_known((id(array), where)) or self.let(array[ir.Index(where)])
        self._known[-1][id(array), where] = word
        return word

    def _read_format(self, node: Node) -> Format:
        return self._format(self._alias.get(id(node), node))

    def in_words(self, position: Sym, each: int, word: Sym, part: Sym) -> None:
        """Says that a position is word * each + which: known so, a word is loaded once for all its elements."""
        self._words[position, each] = word, part

    def _in_word(self, position: Sym, each: int) -> tuple[Sym, Sym]:
        """In which word an element lies, of `each`, and where in it."""
        return self._words.get((position, each)) or (position // each, position % each)

    # Elements

    def define(self, node: Node, position: Sym, value: Expr) -> None:
        """Says that `value` is the node's element at a flat position."""
        self._known[-1][id(node), position] = value

    def known(self, node: Node, position: Sym) -> Expr | None:
        """The node's element at a flat position, where it was computed before."""
        return self._find_known((id(node), position))

    def loads(self, node: Node, ats: Sequence[Sym]) -> list[Expr]:
        """Loads of elements at flat positions, of a value that is in memory with a word for each; none of another."""
        if not self.has_buffer(node) or self._read_format(node).unpack:
            return []
        array = self.buffer(node)
        return [array[ir.Index(position)] for position in ats]

    def value(self, node: Node, coords: Coords) -> Expr:
        """The node's element at `coords`: a variable or a constant."""
        while isinstance(node.op, Movement) and node.buffer is None and id(node) not in self._stored:
            source = node.inputs[0]
            inner, bounds = node.op.index(coords, source.spec.shape, **node.attrs)
            if bounds:
                break
            node, coords = source, inner
        else:
            bounds = ()
        key = id(node), flatten(coords, node.spec.shape)
        known = self._find_known(key)
        if known is not None:
            return known
        expr = self._guarded(node, inner, bounds) if bounds else self._compute(node, coords, key[1])
        self._known[-1][key] = expr
        return expr

    def _compute(self, node: Node, coords: Coords, flat: Sym) -> Expr:
        if node.op is HOST:
            number, kind = self._numbers[id(node)], ir.scalar(node.spec.dtype)
            word = self._host_numbers[number // 4][number % 4]
            return word if kind == U32 else ir.call(f"bitcast<{kind}>", kind, word)
        if node.buffer is not None or id(node) in self._stored:
            return self.let(self._loaded(node, flat))
        match node.op:
            case Pointwise():
                return self.applied(node, [self.value(n, coords if n.spec.shape else ()) for n in node.inputs])
            case Generator():
                return self._generator(node, coords, flat)
            case Structural() if node.op is indexing.take:
                return self._take(node, coords)
            case Structural() if node.op is indexing.offset_slice:
                return self._offset_slice(node, coords)
            case Structural() if node.op is indexing.cat:
                return self._cat(node, coords)
            case Structural() if node.op is indexing.write_slice:
                return self._write_slice(node, coords)
            case Custom():
                return self.value(node.inputs[0], coords)
            case Reduction() | Structural():
                raise CompileError(f"{node.op.name}: its value is needed in a kernel that does not have it")
            case _:
                raise CompileError(f"{node.op.name}: no rule")

    def applied(self, node: Node, args: list[Expr]) -> Expr:
        """A pointwise op of numbers."""
        if not intrinsics.computes(node):
            return args[0]
        if all(map(ir.is_constant, args)):
            args[0] = self.let(args[0])  # A translator refuses constant expressions that overflow or divide by 0.
        return self.let(intrinsics.called(node, args))

    def _generator(self, node: Node, coords: Coords, flat: Sym) -> Expr:
        type = ir.scalar(node.spec.dtype)
        if node.op is pointwise.const:
            return ir.constant(node.attrs["value"], type)
        if node.op is pointwise.iota:
            return ir.construct(type, ir.Index(coords[node.attrs["axis"]]))
        words = [self.value(source, ()) for source in node.inputs]
        draw, component = flat // 4, flat % 4
        if flat.is_constant or not component.is_constant:
            # 0, which is not known to be: of draws that are the same in all lanes LLVM reasons for seconds (llvmpipe).
            index = ir.Index(flat) + ir.LANE // 65536 if flat.is_constant else ir.Index(flat)
            return self.let(ir.call("p_philox", U32, index, *words))
        key = -id(node), draw  # Neighbours that are computed one after the other share a draw of four.
        block = self._find_known(key) or self.let(ir.call("p_philox4", _FOUR, ir.Index(draw), *words))
        return self._known[-1].setdefault(key, block)[component.const]

    def _guarded(self, node: Node, inner: Coords, bounds: Sequence[Any]) -> Expr:
        source = node.inputs[0]
        fill = _fill(node)
        if 0 in source.spec.shape or access.is_outside(bounds):
            return fill
        variable = self.var(fill)
        with self.if_(*access.conditions(bounds)):
            self.assign(variable, self.value(source, inner))
        return variable

    def _take(self, node: Node, coords: Coords) -> Expr:
        rows, index = node.inputs
        row = self._number(self.value(index, coords[:1]), "i")
        return self.value(rows, (row.within(rows.spec.shape[0]), coords[1]))

    def _number(self, value: Expr, letter: str) -> Var:
        """A value as a part of an index; of the same value the same."""
        key = id(value), ZERO
        if isinstance(cached := self._find_known(key), Var):
            return cached
        number = self.let(ir.construct(U32, value), self.fresh(letter))
        self._known[-1][key] = number
        self._numbered.append(value)  # It keeps its id.
        return number

    def _offset_slice(self, node: Node, outer: Coords) -> Expr:
        source, *starts = node.inputs
        coords = [i * step for i, step in zip(outer, node.attrs["steps"], strict=True)]
        for axis, start in zip(node.attrs["axes"], starts, strict=True):
            first = self._number(self.value(start, ()), "s")
            span = (node.spec.shape[axis] - 1) * node.attrs["steps"][axis]
            coords[axis] = coords[axis] + first.within(source.spec.shape[axis] - span)
        return self.value(source, tuple(coords))

    def _cat(self, node: Node, coords: Coords) -> Expr:
        axis, variable = node.attrs["axis"], self.var(ir.scalar(node.spec.dtype))
        end, branches, along = 0, ir.If([]), ir.Index(coords[axis])
        for part in node.inputs:
            start, end = end, end + part.spec.shape[axis]
            if end == start or coords[axis].low >= end or coords[axis].high < start:
                continue
            moved = (*coords[:axis], coords[axis] - start, *coords[axis + 1 :])
            with self._branch(branches, along < end):
                self.assign(variable, self.value(part, moved))
        return variable

    def _write_slice(self, node: Node, coords: Coords) -> Expr:
        base, value = node.inputs
        starts, steps = node.attrs["starts"], node.attrs["steps"]
        inner, bounds = movement.pad.index(coords, value.spec.shape, node.spec.shape, starts, steps)
        if 0 in value.spec.shape or access.is_outside(bounds):
            return self.value(base, coords)
        conditions = access.conditions(bounds)
        if not conditions:
            return self.value(value, inner)
        variable = self.var(ir.scalar(node.spec.dtype))
        with self.if_(*conditions):
            self.assign(variable, self.value(value, inner))
        with self.else_():
            self.assign(variable, self.value(base, coords))
        return variable

    # The whole

    def kernel(self, name: str, lanes: int, groups: int, *, vector: int = 1, inside: bool = False) -> Kernel:
        """The finished kernel: `groups` workgroups of `lanes` invocations, numbered by GROUP.

        vector: how many elements to load and store at a time, where neighbours are computed one after the other.
        inside: its own indices follow from shapes alone. It needs no checks, unless an operand's follow from values.
        `parts` then has all that must run: the kernel, or one for each part of its workgroups, with what each binds.
        """
        owners, arrays = [owner for owner, _ in self.bound.values()], [array for _, array in self.bound.values()]
        body, checks = self._body, Checks.NONE if inside and not self._numbered else Checks.BOUNDS
        if vector > 1:
            shared = {array for node, array in self.bound.values() if self.per_word(node) > 1}
            body, vector_arrays = vectors.vectorize(body, arrays, vector, shared)
            arrays = [vector_arrays.get(array, array) for array in arrays]
        long = windows.long_arrays(arrays, self.limits)
        divided = window_parts.divisions(body, arrays, long, lanes, groups, self.limits) if long else ()
        for parts in divided or [windows.whole(body, arrays, groups)]:
            kernels = [self._printed(name, lanes, part, checks) for part in parts]
            if all(len(kernel.writes) + kernel.faults <= self.limits.bindings for kernel in kernels):
                break
        else:
            largest = max(owners, key=count)
            raise CompileError(
                f"{name}: it reads or writes a value of {largest.spec.dtype.name}{list(largest.spec.shape)} all over, "
                f"which takes more bindings of {self.limits.binding_bytes} bytes than this device's "
                f"{self.limits.bindings}; use smaller tensors"
            )
        self.parts = [
            (kernel, [(owners[index], window) for index, window in part.bound])
            for kernel, part in zip(kernels, parts, strict=True)
        ]
        return kernels[0]

    def _printed(self, name: str, lanes: int, part: windows.Part, checks: Checks) -> Kernel:
        height = -(-part.groups // self.limits.workgroups)
        width = -(-part.groups // max(height, 1))
        group = ir.WORKGROUP[0] + ir.WORKGROUP[1] * width if height > 1 else ir.WORKGROUP[0]
        body: ir.Block = [ir.Declare("let", ir.GROUP, group + part.first if part.first else group)]
        if width * height > part.groups:
            body.append(ir.If([(part.first + part.groups <= ir.GROUP, [ir.Jump("return")])]))
        body += part.body
        if self.limits.emulated:
            body = hoisting.hoist(body)
        shared, grid = tuple(self._shared.values()), (width, height, 1)
        head = name, lanes, grid, part.bindings, shared, self._host_numbers
        return wgsl.kernel(ir.Function(*head, body, part.windowed), checks)


def _fill(node: Node) -> Expr:
    """What a pad has around its source; the least int64 is the least of the numbers that one is stored as."""
    value, dtype = node.attrs.get("value", 0.0), node.spec.dtype
    if dtype is dtypes.int64 and value == dtype.low:
        value = WORD[0]
    return ir.constant(value, ir.scalar(dtype))


def _bits_below(part: Sym, format_: Format) -> Expr:
    """How many bits of its word lie below an element."""
    return ir.Index(part * (8 * format_.itemsize))


_OR, _FOUR = ir.template("({0} | {1})"), ir.Type("u32", 4)
_SHIFTED = ir.template("({0} << {1})")


def element(position: Sym, node: Node) -> Coords:
    """Coordinates of the element at a flat position."""
    return unflatten(position, node.spec.shape)


def count(node: Node) -> int:
    return prod(node.spec.shape)
