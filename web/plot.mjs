/** The loss by step, drawn by uPlot. A long run is thinned, so that drawing it never takes long. */

import { atFrame } from "./page.mjs";

/** @typedef {import("uplot")} Plot */

const POINTS = 1500; // above twice as many, neighbours are merged
const DECAY = 0.9; // what the smooth line keeps from step to step
const HEIGHT = 260;
const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5].flatMap((unit) => [unit, 2 * unit, 5 * unit]); // distances of marks
const uPlot = /** @type {typeof import("uplot")} */ (/** @type {any} */ (globalThis).uPlot);

export class LossPlot {
  /** One point for `every` steps: the last of them, and the mean of their losses. */
  #every = 1;
  /** @type {number[]} */
  #steps = [];
  /** @type {number[]} */
  #losses = [];
  /** @type {(number | null)[]} */
  #unseen = [];
  /** @type {{ sum: number, count: number }} the point that is not full yet */
  #open = { sum: 0, count: 0 };
  /** @type {Plot} */
  #plot;
  #draw = atFrame(() => this.#plot.setData(/** @type {any} */ ([this.#steps, this.#losses, smooth(this.#losses, DECAY ** this.#every), this.#unseen])));

  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.#plot = this.#make();
    dark.addEventListener("change", () => {
      this.#plot.destroy();
      this.#plot = this.#make();
      this.#draw();
    });
    const fit = atFrame(() => this.#plot.setSize({ width: place.clientWidth || 300, height: HEIGHT }));
    new ResizeObserver(fit).observe(place);
  }

  clear() {
    this.#every = 1;
    this.#steps = [];
    this.#losses = [];
    this.#unseen = [];
    this.#open = { sum: 0, count: 0 };
    this.#draw();
  }

  /** Losses of the steps up to `step`. @param {number} step @param {number[]} losses */
  add(step, losses) {
    const first = step - losses.length + 1;
    losses.forEach((loss, i) => {
      this.#open.sum += loss;
      this.#open.count++;
      if (this.#open.count < this.#every) return;
      this.#steps.push(first + i);
      this.#losses.push(this.#open.sum / this.#open.count);
      this.#unseen.push(null);
      this.#open = { sum: 0, count: 0 };
      if (this.#steps.length >= 2 * POINTS) this.#thin();
    });
    this.#draw();
  }

  /** The loss on unseen text after `step` steps. @param {number} step @param {number} loss */
  addUnseen(step, loss) {
    let at = this.#steps.length - 1;
    while (at > 0 && this.#steps[at] > step) at--;
    if (at >= 0) this.#unseen[at] = loss;
    this.#draw();
  }

  /** The smooth loss of now. */
  get recent() {
    return smooth(this.#losses, DECAY ** this.#every).at(-1) ?? NaN;
  }

  /** Merges neighbours two by two. */
  #thin() {
    const half = this.#steps.length >> 1;
    for (let i = 0; i < half; i++) {
      this.#steps[i] = this.#steps[2 * i + 1];
      this.#losses[i] = (this.#losses[2 * i] + this.#losses[2 * i + 1]) / 2;
      this.#unseen[i] = this.#unseen[2 * i + 1] ?? this.#unseen[2 * i];
    }
    this.#steps.length = this.#losses.length = this.#unseen.length = half;
    this.#every *= 2;
  }

  /** @returns {Plot} */
  #make() {
    // A canvas needs colours without light-dark(), as an element has them once they are computed.
    const probe = this.place.appendChild(document.createElement("span"));
    const color = (/** @type {string} */ name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const [text, grid, line, faint, point] = ["--text", "--line", "--accent", "--accent-faint", "--second"].map(color);
    probe.remove();
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui" };
    const number = (/** @type {unknown} */ _, /** @type {number | null} */ value) => value?.toFixed(3) ?? "";
    /** What an axis shows before there is anything. @param {[number, number]} empty @param {number} room */
    const range = (empty, room) => (/** @type {Plot} */ _, /** @type {number | null} */ low, /** @type {number | null} */ high) =>
      low === null || high === null ? empty : /** @type {[number, number]} */ (uPlot.rangeNum(low, high, room, false));
    return new uPlot(
      {
        width: this.place.clientWidth || 300,
        height: HEIGHT,
        scales: { x: { time: false, range: range([0, 100], 0) }, y: { range: range([0, 5], 0.1) } },
        axes: [{ ...axis, incrs: WHOLE }, { ...axis, size: 44 }],
        cursor: { y: false },
        legend: { live: true },
        series: [
          { label: "step", value: (_, step) => step?.toLocaleString("en") ?? "" },
          { label: "each step", stroke: faint, width: 1, value: number, points: { show: false } },
          { label: "smoothed", stroke: line, width: 2, value: number, points: { show: false } },
          { label: "unseen text", stroke: point, width: 2, spanGaps: true, value: number, points: { show: true, size: 6 } },
        ],
      },
      [[], [], [], []],
      this.place,
    );
  }
}

/**
 * A running mean without the lag of one: twice the mean of what came, less the mean of those means, each without the bias of
 * its beginning. While losses fall in a line, it lies on that line.
 * @param {number[]} losses @param {number} decay
 */
export function smooth(losses, decay) {
  let [mean, meanOfMeans, weight] = [0, 0, 1];
  return losses.map((loss) => {
    weight *= decay;
    mean += (1 - decay) * (loss - mean);
    meanOfMeans += (1 - decay) * (mean / (1 - weight) - meanOfMeans);
    return (2 * mean - meanOfMeans) / (1 - weight);
  });
}
