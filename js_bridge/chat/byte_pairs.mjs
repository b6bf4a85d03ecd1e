/** A byte-pair tokenizer and the text of chats, of the facts that an export has of them: what pywebgpu/models/byte_pairs.py does. */

/**
 * tokens, merges ("a b"), words: patterns that cut text, one after another.  special: ids that are recognised by their names.
 * bytes: the character that stands for each byte.  chat: what stands before, between and after messages.
 * @typedef {{ tokens: string[], merges: string[], words: string[], special: number[], bos: number | null, bytes: string[], stop: number[],
 *   title: string, length: number, chunk: number,
 *   chat: { begin: string, answer: string, next: string, end: string, system: [string, string] | null, trims?: boolean } }} Facts
 */
/** @typedef {{ role: "system" | "user" | "assistant", content: string }} Message */

export class BytePairs {
  /** @type {Map<string, number[]>} */
  #known = new Map();

  /** @param {Facts} facts */
  constructor(facts) {
    this.facts = facts;
    this.ids = new Map(facts.tokens.map((token, id) => [token, id]));
    this.ranks = new Map(facts.merges.map((merge, rank) => [merge, rank]));
    this.words = facts.words.map((pattern) => new RegExp(pattern, "gu"));
    this.special = new Map(facts.special.map((id) => [facts.tokens[id], id]));
    this.values = new Map(facts.bytes.map((character, byte) => [character, byte]));
    const names = [...this.special.keys()].sort((a, b) => b.length - a.length).map((name) => name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    this.names = new RegExp(names.length ? `(${names.join("|")})` : "(?!)", "gu");
  }

  /** The ids of a text; names of special tokens in it are those tokens. @param {string} text */
  encode(text) {
    const ids = text.split(this.names).flatMap((part, i) => (i % 2 ? [/** @type {number} */ (this.special.get(part))] : this.#plain(part)));
    const { bos } = this.facts;
    return bos === null || ids[0] === bos ? ids : [bos, ...ids];
  }

  /** The bytes of a token; none of a special one. @param {number} id */
  bytesOf(id) {
    const token = this.facts.tokens[id] ?? "";
    if (this.special.has(token)) return new Uint8Array();
    const bytes = Array.from(token, (character) => this.values.get(character));
    return bytes.includes(undefined) ? new TextEncoder().encode(token) : Uint8Array.from(/** @type {number[]} */ (bytes));
  }

  /** A conversation with an answer to come. @param {Message[]} messages */
  chat(messages) {
    const { begin, answer, next, end, system, trims } = this.facts.chat;
    let [text, before] = ["", begin];
    for (const { role, content } of messages) {
      const words = trims ? content.trim() : content;
      if (role === "system" && system) [text, before] = [system[0] + words, system[1]];
      else if (role !== "system") [text, before] = [text + before + words, role === "user" ? answer : next];
    }
    return this.encode(text + end);
  }

  /** @param {string} text */
  #plain(text) {
    let parts = text ? [text] : [];
    for (const pattern of this.words) parts = parts.flatMap((part) => cut(pattern, part));
    return parts.flatMap((part) => {
      let ids = this.#known.get(part);
      if (!ids) this.#known.set(part, (ids = this.#join(part)));
      return ids;
    });
  }

  /** The tokens of a word: the pair that was learned first is joined wherever it stands, then the next. @param {string} word */
  #join(word) {
    let parts = Array.from(new TextEncoder().encode(word), (byte) => this.facts.bytes[byte]);
    while (parts.length > 1) {
      let [best, rank] = ["", Infinity];
      for (let i = 1; i < parts.length; i++) {
        const pair = `${parts[i - 1]} ${parts[i]}`;
        const own = this.ranks.get(pair) ?? Infinity;
        if (own < rank) [best, rank] = [pair, own];
      }
      if (rank === Infinity) break;
      const joined = [];
      for (let i = 0; i < parts.length; i++) {
        if (i + 1 < parts.length && `${parts[i]} ${parts[i + 1]}` === best) joined.push(parts[i] + parts[++i]);
        else joined.push(parts[i]);
      }
      parts = joined;
    }
    return parts.map((part) => this.ids.get(part)).filter((id) => id !== undefined);
  }
}

/** The parts of a text that a pattern matches, and those between. @param {RegExp} pattern @param {string} text */
function cut(pattern, text) {
  const parts = [];
  let start = 0;
  for (const { 0: match, index } of text.matchAll(pattern)) {
    parts.push(text.slice(start, index), match);
    start = index + match.length;
  }
  parts.push(text.slice(start));
  return parts.filter(Boolean);
}
