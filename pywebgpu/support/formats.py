"""How elements lie in a buffer of a WebGPU device: several to a 32-bit word, one a word, or one over several words.

What lies in memory is not what is computed: a kernel unpacks an element into a register of its dtype's compute type,
and whoever stores one writes the whole word that it lies in. js_bridge/values.mjs holds the same sizes.
"""

from dataclasses import dataclass

WORD = 4  # bytes that a buffer's size is a multiple of, and the least that a kernel can write


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """`word`: what WGSL calls the elements of the array that is bound.

    unpack: WGSL for an element, of its word {0} and of the number of bits below it {1}.  pack: WGSL for an element's
    bits, the others 0, of the value {0}, which the dtype can hold. Both are empty where an element is the word.
    rounds: `pack` takes any float32, for the nearest that the dtype can hold.
    """

    name: str
    itemsize: int  # bytes of an element
    word: str
    unpack: str = ""
    pack: str = ""
    rounds: bool = False

    @property
    def per_word(self) -> int:
        """Elements that share a word; 1 where none do."""
        return max(WORD // self.itemsize, 1)

    def words(self, count: int) -> int:
        """Elements of the bound array that hold `count` of ours."""
        return -(-count // self.per_word)

    def nbytes(self, count: int) -> int:
        """Bytes that `count` elements take in a buffer: whole words."""
        return -(-count * self.itemsize // WORD) * WORD

    def room(self, count: int) -> int:
        """Bytes of a buffer for them: no buffer is empty."""
        return max(WORD, self.nbytes(count))


F32, I32, U32 = (Format(name, 4, name) for name in ("f32", "i32", "u32"))
F16 = Format("f16", 2, "u32", "unpack2x16float({0} >> {1}).x", "p_half_bits({0})", rounds=True)
BF16 = Format("bf16", 2, "u32", "bitcast<f32>(({0} >> {1}) << 16u)", "p_bfloat_bits({0})", rounds=True)
I16 = Format("i16", 2, "u32", "(bitcast<i32>({0} << (16u - {1})) >> 16u)", "(bitcast<u32>({0}) & 0xffffu)")
I8 = Format("i8", 1, "u32", "(bitcast<i32>({0} << (24u - {1})) >> 24u)", "(bitcast<u32>({0}) & 0xffu)")
U16 = Format("u16", 2, "u32")  # No kernel has it, nor the next.
F8 = Format("f8", 1, "u32")
U8 = Format("u8", 1, "u32", "(({0} >> {1}) & 0xffu)", "{0}")
C32 = Format("c32", 4, "u32", "unpack2x16float({0})", "(p_half_bits({0}.x) | (p_half_bits({0}.y) << 16u))", rounds=True)
C64 = Format("c64", 8, "vec2<f32>")  # real part, imaginary part
F64 = Format("f64", 8, "vec2<u32>")  # No kernel computes with it: WGSL has no such type.
U64 = Format("u64", 8, "vec2<u32>")
C128 = Format("c128", 16, "vec4<u32>")

WIDE = {"f32": F32, "i32": I32, "u32": U32}  # by compute type: an element a word, whatever the dtype
