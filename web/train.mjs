/** The Train tab: sends what the user wants to the worker, and shows what comes back. */

import { isSoftware } from "./environment.mjs";
import { atFrame, button, describe, download, duration, element, input, share, size, startWorker } from "./page.mjs";
import { keepLoaded } from "./keeping.mjs";
import { KeptRuns } from "./kept.mjs";
import { LossPlot } from "./plot.mjs";
import { SettingsForm, TextChoice } from "./settings.mjs";

const SAMPLES = 50; // older ones go
const KEEP_AFTER = 4000; // milliseconds: not while the first steps compile
const GO = {
  loading: "Start", idle: "Start", starting: "Start", training: "Pause", paused: "Resume", done: "Start", lost: "Resume", broken: "Try again", absent: "Start",
};
const STATUS = {
  loading: "Loading …", idle: "Ready", starting: "Starting …", training: "Training", paused: "Paused", done: "Done", lost: "The GPU was lost",
  broken: "Not ready", absent: "",
};
/** @typedef {keyof typeof GO} State */

export class TrainTab {
  #form = new SettingsForm();
  #text = new TextChoice();
  #plot = new LossPlot(element("plot", HTMLElement));
  /** @type {State} */
  #state = "loading";
  #isWanted = new URLSearchParams(location.search).has("start"); // Start was pressed before all was there
  #firstStep = 0;
  #asked = 0; // when the first run was
  /** @type {Worker | null} */
  #worker = null;
  /** @type {{ device?: "cpu" }} */
  #device = {};
  #shown = { step: 0, steps: 0, speed: 0, unseen: NaN };
  #show = atFrame(() => this.#showNumbers());
  /** @type {HTMLElement | null} the sample that is being written */
  #sample = null;
  /** @type {Record<string, string>} */
  #adapter = {};
  #kept = new KeptRuns((about, checkpoint) => {
    this.#text.choose({ name: about.text === null ? (about.source ?? "documentation") : "own", own: about.text });
    this.#model = about.model ?? null;
    void this.#openBytes(checkpoint);
  });
  /** @type {Promise<{ inside: import("./inside.mjs").Inside, source: import("./inside.mjs").ModelSource }> | null} once somebody looked */
  #parts = null;
  /** @type {string | null} the model's source where it is the user's own */
  #model = null;
  #isGoingOn = false; // with a run that is kept already
  #parameters = 0;

  constructor() {
    this.#listen();
    if (innerWidth < 700) element("machine", HTMLDetailsElement).open = false;
    this.#form.begin("tiny");
    if (new URLSearchParams(location.search).get("text") === "documentation") this.#text.choose({ name: "documentation" });
    void isSoftware().then((isSlow) => this.#form.begin(isSlow ? "tiny" : "small"));
  }

  /** Starts Python when the tab is first shown. */
  open() {
    if (!this.#worker && this.#state === "loading") this.#load();
  }

  /** The worker may compile what its first steps will need. */
  foresee() {
    this.#tell({ do: "foresee" });
  }

  /** There is no WebGPU here: it trains on the CPU. */
  useCpu() {
    this.#device = { device: "cpu" };
    this.#form.begin("tiny");
    if (this.#worker) this.#load();
  }

  #load() {
    this.#worker?.terminate();
    this.#worker = startWorker("training", (message) => this.#hear(message), this.#device);
  }

  #listen() {
    element("controls", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#go();
    });
    button("reset").addEventListener("click", () => this.#reset());
    button("further").addEventListener("click", () => this.#tell({ do: "further" }));
    button("share").addEventListener("click", () => {
      const link = this.#form.link();
      if (this.#text.own === null) link.searchParams.set("text", this.#text.name);
      void share(link);
    });
    addEventListener("beforeunload", (event) => this.#isUnkept && event.preventDefault());
    document.addEventListener("visibilitychange", () => document.hidden && this.#tell({ do: "keep" }));
    button("write").addEventListener("click", () => {
      this.#choose();
      this.#tell({ do: "write", length: 300 });
    });
    for (const id of ["prompt", "every", "temperature"]) input(id).addEventListener("change", () => this.#choose());
    const inside = element("inside", HTMLDetailsElement);
    inside.addEventListener("toggle", async () => {
      await this.#look();
      this.#tell({ do: "look", is_wanted: inside.open });
    });
    element("source", HTMLDetailsElement).addEventListener("toggle", async () => (await this.#look()).source.open(this.#model));
    button("save").addEventListener("click", () => this.#tell({ do: "save", source: this.#text.source }));
    button("open").addEventListener("click", () => input("checkpoint").click());
    input("checkpoint").addEventListener("change", () => void this.#open());
  }

  /** @param {Record<string, unknown>} command @param {Transferable[]} [transfer] */
  #tell(command, transfer = []) {
    this.#worker?.postMessage(command, transfer);
  }

  // What the user does

  #go() {
    if (this.#state === "starting") return;
    this.#complain("");
    if (this.#state === "training") {
      this.#tell({ do: "pause" });
      element("status", HTMLElement).textContent = "Pausing …"; // after the step at hand
    } else if (this.#state === "paused" || this.#state === "lost") {
      this.#tell({ do: "resume" });
    } else if (this.#state === "broken") {
      this.#load();
    } else if (this.#state === "loading") {
      this.#isWanted = !this.#isWanted;
      this.#become("loading");
    } else if (this.#form.isRight()) {
      void this.#start();
    }
  }

  async #start() {
    if (!this.#mayGo()) return;
    this.#asked = performance.now();
    this.#choose();
    this.#become("starting");
    const text = await this.#text.text();
    this.#model = (await this.#parts)?.source.changed ?? null;
    this.#tell({ do: "start", settings: this.#form.settings, text, source: this.#model });
  }

  /** What is loaded once somebody looks inside. */
  #look() {
    return (this.#parts ??= import("./inside.mjs").then(({ Inside, ModelSource }) => {
      const apply = () => {
        this.#complain("");
        if (["idle", "training", "paused", "done"].includes(this.#state) && this.#form.isRight()) void this.#start();
      };
      return { inside: new Inside(), source: new ModelSource(apply) };
    }));
  }

  #choose() {
    const [every, temperature] = [input("every"), input("temperature")];
    if (!every.validity.valid || !temperature.validity.valid) return;
    this.#tell({ do: "choose", every: every.valueAsNumber, temperature: temperature.valueAsNumber, prompt: input("prompt").value });
  }

  /** Steps were done that this browser does not keep. */
  get #isUnkept() {
    return this.#has && this.#shown.step > this.#kept.step;
  }

  /** Whether the model at hand may go: the worker has it kept first, unless nothing can be kept. */
  #mayGo() {
    const isSafe = !this.#isUnkept || !this.#kept.fails;
    return isSafe || confirm(`This browser does not keep the model, which learnt for ${this.#shown.step} steps. Give it up?`);
  }

  #reset() {
    if (!this.#mayGo()) return;
    this.#complain("");
    this.#tell({ do: "reset" });
  }

  async #open() {
    const file = input("checkpoint").files?.[0];
    if (!file || !this.#mayGo()) return;
    this.#complain("");
    const bytes = await file.arrayBuffer();
    input("checkpoint").value = ""; // so that the same file can be chosen again
    this.#kept.begin();
    this.#model = (await this.#parts)?.source.changed ?? null;
    await this.#openBytes(bytes);
  }

  /** @param {ArrayBuffer} bytes */
  async #openBytes(bytes) {
    this.#complain("");
    this.#choose();
    this.#isGoingOn = true;
    if (this.#state === "idle") this.#become("starting", "Opening …");
    (await this.#parts)?.source.choose(this.#model);
    this.#tell({ do: "open", text: await this.#text.text(), source: this.#model, file: bytes }, [bytes]);
  }

  // What the worker says

  /** @param {any} message */
  #hear(message) {
    switch (message.is) {
      case "loading":
        return this.#become("loading", `Loading ${message.what} …`);
      case "ready":
        return this.#ready(message.adapter);
      case "state":
        if (message.state === "idle") this.#clear();
        this.#showNumbers(); // what came before the change is shown with it
        return this.#become(message.state);
      case "run":
        return this.#run(message);
      case "steps":
        this.#shown.steps = message.steps;
        return;
      case "progress":
        return this.#progress(message);
      case "memory":
        return this.#memory(message);
      case "sample":
        return this.#begin(message);
      case "written":
        this.#sample?.append(message.text);
        if (!message.is_done) return;
        element("spoken", HTMLElement).textContent = `It writes: ${this.#sample?.textContent ?? ""}`; // once, not by letters
        this.#sample = null;
        return;
      case "kept":
        return this.#kept.keep(
          { step: message.step, loss: this.#plot.recent, parameters: this.#parameters, text: this.#text.own, source: this.#text.source, model: this.#model },
          message.bytes,
        );
      case "checkpoint":
        return download(message.bytes, `chargpt-${message.step}.safetensors`);
      case "inside":
        return void this.#look().then(({ inside }) => inside.show(message));
      case "output":
        return console.info(message.text);
      case "loaded":
        setTimeout(() => void keepLoaded(message.addresses).catch(console.info), KEEP_AFTER);
        return;
      case "trouble":
        if (message.details) console.error(message.details);
        if (this.#isGoingOn) this.#kept.begin(); // it did not open
        this.#isGoingOn = false;
        this.#complain(message.text, message.about === "text" && this.#text.own === null ? "" : message.about);
        return this.#become(this.#state === "starting" ? "idle" : this.#state);
      case "broken":
        this.#complain(message.text);
        return this.#become(this.#device.device ? "absent" : "broken");
    }
  }

  /** @param {{ name: string, is_software: boolean, limits: Record<string, number>, features: string[] }} adapter */
  #ready({ name, is_software, limits, features }) {
    this.#adapter = { Adapter: is_software ? `${name} (software: right, but slow)` : name };
    if (limits.maxBufferSize) {
      Object.assign(this.#adapter, {
        "Largest buffer": size(limits.maxBufferSize),
        "Largest binding": size(limits.maxStorageBufferBindingSize),
        "Workgroup memory": size(limits.maxComputeWorkgroupStorageSize),
        Features: features.join(", ") || "none",
      });
    }
    describe(element("adapter", HTMLElement), this.#adapter);
    this.#become("idle", this.#device.device && "Ready, on the CPU: right, but slow");
    if (this.#isWanted) this.#go();
  }

  /** @param {{ settings: import("./settings.mjs").Settings, parameters: number, characters: number, vocabulary: number }} run */
  #run({ settings, parameters, characters, vocabulary }) {
    this.#clear();
    if (!this.#isGoingOn) this.#kept.begin();
    this.#isGoingOn = false;
    this.#parameters = parameters;
    this.#form.fill(settings);
    this.#shown = { step: 0, steps: settings.steps, speed: 0, unseen: NaN };
    const count = (/** @type {number} */ value) => value.toLocaleString("en");
    this.#adapter.Model = `${count(parameters)} parameters`;
    this.#adapter.Text = `${count(characters)} characters, ${vocabulary} different ones`;
  }

  /** @param {{ step: number, losses: number[], validation: [number, number][], speed: number }} progress */
  #progress({ step, losses, validation, speed }) {
    if (step && !this.#firstStep) {
      this.#firstStep = performance.now();
      // Who reads first and starts later has not waited that long.
      const [from, since] = this.#isWanted ? ["Page load", 0] : ["Start", this.#asked];
      if (this.#asked) this.#adapter[`${from} to first step`] = `${((this.#firstStep - since) / 1000).toFixed(1)} s`;
    }
    if (losses.length) this.#plot.add(step, losses);
    for (const [at, loss] of validation) {
      this.#plot.addUnseen(at, loss);
      this.#shown.unseen = loss;
    }
    Object.assign(this.#shown, { step, speed });
    this.#show();
  }

  /** @param {{ heap: number, device: Record<string, number> }} memory */
  #memory({ heap, device }) {
    const where = this.#device.device ? "Memory" : "GPU memory";
    describe(element("adapter", HTMLElement), {
      ...this.#adapter,
      [`${where}, tensors`]: `${size(device.live_bytes)}, at most ${size(device.peak_bytes)}`,
      ...(device.device_bytes && { "GPU memory, in all": size(device.device_bytes) }),
      "Python's memory": size(heap),
      ...(!this.#device.device && { "Work sent to the GPU": `${device.submits.toLocaleString("en")} times` }),
    });
  }

  /** @param {{ step: number, loss: number | null, lacks: string[] }} sample */
  #begin({ step, loss, lacks }) {
    const lost = element("prompt-lacks", HTMLOutputElement);
    lost.hidden = !lacks.length;
    lost.value = lacks.length ? `The text that it learns from has no ${lacks.map((one) => `“${one}”`).join(", ")}: left out.` : "";
    const list = element("samples", HTMLElement);
    if (list.querySelector(".empty")) list.replaceChildren();
    const [article, title, text] = ["article", "h3", "p"].map((tag) => document.createElement(tag));
    title.textContent = `After ${step.toLocaleString("en")} steps` + (loss === null ? "" : `, loss ${loss.toFixed(3)}`);
    article.append(title, text);
    list.prepend(article);
    while (list.children.length > SAMPLES) list.lastElementChild?.remove();
    this.#sample = text;
  }

  // What the user sees

  /** There is a model, on the device. */
  get #has() {
    return ["training", "paused", "done"].includes(this.#state);
  }

  /** @param {State} state @param {string} [status] */
  #become(state, status) {
    this.#state = state;
    const has = this.#has;
    const isKept = has || state === "lost";
    const go = button("go");
    const isWanted = state === "loading" && this.#isWanted;
    go.textContent = isWanted ? "Cancel" : GO[state];
    go.ariaDisabled = String(state === "starting"); // and not disabled, which would lose the focus
    button("write").disabled = !has;
    button("further").hidden = state !== "done";
    button("reset").disabled = button("save").disabled = !isKept;
    button("open").disabled = !["idle", "paused", "done", "lost"].includes(state);
    this.#form.lock(isKept && state !== "done");
    const text = status ?? STATUS[state];
    element("status", HTMLElement).textContent = isWanted ? `${text} It starts when all is here.` : text;
    document.documentElement.dataset.state = state;
    document.documentElement.toggleAttribute("data-begun", isKept || isWanted || state === "starting");
  }

  #showNumbers() {
    const { step, steps, speed, unseen } = this.#shown;
    const set = (/** @type {string} */ id, /** @type {string} */ text) => (element(id, HTMLElement).textContent = text);
    const loss = this.#plot.recent;
    set("step", step || steps ? `${step.toLocaleString("en")} of ${steps.toLocaleString("en")}` : "–");
    set("loss", Number.isFinite(loss) ? loss.toFixed(3) : "–");
    set("unseen", Number.isFinite(unseen) ? unseen.toFixed(3) : "–");
    set("speed", speed ? Math.round(speed).toLocaleString("en") : "–");
    const { batch, context } = this.#form.settings;
    set("left", speed ? duration(((steps - step) * batch * context) / speed) : "–");
    element("progress", HTMLProgressElement).value = steps ? step / steps : 0;
    set("described", step ? `Now ${Number.isFinite(loss) ? loss.toFixed(2) : "–"} after ${step} steps.` : "");
  }

  #clear() {
    this.#plot.clear();
    this.#shown = { step: 0, steps: 0, speed: 0, unseen: NaN };
    this.#sample = null;
    const empty = Object.assign(document.createElement("p"), { className: "empty" });
    empty.textContent = `The first sample comes after ${input("every").value} steps. “Write now” asks for one at once.`;
    element("samples", HTMLElement).replaceChildren(empty);
    this.#show();
  }

  /** Beside the user's own text or model where it is about that. @param {string} text @param {string} [about] */
  #complain(text, about = "") {
    for (const [subject, id] of Object.entries({ "": "trouble", text: "text-wrong", model: "model-wrong" })) {
      const notice = element(id, HTMLElement);
      notice.textContent = subject === about ? text : "";
      notice.hidden = !notice.textContent;
    }
    if (about === "text") element("pasted", HTMLTextAreaElement).focus();
    if (about === "model") element("source", HTMLDetailsElement).open = true;
  }
}
