/** Where a model has its characters: their embeddings along the two directions in which they differ most, as they drift. */

const MOST = 9; // looks that a trail is made of; then every other one goes
const ROUNDS = 4; // of the power iteration; each look begins where the last one ended
const [HEIGHT, EDGE] = [340, 20];
/** Characters of a kind look alike. @type {[string, RegExp][]} */
const KINDS = [["vowels", /^[aeiou]$/], ["consonants", /^\p{Ll}$/u], ["capitals", /^\p{Lu}$/u], ["the rest", /./su]];

/** @typedef {{ letters: string[], width: number, values: Float32Array }} Embedding a row of values for each letter */

export class Drift {
  /** @type {Float64Array[]} rows about their mean, of what was seen; the last is now */
  #seen = [];
  #first = 0;
  #last = 0; // steps
  /** @type {Float64Array[]} */
  #directions = [];

  /**
   * The picture, as text of SVG, and since which step its trails are.
   * @param {Embedding} embedding @param {number} step @param {(letter: string) => string} shown @param {number} across pixels
   */
  draw({ letters, width, values }, step, shown, across) {
    if (step < this.#last || this.#seen[0]?.length !== values.length || this.#directions[0].length !== width) {
      this.#seen = [];
      this.#first = step;
      this.#directions = [1, 2].map((which) => Float64Array.from({ length: width }, (_, at) => Math.cos(which * (at + 1))));
    }
    this.#last = step;
    this.#seen.push(centred(values, width));
    // The older part of a trail gets coarser, and its beginning stays.
    if (this.#seen.length > MOST) this.#seen = this.#seen.filter((_, at) => at % 2 === 0);
    this.#turn(width);
    const trails = this.#seen.map((rows) => this.#directions.map((direction) => along(rows, direction)));
    return { svg: picture(letters.map(shown), letters.map(kind), trails, across), since: this.#first };
  }

  /** Turns the directions towards the two principal ones of all that was seen. @param {number} width */
  #turn(width) {
    for (let round = 0; round < ROUNDS; round++) {
      this.#directions.forEach((direction, which) => {
        const next = new Float64Array(width);
        for (const rows of this.#seen) {
          const shares = along(rows, direction);
          for (let row = 0; row < shares.length; row++) {
            for (let at = 0; at < width; at++) next[at] += shares[row] * rows[row * width + at];
          }
        }
        if (which) {
          const [first] = this.#directions;
          const part = dot(next, first);
          next.forEach((_, at) => (next[at] -= part * first[at]));
        }
        const length = Math.sqrt(dot(next, next)) || 1;
        this.#directions[which] = next.map((value) => value / length);
      });
    }
  }
}

/** @param {Float32Array} values @param {number} width */
function centred(values, width) {
  const count = values.length / width;
  const mean = new Float64Array(width);
  values.forEach((value, at) => (mean[at % width] += value / count));
  return Float64Array.from(values, (value, at) => value - mean[at % width]);
}

/** @param {Float64Array} a @param {Float64Array} b */
const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);

/** How far each row lies in a direction. @param {Float64Array} rows @param {Float64Array} direction */
function along(rows, direction) {
  const width = direction.length;
  const found = new Float64Array(rows.length / width);
  for (let row = 0; row < found.length; row++) {
    let sum = 0;
    for (let at = 0; at < width; at++) sum += rows[row * width + at] * direction[at];
    found[row] = sum;
  }
  return found;
}

/** @param {string} letter */
const kind = (letter) => KINDS.findIndex(([, pattern]) => pattern.test(letter));

/** @param {string[]} names @param {number[]} kinds @param {Float64Array[][]} trails of each look the places along both directions @param {number} width */
function picture(names, kinds, trails, width) {
  const limits = [0, 1].map((axis) => trails.flatMap((look) => [Math.min(...look[axis]), Math.max(...look[axis])]));
  const [left, top] = limits.map((found) => Math.min(...found));
  const [wide, high] = limits.map((found) => Math.max(...found) - Math.min(...found) || 1);
  const scale = Math.min((width - 2 * EDGE) / wide, (HEIGHT - 2 * EDGE) / high); // the same both ways: distances are true
  const x = (/** @type {number} */ at) => (width / 2 + (at - left - wide / 2) * scale).toFixed(1);
  const y = (/** @type {number} */ at) => (HEIGHT / 2 + (at - top - high / 2) * scale).toFixed(1);
  const marks = names.map((name, row) => {
    const path = trails.map(([across, down]) => `${x(across[row])},${y(down[row])}`);
    const [to_x, to_y] = path[path.length - 1].split(",");
    const text = name.replace(/[&<]/g, (one) => `&#${one.charCodeAt(0)};`);
    return `<g class="kind-${kinds[row]}"><polyline points="${path.join(" ")}"/><text x="${to_x}" y="${to_y}" dy=".35em">${text}</text></g>`;
  });
  return `<svg viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-label="Characters by their embeddings: ${nearest(names, trails)}">${marks.join("")}</svg>`;
}

/** The three pairs that lie closest, in words. @param {string[]} names @param {Float64Array[][]} trails */
function nearest(names, trails) {
  const [across, down] = trails[trails.length - 1];
  /** @type {[number, number, number][]} distances, and whose */
  let closest = [];
  for (let i = 0; i < names.length; i++) {
    for (let j = 0; j < i; j++) {
      const far = Math.hypot(across[i] - across[j], down[i] - down[j]);
      if (closest.length < 3 || far < closest[2][0]) closest = [...closest, /** @type {[number, number, number]} */ ([far, j, i])].sort(([a], [b]) => a - b).slice(0, 3);
    }
  }
  const words = closest.map(([, a, b]) => `${names[a]} and ${names[b]}`);
  return `closest are ${words.join(", ").replace(/[&<"]/g, (one) => `&#${one.charCodeAt(0)};`)}`;
}

/** What the colours stand for. */
export const legend = KINDS.map(([name], at) => `<span class="kind-${at}">${name}</span>`).join("");
