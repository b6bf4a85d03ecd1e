"""Batched matrix product with holes: operands are any nodes read at (batch, row, k), results pass through an epilogue.

Each invocation keeps a small block of results in registers. Tiles of both operands go through workgroup memory; where
a CPU plays the GPU (Limits.emulated), operands are read from memory as they are needed. What passes by in registers may
be summed over k on its way: so a bias's gradient is made inside the weight's.

Against other tiles on an H100: 2048 x 2048 by 2048 x 2048 takes 0.84 ms with fours of registers in vectors and 4 steps
of k written out, 0.87 ms without the latter, 1.39 ms with 16 numbers. Smaller tiles lose even where few workgroups run.
On SwiftShader a load costs as much as eight multiplications, so blocks are large: 512 x 128 by 128 x 384 takes 28 ms
with 4 x 4 an invocation, 18 ms with 8 x 8, 16 ms with 16 x 8, which takes twice as long to translate.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from pywebgpu.dtypes import DType
from pywebgpu.graph.ir import Movement, Node, Reduction
from pywebgpu.kernels.emit import Emitter, element, rounded
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.symbolic import Sym, Var, flatten, variable

FULL, LEFT, RIGHT = "full", "left", "right"  # a node of a product has an element a result, a row, or a column
BUSY = 96  # workgroups that keep a device busy: a result that fills fewer has smaller ones, and shares them out by k
SHARE = 16  # of k, at least, for each that shares
EMULATED_LANES = 16  # of a workgroup on a CPU, which runs four at a time, and workgroups on its cores
FEW = 64  # invocations that keep a CPU's cores busy
LONG = 512  # of k, at least, for each that shares there: workgroup memory takes long to clear
STEPS = 4  # of k that are written out: what one reads does not wait for what another multiplies


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's block of the result: rows x columns, `high` x `wide` an invocation.

    depth: how much of k goes through workgroup memory at a time; 0: operands are read from memory.
    slices: invocations that share a block of results: each multiplies its part of the depth, and in the end they add.
    """

    rows: int
    columns: int
    depth: int
    high: int = 4
    wide: int = 4
    slices: int = 1

    @property
    def blocks(self) -> int:
        return (self.rows // self.high) * (self.columns // self.wide)

    @property
    def lanes(self) -> int:
        return self.blocks * self.slices

    @property
    def results(self) -> list[str]:
        """Variables of an invocation's block, row by row: each has as many results as a vector has parts."""
        return [f"r{name}" for i in range(self.high) for name in _fours(i, self.wide)]

    def groups(self, m: int, n: int) -> int:
        return -(-m // self.rows) * -(-n // self.columns)


def choose(batches: int, m: int, n: int, depth: int, limits: Limits) -> Tile:
    if limits.emulated:
        return _choose_emulated(batches, m, n, depth, limits)
    rows, columns = (min(64, max(16, _power(size))) for size in (m, n))
    while max(rows, columns) > 16 and (
        rows * columns > 16 * limits.workgroup_size or batches * Tile(rows, columns, 0).groups(m, n) < BUSY
    ):
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
    slices = max(limits.workgroup_size * 16 // (rows * columns), 1)
    while slices > 1 and slices * SHARE > depth:
        slices //= 2
    slices = 1 << (slices.bit_length() - 1)  # Halves are added to halves.
    return Tile(rows, columns, max(16, min(rows, columns) * slices // 4), slices=slices)


def _choose_emulated(batches: int, m: int, n: int, depth: int, limits: Limits) -> Tile:
    high, wide = (1 if size == 1 else 4 if size <= 4 or 8 < size <= 12 else 8 for size in (m, n))
    down, across = -(-m // high), -(-n // wide)
    blocks = batches * down * across
    lanes = min(EMULATED_LANES, limits.workgroup_size, max(4, _power(blocks // 32)))
    per_row = min(_power(across), 4)
    slices = min(FEW // _power(blocks), limits.workgroup_size // lanes, _power(depth // LONG)) if blocks < FEW else 1
    return Tile(lanes // per_row * high, per_row * wide, 0, high, wide, max(slices, 1))


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def generate(
    anchor: Node, nodes: Sequence[Node], outputs: Sequence[Node], levels: dict[int, str], emit: Emitter
) -> Kernel:
    left, right = anchor.inputs
    batches, m, n = anchor.spec.shape
    depth = left.spec.shape[2]
    tile = choose(batches, m, n, depth, emit.limits)
    down, across = -(-m // tile.rows), -(-n // tile.columns)
    per_row = tile.columns // tile.wide
    emit.line(f"let batch = group / {across * down}u;")
    emit.line(f"let first_m = (group / {across}u) % {down}u * {tile.rows}u;")
    emit.line(f"let first_n = group % {across}u * {tile.columns}u;")
    emit.line(f"let block = lane % {tile.blocks}u;" if tile.slices > 1 else "let block = lane;")
    emit.line(f"let slice = lane / {tile.blocks}u;")
    emit.line(f"let own_m = first_m + block / {per_row}u * {tile.high}u;")
    emit.line(f"let own_n = first_n + block % {per_row}u * {tile.wide}u;")
    sides = _Side(left, m, tile.rows, tile.high, "m"), _Side(right, n, tile.columns, tile.wide, "n")
    for name in tile.results:
        emit.line(f"var {name} = {_vector(anchor.spec.dtype, min(tile.wide, 4))}();")
    summed = {level for level in levels.values() if level != FULL}
    for side in sides:
        if side.level in summed:
            for name in side.sums:
                emit.line(f"var {name} = {_vector(anchor.spec.dtype, min(side.each, 4))}();")
    if depth:
        (_through_tiles if tile.depth else _from_memory)(sides, variable("batch", batches), depth, tile, emit, summed)
    if tile.slices > 1:
        own = tile.results + [name for side in sides if side.level in summed for name in side.sums]
        shared = max(sides, key=lambda side: side.extent).tile
        if not tile.depth:
            vector = _vector(anchor.spec.dtype, min(tile.wide, 4))
            emit.declarations.append(f"var<workgroup> {shared}: array<{vector}, {tile.lanes}>;")
        _add_slices(own, shared, tile, emit)
    _finish(anchor, nodes, outputs, levels, tile, emit)
    for side in sides:
        if side.level in summed:
            _finish_sums(side, batches, nodes, outputs, levels, emit)
    way = f"{tile.rows}x{tile.columns}" if tile.depth else "small"
    return emit.kernel("_".join(["matmul", way, *["sum"] * len(summed)]), tile.lanes, batches * across * down)


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand: `size` rows (columns), `extent` of them a workgroup, `each` an invocation."""

    source: Node
    size: int
    extent: int
    each: int
    letter: str

    @property
    def level(self) -> str:
        return LEFT if self.letter == "m" else RIGHT

    @property
    def sums(self) -> list[str]:
        return [f"sum_{name}" for name in _fours(self.letter, self.each)]

    @property
    def tile(self) -> str:
        return f"tile_{self.letter}"

    def at(self, batch: Sym, place: Sym, k: Sym) -> tuple[Sym, Sym, Sym]:
        return (batch, place, k) if self.letter == "m" else (batch, k, place)

    def places(self, first: str, count: int, emit: Emitter) -> list[Sym]:
        """`count` rows from `first` on; past the end the last one again, whose results nobody stores."""
        names = []
        for i in range(count):
            at = f"{first} + {i}u" if i else first
            names.append(emit.fresh(self.letter))
            emit.line(f"let {names[-1]} = {at if self.size % self.extent == 0 else f'min({at}, {self.size - 1}u)'};")
        return [variable(name, self.size) for name in names]

    def vectors(self, batch: Sym, places: list[Sym], k: Sym, emit: Emitter) -> list[str]:
        values = [emit.value(self.source, self.at(batch, place, k)) for place in places]
        fours = [values[at : at + 4] for at in range(0, len(values), 4)]
        return [f"{_vector(self.source.spec.dtype, len(four))}({', '.join(four)})" for four in fours]


def _where(conditions: list[str], emit: Emitter) -> AbstractContextManager[None]:
    return emit.block(f"if ({' && '.join(conditions)})") if conditions else nullcontext()


def _vector(dtype: DType, size: int) -> str:
    return f"{dtype.wgsl}" if size == 1 else f"vec{size}<{dtype.wgsl}>"


def _fours(name: object, size: int) -> list[str]:
    """Names for `size` numbers in vectors of four."""
    return [f"{name}"] if size <= 4 else [f"{name}_{at}" for at in range(size // 4)]


def _part(names: list[str], at: int, size: int) -> str:
    return names[0] if size == 1 else f"{names[at // 4]}.{'xyzw'[at % 4]}"


def _from_memory(
    sides: tuple[_Side, _Side], batch: Sym, depth: int, tile: Tile, emit: Emitter, summed: set[str]
) -> None:
    rows, columns = (side.places(f"own_{side.letter}", side.each, emit) for side in sides)
    first, step = ("slice", f"k += {tile.slices}u") if tile.slices > 1 else ("0u", "k++")
    with emit.block(f"for (var k = {first}; k < {depth}u; {step})"):
        k = variable("k", depth)
        a = [emit.let(four) for four in sides[0].vectors(batch, rows, k, emit)]
        b = [emit.let(four) for four in sides[1].vectors(batch, columns, k, emit)]
        _multiply((a, b), sides, tile, emit, summed)


def _through_tiles(
    sides: tuple[_Side, _Side], batch: Sym, depth: int, tile: Tile, emit: Emitter, summed: set[str]
) -> None:
    for side in sides:
        vector = _vector(side.source.spec.dtype, 4)
        emit.declarations.append(f"var<workgroup> {side.tile}: array<{vector}, {side.extent * tile.depth // 4}>;")
    with emit.block(f"for (var first_k = 0u; first_k < {depth}u; first_k += {tile.depth}u)"):
        for side in sides:
            _load(side, batch, depth, tile, emit)
        emit.line("workgroupBarrier();")
        share = tile.depth // tile.slices
        with emit.block(f"for (var at = 0u; at < {share}u; at += {STEPS}u)"):
            emit.line(f"let k = slice * {share}u + at;" if tile.slices > 1 else "let k = at;")
            for step in range(STEPS):
                k = f"(k + {step}u)" if step else "k"
                a, b = (
                    emit.let(f"{side.tile}[{k} * {side.extent // 4}u + (own_{side.letter} - first_{side.letter}) / 4u]")
                    for side in sides
                )
                _multiply(([a], [b]), sides, tile, emit, summed)
        emit.line("workgroupBarrier();")


def _load(side: _Side, batch: Sym, depth: int, tile: Tile, emit: Emitter) -> None:
    """One tile of an operand into workgroup memory: for each k, fours of rows. Neighbours read neighbours."""
    fours = side.extent // 4
    count = fours * tile.depth
    once = count == tile.lanes
    with emit.block("" if once else f"for (var at = lane; at < {count}u; at += {tile.lanes}u)"):
        if once:
            emit.line("let at = lane;")
        by, of = ("%", "/") if _is_contiguous_in_k(side) else ("/", "%")
        span = tile.depth if by == "%" else fours
        emit.line(f"let k_place = at {by} {span}u;")
        emit.line(f"let four = at {of} {span}u;")
        emit.line("let k = first_k + k_place;")
        emit.line(f"var four_of = {_vector(side.source.spec.dtype, 4)}();")
        with _where([f"k < {depth}u"] if depth % tile.depth else [], emit):
            places = side.places(f"first_{side.letter} + four * 4u", 4, emit)
            emit.line(f"four_of = {side.vectors(batch, places, variable('k', depth), emit)[0]};")
        emit.line(f"{side.tile}[k_place * {fours}u + four] = four_of;")


def _multiply(
    names: tuple[list[str], list[str]], sides: tuple[_Side, _Side], tile: Tile, emit: Emitter, summed: set[str]
) -> None:
    a, b = names
    for at, result in enumerate(tile.results):
        emit.line(f"{result} += {_part(a, at // len(b), tile.high)} * {b[at % len(b)]};")
    for own, side in zip(names, sides, strict=True):
        if side.level in summed:
            for total, name in zip(side.sums, own, strict=True):
                emit.line(f"{total} += {name};")


def _add_slices(names: list[str], shared: str, tile: Tile, emit: Emitter) -> None:
    """Adds what the slices of a block have found; all of them then have the sums."""
    for name in names:
        emit.line(f"{shared}[lane] = {name};")
        emit.line("workgroupBarrier();")
        with emit.block(f"for (var half = {tile.slices // 2}u; half > 0u; half >>= 1u)"):
            with emit.block("if (slice < half)"):
                emit.line(f"{shared}[lane] += {shared}[lane + half * {tile.blocks}u];")
            emit.line("workgroupBarrier();")
        emit.line(f"{name} = {shared}[block];")
        emit.line("workgroupBarrier();")


def _finish(
    anchor: Node, nodes: Sequence[Node], outputs: Sequence[Node], levels: dict[int, str], tile: Tile, emit: Emitter
) -> None:
    """Stores an invocation's results through the epilogue."""
    batches, m, n = anchor.spec.shape
    with _each_result(anchor.spec.dtype, tile, emit) as place:
        guards = [f"{name} < {size}u" for name, size, by in (("m", m, tile.rows), ("n", n, tile.columns)) if size % by]
        with _where(guards, emit):
            result = emit.let(rounded(place, anchor.spec.dtype))
            position = flatten((variable("batch", batches), variable("m", m), variable("n", n)), anchor.spec.shape)
            emit.define(anchor, position, result)
            _store(FULL, position, nodes, outputs, levels, emit)


@contextmanager
def _each_result(dtype: DType, tile: Tile, emit: Emitter) -> Iterator[str]:
    """A loop over an invocation's results, m and n: gives the text that stands for one."""
    width = min(tile.wide, 4)
    if emit.limits.emulated:  # A division takes as long there as many multiplications.
        parts = [_part([name], at, width) for name in tile.results for at in range(width)]
        emit.line(f"var results = array<{dtype.wgsl}, {len(parts)}>({', '.join(parts)});")
        with emit.block(f"for (var i = 0u; i < {tile.high}u; i++)"):
            emit.line("let m = own_m + i;")
            with emit.block(f"for (var j = slice; j < {tile.wide}u; j += {tile.slices}u)"):
                emit.line("let n = own_n + j;")
                yield f"results[i * {tile.wide}u + j]"
        return
    emit.line(f"var results = array<{_vector(dtype, width)}, {len(tile.results)}>({', '.join(tile.results)});")
    with emit.block(f"for (var at = slice; at < {tile.high * tile.wide}u; at += {tile.slices}u)"):
        emit.line(f"let m = own_m + at / {tile.wide}u;")
        emit.line(f"let n = own_n + at % {tile.wide}u;")
        yield f"results[at / {width}u]" + (f"[at % {width}u]" if width > 1 else "")


def _finish_sums(
    side: _Side, batches: int, nodes: Sequence[Node], outputs: Sequence[Node], levels: dict[int, str], emit: Emitter
) -> None:
    """Stores the sums over k of an operand: those do it who have the first column (row) of the result."""
    other = "n" if side.letter == "m" else "m"
    total = side.sums[0] if side.each == 1 else f"{side.sums[0]}[at]"
    if len(side.sums) > 1:
        vector = _vector(side.source.spec.dtype, 4)
        emit.line(f"var sums_{side.letter} = array<{vector}, {len(side.sums)}>({', '.join(side.sums)});")
        total = f"sums_{side.letter}[at / 4u][at % 4u]"
    with (
        emit.block(f"if (own_{other} == 0u && slice == 0u)"),
        emit.block(f"for (var at = 0u; at < {side.each}u; at++)"),
    ):
        emit.line(f"let {side.letter} = own_{side.letter} + at;")
        with _where([f"{side.letter} < {side.size}u"] if side.size % side.extent else [], emit):
            own = variable(side.letter, side.size)
            position = flatten((variable("batch", batches), own), (batches, side.size))
            for node in nodes:
                if levels[id(node)] == side.level and isinstance(node.op, Reduction):
                    emit.define(node, position, emit.let(rounded(total, node.spec.dtype)))
            _store(side.level, position, nodes, outputs, levels, emit)


def _store(
    level: str,
    position: Sym,
    nodes: Sequence[Node],
    outputs: Sequence[Node],
    levels: dict[int, str],
    emit: Emitter,
) -> None:
    """After every load: a result may take over the buffer that another one reads."""
    values = {id(node): emit.value(node, element(position, node)) for node in nodes if levels[id(node)] == level}
    for node in outputs:
        if levels[id(node)] == level:
            emit.store(node, position, values[id(node)])


def _is_contiguous_in_k(side: _Side) -> bool:
    """Whether stepping k steps one element in the memory below the views."""
    source = side.source
    names = ("batch", "m", "k") if side.letter == "m" else ("batch", "k", "n")
    at = tuple(variable(name, n) for name, n in zip(names, source.spec.shape, strict=True))
    while isinstance(source.op, Movement) and source.buffer is None:
        at, _ = source.op.index(at, source.inputs[0].spec.shape, **source.attrs)
        source = source.inputs[0]
    flat = flatten(at, source.spec.shape)
    return any(isinstance(atom, Var) and atom.name == "k" and factor == 1 for atom, factor in flat.terms)
