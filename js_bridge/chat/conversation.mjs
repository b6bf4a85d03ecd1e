/** A conversation with an exported language model: it reads what is new, and samples token by token. */

import { BytePairs } from "./byte_pairs.mjs";

/** temperature: 0 takes the likeliest token.  topP: draw from the likeliest that have so much together. @typedef {{ temperature: number, topP: number }} Sampling */

export class Conversation {
  /** @type {import("./byte_pairs.mjs").Message[]} */
  messages = [];
  /** How many were sampled. */
  tokens = 0;
  /** What the cache holds, and the token after it. @type {number[]} */
  #ids = [];
  #player;
  #facts;

  /** @param {import("./player.d.mts").Player} player @param {import("./byte_pairs.mjs").Facts} facts */
  constructor(player, facts) {
    this.#player = player;
    this.#facts = facts;
    this.tokenizer = new BytePairs(facts);
    for (const name of Object.keys(player.options)) {
      if (name.startsWith("seed")) player.options[name] = crypto.getRandomValues(new Uint32Array(1))[0];
    }
  }

  /** From its beginning. @param {string} system who the model is; "": what it is anyway */
  begin(system = "") {
    this.messages = system ? [{ role: "system", content: system }] : [];
  }

  /**
   * What the model answers, in pieces of whole characters. It counts as said as far as it was taken.
   * @param {string} text @param {Sampling} sampling
   */
  async *reply(text, { temperature, topP } = { temperature: 0, topP: 1 }) {
    const { length, stop } = this.#facts;
    const ids = this.tokenizer.chat([...this.messages, { role: "user", content: text }]);
    if (ids.length >= length) throw new Error(`The conversation has ${ids.length} tokens; there is room for ${length}.`);
    const answer = { role: /** @type {const} */ ("assistant"), content: "" };
    this.messages.push({ role: "user", content: text }, answer);
    const program = temperature > 0 ? "drawn" : "greedy";
    const decoder = new TextDecoder();
    this.#player.params.set({ numbers: [temperature, 0, topP, 0, 1] });
    let token = await this.#read(`${program} read`, ids);
    for (;;) {
      this.#ids.push(token);
      this.tokens++;
      const isOver = stop.includes(token) || this.#ids.length > length;
      const piece = isOver ? decoder.decode() : decoder.decode(this.tokenizer.bytesOf(token), { stream: true });
      answer.content += piece;
      if (piece) yield piece;
      if (isOver) return;
      token = await this.#next(program, {});
    }
  }

  /** Reads a prompt but for what it shares with the tokens that were read. Returns the token after it. @param {string} program @param {number[]} ids */
  async #read(program, ids) {
    const { chunk } = this.#facts;
    let shared = 0;
    while (shared < Math.min(ids.length, this.#ids.length) - 1 && ids[shared] === this.#ids[shared]) shared++;
    this.#player.params.set({ used: [shared] });
    this.#ids = [...ids];
    let token = 0;
    for (let begin = shared; begin < ids.length; begin += chunk) {
      const part = ids.slice(begin, begin + chunk);
      const last = part.length - 1;
      token = await this.#next(program, { ids: [...part, ...new Array(chunk - part.length).fill(0)], last });
    }
    return token;
  }

  /** @param {string} program @param {Record<string, any>} inputs */
  async #next(program, inputs) {
    const { data } = /** @type {import("./player.d.mts").Tensor} */ (await this.#player.run(program, inputs));
    return Number(data[0]);
  }
}
