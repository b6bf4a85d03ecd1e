"""How workgroups of one dispatch tell each other a number: words of the device that lie behind its fault words.

A workgroup that starts takes a ticket, and the tickets of a dispatch share its tag. A number is two words, each with
half of it beside the tag: a half is right or is not there, in whatever order memory shows the two. The last ticket
starts the next tag, and each dispatch leaves its tag in all words, so that none is older than one dispatch. WGSL does
not promise that a workgroup runs on while another waits: a wait ends after a while, and its caller must be able to do
without.
"""

FAULTS = 4  # words of the device that come before
NUMBERS = 1 << 10  # that workgroups can tell, at most
WORDS = FAULTS + 2 + 2 * NUMBERS  # All of the device; as js_bridge/bridge.mjs has it.
PATIENCE = 512  # loads, until a number is given up

_FIRST = FAULTS + 2

TEXTS = (
    # Tickets count in the lower half, runs in the upper one. Memory that is new has the tag of no first run.
    f"""fn p_mark_ticket(groups: u32) -> u32 {{
  let ticket = atomicAdd(&fault[{FAULTS}], 1u);
  if ((ticket & 0xffffu) == groups - 1u) {{ atomicStore(&fault[{FAULTS}], (ticket & 0xffff0000u) + 0x10000u); }}
  return ticket ^ 0xffff0000u;
}}""",
    f"""fn p_mark_word(number: u32, tag: u32, bits: u32) -> u32 {{
  atomicStore(&fault[{_FIRST}u + 2u * number], tag | (bits & 0xffffu));
  atomicStore(&fault[{_FIRST + 1}u + 2u * number], tag | (bits >> 16u));
  return bits;
}}""",
    f"""fn p_mark_rest(first: u32, step: u32, tag: u32) -> u32 {{
  for (var number = first; number < {NUMBERS}u; number += step) {{ p_mark_word(number, tag, 0u); }}
  return tag;
}}""",
    # The number, and whether it was there.
    f"""fn p_mark_wait(number: u32, tag: u32) -> vec2<u32> {{
  for (var left = {PATIENCE}u; left > 0u; left--) {{
    let low = atomicLoad(&fault[{_FIRST}u + 2u * number]) ^ tag;
    let high = atomicLoad(&fault[{_FIRST + 1}u + 2u * number]) ^ tag;
    if (((low | high) >> 16u) == 0u) {{ return vec2<u32>(low | (high << 16u), 1u); }}
  }}
  return vec2<u32>(0u, 0u);
}}""",
)
