"""How a whole file is damaged: its bytes, its lengths, its JSON, its pickles. All is drawn from one random.Random."""

import copy
import json
import pickletools
import random
import zipfile
from io import BytesIO
from typing import Any

NUMBERS = (0, 1, 2, 3, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0.5, -0.0, 1e300, *NUMBERS, 10**400, "", "x", "float32", "F64", "__proto__", "é" * 300,
    [], [0], [1] * 65, [2**62] * 70, [[]], {}, {"a": {}}, [0, 2**62, 2**62], float("nan"), float("inf"), "\ud800",
)  # fmt: skip
# Opcodes with arguments that are odd, each a whole one.
OPCODES = (
    b"(", b")", b"]", b"}", b"\x8f", b"N", b"\x88", b"0", b"1", b"2", b"a", b"e", b"s", b"u", b"t", b"\x85", b"\x86",
    b"\x87", b"l", b"d", b"R", b"b", b"Q", b"\x81", b"\x91", b"\x90", b"\x94", b"\x93", b"\x82\x01", b".",
    b"K\x05", b"J\xff\xff\xff\xff", b"\x8a\x08" + b"\xff" * 7 + b"\x7f", b"\x8a\xff" + b"\x01" * 255, b"I1\n", b"Lx\n",
    b"L" + b"9" * 5000 + b"L\n", b"G" + b"\x7f\xf0" + b"\0" * 6, b"X\x01\0\0\0a", b"X\xff\xff\xff\x7f",
    b"\x8e" + b"\xff" * 8, b"B\xff\xff\xff\xff", b"q\0", b"h\0", b"r\xff\xff\xff\xff", b"j\xff\xff\xff\xff",
    b"\x95" + b"\xff" * 8, b"cos\nsystem\n", b"ctorch\nfloat32\n", b"ctorch\nFloatStorage\n", b"ctorch\nSize\n",
    b"ccollections\nOrderedDict\n", b"ccollections\nCounter\n", b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"c__builtin__\nset\n", b"c_codecs\nencode\n", b"ctorch\ndevice\n",
)  # fmt: skip


def of_bytes(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """Flips, cuts, splices, and numbers written over what may be a length."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at = draw.randrange(len(out) + 1)
        size = draw.choice((1, 4, 16, 100))
        match draw.randrange(7):
            case 0:
                for _ in range(draw.randint(1, 8)):
                    flipped = draw.randrange(max(1, len(out)))
                    out[flipped : flipped + 1] = bytes([draw.choice(out or b"\0") ^ 1 << draw.randrange(8)])
            case 1:
                del out[at:]
            case 2:
                del out[at : at + size]
            case 3:
                begin = draw.randrange(len(out) + 1)
                out[at:at] = out[begin : begin + size] * draw.choice((1, 1, 20))
            case 4:
                other = draw.choice(others)
                begin = draw.randrange(len(other))
                out[at : at + draw.choice((0, size))] = other[begin : begin + size]
            case 5:
                width = draw.choice((2, 4, 8))
                at -= at % draw.choice((1, 2, 4))
                out[at : at + width] = (draw.choice((*NUMBERS, len(data))) % 256**width).to_bytes(width, "little")
            case 6:
                out[at : at + 1] = b"%d" % draw.choice(NUMBERS)
    return bytes(out)


def of_json(value: Any, draw: random.Random) -> Any:
    """The value, a few parts of which are replaced, moved, or gone now."""
    root = [value]
    for _ in range(draw.choice((1, 1, 2, 3))):
        holders = list(_holders(root))
        holder = draw.choice(holders)
        key = draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        found = holder[key]
        match draw.randrange(6):
            case 0 if holder is not root:
                del holder[key]
            case 1:
                holder[key] = copy.deepcopy(draw.choice(_values(root)))
            case 2 if isinstance(found, int):
                holder[key] = found + draw.choice((-256, -4, -1, 1, 4, 256))
            case 3 if isinstance(found, list):
                found.insert(draw.randrange(len(found) + 1), copy.deepcopy(draw.choice((*VALUES, *found))))
            case 4 if draw.randrange(20) == 0:
                for _ in range(draw.choice((1, 50, 3000))):
                    found = [found]
                holder[key] = found
                break  # What comes after it could not be copied.
            case _:
                holder[key] = copy.deepcopy(draw.choice(VALUES))
    return root[0]


def text_of(value: Any) -> bytes:
    """JSON of anything; what no JSON has (NaN, halves of surrogates) as Python writes it."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 5000


def of_pickle(data: bytes, draw: random.Random) -> bytes:
    """Opcodes of a pickle removed, repeated, exchanged, or put in."""
    places = [place for _, _, place in pickletools.genops(data) if place is not None]
    parts = [data[begin:end] for begin, end in zip(places, [*places[1:], len(data)], strict=True)]
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(parts))
        match draw.randrange(5):
            case 0 if len(parts) > 1:
                del parts[at]
            case 1:
                parts[at:at] = parts[at : at + draw.choice((1, 5))] * draw.choice((1, 30))
            case 2:
                other = draw.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts[at] = parts[at][:1] + draw.randbytes(len(parts[at]) - 1)
            case _:
                parts[at:at] = [draw.choice(OPCODES)] * draw.choice((1, 1, 2, 40))
    return b"".join(parts)


def of_archive(data: bytes, draw: random.Random) -> bytes:
    """An archive whose pickle, or one other file, is another, with checksums that are right."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice([name for name in files if name.endswith("data.pkl")] * 4 + list(files))
    if name.endswith("data.pkl"):
        files[name] = of_pickle(files[name], draw)
    else:
        files[name] = of_bytes(files[name], list(files.values()), draw)
    if draw.randrange(10) == 0:
        del files[draw.choice(list(files))]
    out = BytesIO()
    with zipfile.ZipFile(out, "w", draw.choice((zipfile.ZIP_STORED,) * 9 + (zipfile.ZIP_DEFLATED,))) as made:
        for title, content in files.items():
            made.writestr(title, content)
    return out.getvalue()


def of_stream(data: bytes, n_pickles: int, draw: random.Random) -> bytes:
    """A file of several pickles, one of which is another."""
    file, ends = BytesIO(data), [0]
    for _ in range(n_pickles):
        for _ in pickletools.genops(file):
            pass
        ends.append(file.tell())
    at = draw.choice((0, 1, 2, 3, 3, 3, 3, 4))
    return data[: ends[at]] + of_pickle(data[ends[at] : ends[at + 1]], draw) + data[ends[at + 1] :]


def of_header(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file with other JSON in its header, and a length that fits."""
    size = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:size])
    told = header.get("__metadata__", {}).get("pywebgpu")
    if told is not None and draw.randrange(2):  # What puts a checkpoint together is JSON inside JSON.
        header["__metadata__"]["pywebgpu"] = text_of(of_json(json.loads(told), draw)).decode("utf-8", "replace")
    else:
        header = of_json(header, draw)
    text = text_of(header)
    return len(text).to_bytes(8, "little") + text + data[size:]


def _holders(value: Any) -> Any:
    """Every container that holds something, by a stack: nests are deep here."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list) and one:
            yield one
            waiting.extend(one.values() if isinstance(one, dict) else one)


def _values(root: Any) -> list[Any]:
    return [item for one in _holders(root) for item in (one.values() if isinstance(one, dict) else one)]
