"""Batched matrix product with holes: operands are any nodes read at (batch, row, k), results pass through an epilogue.

Tiles of both operands go through workgroup memory; each invocation keeps a small block of results in registers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pywebgpu.graph.ir import Movement, Node
from pywebgpu.kernels.emit import Emitter, element, rounded
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.symbolic import Sym, Var, flatten, variable


@dataclass(frozen=True, slots=True)
class Tile:
    """A workgroup's block of the result: rows x columns, `depth` of k at a time, `high` x `wide` an invocation."""

    rows: int
    columns: int
    depth: int
    high: int
    wide: int

    @property
    def lanes(self) -> int:
        return (self.rows // self.high) * (self.columns // self.wide)


TILES = (Tile(64, 64, 16, 4, 4), Tile(32, 32, 16, 2, 2), Tile(16, 16, 16, 1, 1), Tile(8, 8, 16, 1, 1))


def choose(m: int, n: int, limits: Limits) -> Tile:
    """The largest tile that the result fills at least by half."""
    for tile in TILES[:-1]:
        if tile.lanes <= limits.workgroup_size and ((tile.rows <= m and tile.columns <= n) or tile is TILES[-2]):
            return tile
    return TILES[-1]


def generate(anchor: Node, nodes: Sequence[Node], outputs: Sequence[Node], emit: Emitter) -> Kernel:
    left, right = anchor.inputs
    batches, m, n = anchor.spec.shape
    depth = left.spec.shape[2]
    tile = choose(m, n, emit.limits)
    across, down = -(-n // tile.columns), -(-m // tile.rows)
    kind = anchor.spec.dtype.wgsl
    emit.declarations += [
        f"var<workgroup> tile_a: array<{kind}, {tile.rows * tile.depth}>;",
        f"var<workgroup> tile_b: array<{kind}, {tile.depth * tile.columns}>;",
    ]
    per_row = tile.columns // tile.wide
    emit.line(f"let batch = group / {across * down}u;")
    emit.line(f"let first_m = (group / {across}u) % {down}u * {tile.rows}u;")
    emit.line(f"let first_n = group % {across}u * {tile.columns}u;")
    emit.line(f"let own_m = lane / {per_row}u * {tile.high}u;")
    emit.line(f"let own_n = lane % {per_row}u * {tile.wide}u;")
    results = [[emit.fresh("r") for _ in range(tile.wide)] for _ in range(tile.high)]
    for names in results:
        for name in names:
            emit.line(f"var {name} = {kind}(0);")
    batch = variable("batch", batches)
    if depth:
        with emit.block(f"for (var first_k = 0u; first_k < {depth}u; first_k += {tile.depth}u)"):
            _load(left, batch, m, depth, tile, emit, rows_first=True)
            _load(right, batch, n, depth, tile, emit, rows_first=False)
            emit.line("workgroupBarrier();")
            _multiply(results, tile, emit)
            emit.line("workgroupBarrier();")
    for i, names in enumerate(results):
        for j, name in enumerate(names):
            _finish(anchor, nodes, outputs, emit, name, batch, i, j)
    return emit.kernel(f"matmul_{tile.rows}x{tile.columns}", tile.lanes, batches * across * down)


def _load(source: Node, batch: Sym, size: int, depth: int, tile: Tile, emit: Emitter, *, rows_first: bool) -> None:
    """One tile of an operand into workgroup memory, stored k-major. Neighbouring invocations read neighbours."""
    name, extent, first = ("tile_a", tile.rows, "first_m") if rows_first else ("tile_b", tile.columns, "first_n")
    lanes = tile.lanes
    along_k = _is_contiguous_in_k(source, rows_first)
    for part in range(-(-extent * tile.depth // lanes)):
        at = emit.let(f"lane + {part * lanes}u")
        major, minor = (f"{at} / {tile.depth}u", f"{at} % {tile.depth}u") if along_k else (
            f"{at} % {extent}u", f"{at} / {extent}u"
        )  # fmt: skip
        place, k_place = emit.let(major), emit.let(minor)
        outer, inner = emit.fresh("m"), emit.fresh("k")
        emit.line(f"let {outer} = {first} + {place};")
        emit.line(f"let {inner} = first_k + {k_place};")
        value = emit.fresh()
        emit.line(f"var {value} = {source.spec.dtype.wgsl}(0);")
        outer_at, inner_at = variable(outer, size), variable(inner, depth)
        guard = f"if ({outer} < {size}u && {inner} < {depth}u)"
        with emit.block(guard):
            at_source = (batch, outer_at, inner_at) if rows_first else (batch, inner_at, outer_at)
            emit.line(f"{value} = {emit.value(source, at_source)};")
        store = f"{name}[{k_place} * {extent}u + {place}] = {value};"
        if (part + 1) * lanes > extent * tile.depth:
            store = f"if ({at} < {extent * tile.depth}u) {{ {store} }}"
        emit.line(store)


def _is_contiguous_in_k(source: Node, rows_first: bool) -> bool:
    """Whether stepping k steps one element in the memory below the views."""
    names = ("b", "m", "k") if rows_first else ("b", "k", "m")
    at = tuple(variable(name, n) for name, n in zip(names, source.spec.shape, strict=True))
    while isinstance(source.op, Movement) and source.buffer is None:
        at, _ = source.op.index(at, source.inputs[0].spec.shape, **source.attrs)
        source = source.inputs[0]
    flat = flatten(at, source.spec.shape)
    return any(isinstance(atom, Var) and atom.name == "k" and factor == 1 for atom, factor in flat.terms)


def _multiply(results: list[list[str]], tile: Tile, emit: Emitter) -> None:
    with emit.block(f"for (var k = 0u; k < {tile.depth}u; k++)"):
        rows = [emit.let(f"tile_a[k * {tile.rows}u + own_m + {i}u]") for i in range(tile.high)]
        columns = [emit.let(f"tile_b[k * {tile.columns}u + own_n + {j}u]") for j in range(tile.wide)]
        for names, a in zip(results, rows, strict=True):
            for name, b in zip(names, columns, strict=True):
                emit.line(f"{name} += {a} * {b};")


def _finish(
    anchor: Node, nodes: Sequence[Node], outputs: Sequence[Node], emit: Emitter, name: str, batch: Sym, i: int, j: int
) -> None:
    """Stores one result through the epilogue."""
    _, m, n = anchor.spec.shape
    with emit.block(f"if (first_m + own_m + {i}u < {m}u && first_n + own_n + {j}u < {n}u)"):
        row, column = emit.fresh("m"), emit.fresh("n")
        emit.line(f"let {row} = first_m + own_m + {i}u;")
        emit.line(f"let {column} = first_n + own_n + {j}u;")
        position = flatten((batch, variable(row, m), variable(column, n)), anchor.spec.shape)
        emit.define(anchor, position, rounded(name, anchor.spec.dtype))
        values = {id(node): emit.value(node, element(position, node)) for node in nodes}
        for node in outputs:  # After every load: a result may take over the buffer that another one reads.
            emit.store(node, position, values[id(node)])
