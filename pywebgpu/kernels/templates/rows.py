"""Reductions over the same rows, with pointwise work before, between and after, in one kernel: see rows_kernel.py."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from pywebgpu import dtypes
from pywebgpu.ir.graph import Node, Op, Reduction, Structural
from pywebgpu.kernels import families
from pywebgpu.kernels.access import Edges, gathers, read_at
from pywebgpu.kernels.builder import Builder
from pywebgpu.kernels.iteration_space import IterationSpace, folded
from pywebgpu.kernels.kernel import Kernel, Limits
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.target import SUBGROUPS, Features, Target
from pywebgpu.kernels.template import REPEAT_COST, Computation, Domain, Template
from pywebgpu.kernels.templates import rows_kernel
from pywebgpu.kernels.templates.rows_blocks import each_of
from pywebgpu.kernels.templates.rows_kernel import EXTREMES, folds, is_positional, together
from pywebgpu.kernels.templates.rows_walk import BLOCK, FULL, HELD, HELD_ALONE, ONE_BY_ONE, OUTER, SHUFFLED, is_along
from pywebgpu.ops import reduction
from pywebgpu.support.formats import WORD
from pywebgpu.support.symbolic import Sym, variable

WIDTH = 64  # invocations of a workgroup that has several rows: what it shares is cleared first, which takes time
SECTOR = 8  # neighbours in memory that are as cheap to read as one
BUSY = 64  # workgroups that keep a device busy
ALONE = 1 << 18  # rows that keep a device busy with an invocation each
# Families of adapters whose subgroups are neighbours by their numbers in the workgroup, which WGSL does not promise.
IN_ORDER = ("nvidia", "amd", "apple", "intel", "llvmpipe", "swiftshader")
FEW = 32  # invocations that keep a CPU's cores busy: where there are as many rows, each has one
SHARE = 64  # columns, at least, for each of several that share a row there
MANY, SPREAD = 256, 4096  # sums of columns, which are as many rows: a device's cores get a few workgroups each, or none
LONG = 2048  # elements of such a sum, at most: more of them take longer than a dispatch does
TINY = 1 << 12  # elements of all rows, however they lie: a few workgroups add them up in less than a dispatch takes
WIDE = 16  # invocations of a subgroup that are worth to shuffle
SUBGROUP_OF = {"nvidia": 32}
PARTS = 16  # subgroups that share a row, at most
MANY_ROWS = 16  # for each core: then each row has one subgroup
VECTOR, VECTORS = 4, 8  # columns of an invocation, at least, and where rows are few
INDEPENDENT_LANES = 128  # invocations of a workgroup whose rows do not wait for one another
TREES = 12  # reductions of one kernel: each takes its share of workgroup memory


class RowsTemplate(Template):
    """Levels: FULL, a node has an element for each of a row; OUTER, one a row; BLOCK, a row for each few rows.

    Problem: rows, columns; formats of results of which several share a word, one a row; layout "along" where neighbours
    in memory lie in one row, "blocks" where rows are added up besides, else "across".
    Launch: threads, of which `split` share a row; SHUFFLED: of these `each` add what they have by shuffles.
    """

    name = "rows"
    absorbs = frozenset({"pointwise", name})
    siblings = frozenset({name})
    repeats = REPEAT_COST
    effort = 1
    has_prologue = True
    packs_own = True

    def matches(self, op: Op, target: Target) -> bool:
        return isinstance(op, Reduction) or op in EXTREMES or op is reduction.sum_rows

    def start(self, node: Node) -> Domain:
        level, space = _own(node)
        return Domain({id(node): level}, space)

    def joined(self, nodes: Sequence[Node], edges: Edges, parts: tuple[Domain, Domain]) -> Domain | None:
        space = next((part.space for part in parts if part.space is not None), None)
        assert space is not None
        if space.columns <= 1 or space.rows == 0:
            return None
        if len(together(nodes)) > TREES or len({each_of([node]) for node in nodes if _adds(node)}) > 1:
            return None
        levels = levels_of(nodes, edges, space)
        if levels is None:
            return None
        return Domain(levels, space)

    def packs(self, work: Computation, node: Node, each: int) -> bool:
        space = work.domain.space
        assert space is not None
        return work.domain.levels[id(node)] == OUTER or (space.columns % each == 0 and _is_row_major(space))

    def part(self, nodes: Sequence[Node], domain: Domain) -> Domain:
        known = domain.levels
        levels = {
            id(node): OUTER if known[id(node)] not in (FULL, BLOCK) else known[id(node)] for node in nodes if known
        }
        first = next(node for node in nodes if folds(node) or _adds(node))
        return Domain(levels, domain.space or _own(first)[1])

    def is_worthwhile(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        space = work.domain.space
        assert space is not None
        limits = target.limits
        pairs = [is_positional(fold) or fold[0].op.name == "prod" for fold in together(work.nodes)]
        words = [node for node in work.nodes if node.spec.dtype.format.per_word > 1 and escapes(node)]
        small = [node for node in words if work.domain.levels[id(node)] == OUTER]
        arrays = len(pairs) + sum(pairs) + len(small)
        if arrays > limits.shared_bytes // (WORD * limits.workgroup_size) or (small and any(map(_adds, work.nodes))):
            return False
        if _are_stored_rows_fast(space):
            return True
        return not any(work.domain.levels[id(node)] == FULL and escapes(node) for node in work.nodes)

    def is_small(self, work: Computation, escapes: Callable[[Node], bool], target: Target) -> bool:
        space = work.domain.space
        assert space is not None
        are_sums = not is_along(space) and MANY <= space.rows <= SPREAD and space.columns <= LONG
        if target.limits.emulated or not (are_sums or space.rows * space.columns <= TINY):
            return False
        return not any(work.domain.levels[id(node)] == FULL and escapes(node) for node in work.nodes)

    def written_at(self, work: Computation, result: Node, escapes: Callable[[Node], bool]) -> Sym | None:
        space = work.domain.space
        assert space is not None
        large = [node for node in work.nodes if work.domain.levels[id(node)] == FULL and escapes(node)]
        if work.domain.levels[id(result)] == FULL:
            # Rows are written after all folds, each element by the lane that alone reads it, in each pass.
            return space.full() if all(node.spec.dtype.format.per_word == 1 for node in large) else None
        # A later pass over the row, or another lane of it, would read what an earlier one wrote.
        return None if large or any(map(_adds, work.nodes)) else variable("row", space.rows)

    def reads_on_level(self, work: Computation, node: Node, result: Node) -> bool:
        if gathers(node.op):
            return False
        if work.domain.levels[id(result)] == FULL:
            return folds(node) or work.domain.levels[id(node)] != OUTER
        return not folds(node) and work.domain.levels[id(node)] == OUTER

    def problem(self, work: Computation, build: Builder) -> Problem:
        space = work.domain.space
        assert space is not None
        small = [node for node in work.outputs if work.domain.levels[id(node)] == OUTER]
        packed = sorted({node.spec.dtype.name for node in small if node.spec.dtype.format.per_word > 1})
        layout = "blocks" if any(map(_adds, work.nodes)) else "along" if is_along(space) else "across"
        return Problem((space.rows, space.columns), tuple(packed), layout)

    def launches(self, problem: Problem, target: Target) -> Sequence[Launch]:
        rows, columns = problem.sizes
        each = max([dtypes.BY_NAME[name].format.per_word for name in problem.formats], default=1)
        limit, is_along = _power_below(target.limits.workgroup_size), problem.layout != "across"
        first = _with_words(_rule(rows, columns, is_along, target.limits), each)
        threads = [size for size in (WIDTH, 128, 256) if size <= limit]
        most = min(_power(columns), limit)
        splits = [split for split in (1 << exponent for exponent in range(11)) if split <= most]
        others = [Launch(threads=size, split=split) for size in threads for split in splits if split * each <= size]
        launches = [first, *(launch for launch in others if launch != first)]
        shuffled = in_one_subgroup(target.features) if is_along else 0
        ways = [(launch, min(shuffled, launch.split)) for launch in launches]
        ways = [(launch, of) for launch, of in ways if of > 1 and launch.split <= PARTS * of]
        by_subgroups = [launch._replace(variant=SHUFFLED, each=(of,)) for launch, of in ways]
        if shuffled >= WIDE and not target.limits.emulated:
            best = _with_words(_subgroup_rule(problem, shuffled, limit, _cores(target.features)), each)
            if best.split > 1:
                launches.insert(0, best._replace(variant=SHUFFLED, each=(min(shuffled, best.split),)))
            launches = list(dict.fromkeys([*launches[:2], *by_subgroups, *launches[2:]]))
        else:
            launches += by_subgroups
        if problem.layout == "blocks":  # Rows are held.
            held = {
                launch: _held(problem.layout, columns, launch.each[0] if launch.split in launch.each else 0)
                for launch in launches
            }
            launches = [launch for launch in launches if held[launch] * launch.split >= columns > 2 * launch.split]
        return launches

    def write(self, work: Computation, launch: Launch, build: Builder) -> Kernel:
        return rows_kernel.write(work, launch, build)


def _cores(features: Features) -> int:
    return features.cores or families.of(features).cores


def levels_of(nodes: Sequence[Node], edges: Edges, space: IterationSpace) -> dict[int, str] | None:
    """By id, the level of each of some nodes; None where they are not computed of such rows."""
    levels: dict[int, str] = {}
    for node in nodes:
        level = _level(node, space)
        if level is None or not reads_its_own(node, level, edges, levels, space):
            return None
        levels[id(node)] = level
    return levels


def in_one_subgroup(features: Features) -> int:
    """How many neighbours surely lie in one subgroup, as a power of two; 0 where that is not known."""
    if SUBGROUPS not in features or features.family not in IN_ORDER:
        return 0
    # wgpu-native tells what Vulkan allows everywhere.
    return SUBGROUP_OF.get(features.family) or _power_below(features.subgroup_sizes[0])


def _subgroup_rule(problem: Problem, shuffled: int, limit: int, cores: int) -> Launch:
    """Many rows have a subgroup each, which waits for no other; of few rows each has as many as can share it."""
    rows, columns = problem.sizes
    is_alone = rows >= MANY_ROWS * cores
    held = VECTORS if not is_alone else _held(problem.layout, columns, shuffled)
    lanes = min(max(_power(-(-columns // held)), min(shuffled, _power(-(-columns // VECTOR)))), limit)
    threads = lanes if problem.layout == "blocks" else max(min(INDEPENDENT_LANES, limit), lanes)
    return Launch(threads=threads, split=lanes)


def _held(layout: str, columns: int, shuffled: int) -> int:
    """Columns of an invocation, at most: of rows that are added up besides many only where a subgroup has a row."""
    return HELD if layout == "blocks" and columns > HELD_ALONE * shuffled else HELD_ALONE


def _rule(rows: int, columns: int, along: bool, limits: Limits) -> Launch:
    """For devices that nobody has measured."""
    limit = _power_below(limits.workgroup_size)  # A tree halves its lanes.
    if limits.emulated:
        wanted = max(_power(FEW // max(rows, 1)), _power(columns // ONE_BY_ONE))
        lanes = min(wanted, _power(columns // SHARE), WIDTH, limit)
        size = max(min(_power(rows * lanes // FEW), WIDTH, limit), 4, lanes)
    elif along:
        lanes = min(_power(-(-columns // HELD)), limit)
        size = min(limit, WIDTH)
    else:
        group_rows = min(_power(rows), limit, 32 if columns > 8 and rows < ALONE else limit)
        while group_rows > SECTOR and rows < BUSY * group_rows and limit // group_rows < columns:
            group_rows //= 2
        lanes = min(limit // group_rows, _power(columns))
        size = limit
    return Launch(threads=max(size // lanes, 1) * lanes, split=lanes)


def _with_words(launch: Launch, each: int) -> Launch:
    """The same with at least so many rows in a workgroup: it writes the words that they share."""
    if launch.threads >= launch.split * each:
        return launch
    threads = max(_power_below(launch.threads), each)
    return launch._replace(threads=threads, split=threads // each)


def _are_stored_rows_fast(space: IterationSpace) -> bool:
    """Elements of a row lie together: writing whole rows is as fast as writing in order."""
    rank = len(space.shape)
    trailing = space.axes == tuple(range(rank - len(space.axes), rank))
    return trailing and (space.rows >= 16 or space.columns <= 4096)


def _is_row_major(space: IterationSpace) -> bool:
    """Whether neighbours in memory are neighbours in a row."""
    return space.full() == variable("row", space.rows) * space.columns + variable("column", space.columns)


def _level(node: Node, space: IterationSpace) -> str | None:
    """On which level a node of such rows has its elements; None where it has them on none."""
    rows, columns = space.rows, space.columns
    if folds(node) or _adds(node):
        level, own = _own(node)
        same = own == space or (own.rows, own.columns, own.full()) == (rows, columns, space.full())
        return level if same else None
    size = prod(node.spec.shape)
    return FULL if size == rows * columns else OUTER if size == rows else None


def _adds(node: Node) -> bool:
    """Whether a node adds up rows."""
    return node.op is reduction.sum_rows


def _own(node: Node) -> tuple[str, IterationSpace]:
    """On which level a node that folds or adds up rows has its elements, of which rows."""
    return (BLOCK, IterationSpace(node.inputs[0].spec.shape, (1,))) if _adds(node) else (OUTER, folded(node))


def reads_its_own(node: Node, level: str, edges: Edges, levels: Mapping[int, str], space: IterationSpace) -> bool:
    """Whether what a node reads of its kernel is what was computed there. levels: of the nodes before it."""
    full, row = space.full(), variable("row", space.rows)
    is_fold = folds(node)
    start = full if is_fold or level != OUTER else row
    for producer, chain, shape in edges[id(node)]:
        if id(producer) not in levels:
            continue
        if levels[id(producer)] == BLOCK:
            return False
        if isinstance(node.op, Structural) and node.op.by_element:
            return False
        wanted = full if levels[id(producer)] == FULL else row
        if level == OUTER and not is_fold and wanted is full:
            return False
        if read_at(start, shape, chain) != wanted:
            return False
    return True


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def _power_below(n: int) -> int:
    """The largest power of two that is not above."""
    return 1 << (n.bit_length() - 1)
