import { mountPicture } from "../picture/index.ts";
import type { TimelineEvent } from "../picture/timeline.ts";
import { button, element, setText } from "./dom.ts";
import { clientsPanel, endpointsPanel, outcomePanel, type Panel } from "./panels.ts";
import { type Preset, presets } from "./presets.ts";
import { sentenceOf } from "./sentences.ts";
import { type Cast, Stage } from "./stage.ts";

/** How many sentences the page keeps. */
const told = 8;

/** The page: its controls, its picture, and the world that is shown. */
export class Page {
  readonly #root: HTMLElement;
  readonly #network = { latency: 40, loss: 0 };
  readonly #story = element("ol");
  readonly #result = element("p", { className: "ending" });
  readonly #time = element("span", { className: "hint" });
  readonly #panels = element("div");
  readonly #picture = element("div", { id: "picture" });
  readonly #scenes: readonly HTMLButtonElement[];
  #shown: ReturnType<typeof mountPicture> | undefined;
  #stage: Stage;
  #preset: Preset | undefined;
  #parts: readonly Panel[] = [];
  #pending: TimelineEvent[] = [];
  #lines: HTMLElement[] = [];
  /** ms of the world in a ms of the page; 0: it stands still. */
  #speed = 0.4;
  #isRunning = true;
  #seed = 1;

  constructor(root: HTMLElement) {
    this.#root = root;
    this.#scenes = presets.map((preset) => this.#sceneButton(preset));
    this.#root.append(...this.#layOut());
    this.#stage = this.#begin(presets[2]!);
    this.#play(presets[2]!);
  }

  /** The world that is shown. */
  get stage(): Stage {
    return this.#stage;
  }

  /** The scene that is played. */
  get preset(): Preset | undefined {
    return this.#preset;
  }

  /** Advances the world with the page's time, for as long as the page is open. */
  async run(): Promise<void> {
    for (let last = performance.now(); ; ) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      // A tab in the background gets no frames: then the world stands still, too.
      const passed = Math.min(100, now - last);
      last = now;
      const { time } = this.#stage.world;
      if (this.#isRunning) await time.advance(passed * this.#speed);
      this.#update();
    }
  }

  #layOut(): Node[] {
    return [
      element("h1", {}, "redlock-edge playground"),
      element(
        "p",
        { className: "lead" },
        "The real library runs in this page, against Redis endpoints that also run in this page. Play a scene, or press the buttons: acquire, freeze, kill, cut. Nothing is sent anywhere.",
      ),
      element("h2", {}, "Scenes"),
      element("div", { className: "scenes" }, ...this.#scenes),
      element("h2", {}, "What just happened ", this.#time),
      element(
        "section",
        { className: "story" },
        this.#result,
        element("div", { role: "log", "aria-live": "polite" }, this.#story),
      ),
      this.#picture,
      this.#panels,
    ];
  }

  #sceneButton(preset: Preset): HTMLButtonElement {
    const name = element("strong", {}, preset.name);
    return element(
      "button",
      { type: "button", onclick: () => this.#play(preset) },
      name,
      element("span", {}, preset.shows),
    );
  }

  #play(preset: Preset): void {
    this.#begin(preset);
    this.#preset = preset;
    for (const [index, scene] of this.#scenes.entries()) {
      scene.setAttribute("aria-pressed", String(presets[index] === preset));
    }
    const stage = this.#stage;
    void preset.play(stage).then(() => {
      if (this.#stage === stage) setText(this.#result, preset.outcome(stage));
    });
  }

  /** A new world. What was under way in the one before ends with it. */
  #begin(cast: Cast): Stage {
    this.#seed += 1;
    this.#preset = undefined;
    for (const scene of this.#scenes) scene.setAttribute("aria-pressed", "false");
    this.#pending = [];
    const stage = new Stage(cast, {
      network: this.#network,
      seed: this.#seed,
      onEvent: (event) => {
        if (this.#stage === stage || !this.#stage) this.#note(event);
      },
    });
    this.#stage = stage;
    this.#lines = [];
    this.#story.replaceChildren();
    setText(this.#result, "");
    this.#shown?.close();
    this.#shown = mountPicture(this.#picture, stage.world.timeline("Who asked whom, and what came back"), {
      latest: 12_000,
    });
    const clients = clientsPanel(stage);
    const endpoints = endpointsPanel(stage);
    const outcome = outcomePanel(stage);
    this.#parts = [clients, endpoints, outcome];
    this.#panels.replaceChildren(
      element("h2", {}, "The world"),
      this.#worldPanel(cast),
      element("h2", {}, cast.kind === "webhook" ? "Functions" : "Clients"),
      clients.element,
      element("h2", {}, "Endpoints"),
      endpoints.element,
      outcome.element,
    );
    return stage;
  }

  #worldPanel(cast: Cast): HTMLElement {
    const change = (changed: Partial<Cast>) => {
      const count = changed.clients?.length ?? cast.clients.length;
      const kind = changed.kind ?? cast.kind;
      this.#begin({ ...cast, ...changed, kind, clients: namesFor(kind, count) });
    };
    const kinds = ["lock", "semaphore", "fair lock", "webhook"] as const;
    return element(
      "section",
      { className: "world" },
      this.#clockButtons(),
      choice("What they use", kinds, cast.kind, (kind) => change({ kind })),
      choice("Endpoints", ["1", "3", "5"], String(cast.endpoints), (count) =>
        change({ endpoints: Number(count) }),
      ),
      choice("Clients", ["1", "2", "3", "4", "5"], String(cast.clients.length), (count) =>
        change({ clients: namesFor(cast.kind, Number(count)) }),
      ),
      tick("Fencing", cast.fencing, (fencing) => change({ fencing })),
      slider("Latency", { least: 5, most: 300, unit: "ms", value: this.#network.latency }, (latency) => {
        this.#network.latency = latency;
      }),
      slider("Loss", { least: 0, most: 60, unit: "%", value: this.#network.loss * 100 }, (loss) => {
        this.#network.loss = loss / 100;
      }),
      slider("Speed", { least: 2, most: 200, unit: "%", value: this.#speed * 100 }, (speed) => {
        this.#speed = speed / 100;
      }),
    );
  }

  #clockButtons(): HTMLElement {
    const pause = button("Pause", () => {
      this.#isRunning = !this.#isRunning;
      setText(pause, this.#isRunning ? "Pause" : "Go on");
    });
    if (!this.#isRunning) setText(pause, "Go on");
    const again = button("Begin again", () =>
      this.#preset ? this.#play(this.#preset) : this.#begin(this.#stage.cast),
    );
    return element("div", { className: "buttons" }, pause, again);
  }

  #note(event: TimelineEvent): void {
    this.#pending.push(event);
    const sentence = sentenceOf(event);
    // Each round of a long wait says the same.
    if (!sentence || this.#lines.some(({ dataset }) => dataset.call === callOf(event))) return;
    const line = element("li", { className: event.phase === "violated" ? "broken" : "" });
    line.dataset.call = callOf(event);
    line.append(`${Math.round(event.time)} ms: ${sentence}`);
    this.#lines.push(line);
    this.#story.append(line);
    while (this.#lines.length > told) this.#lines.shift()!.remove();
    this.#story.start = 1;
  }

  #update(): void {
    setText(this.#time, `after ${Math.round(this.#stage.world.time.elapsed)} ms of the world`);
    // While nobody waits or holds anything, the picture stays as it is.
    const isBusy = this.#stage.contenders.some(({ state }) => state === "waiting" || state === "holding");
    if (this.#pending.length > 0 || isBusy) {
      this.#shown?.add(this.#pending.splice(0), this.#stage.world.time.elapsed);
    }
    for (const part of this.#parts) part.update();
  }
}

/** The call whose round was refused; of such sentences one is enough. Other events have a name of their own. */
function callOf({ operation, call, time, phase, client }: TimelineEvent): string {
  return operation === "round" && call !== undefined ? call : `${phase} ${time} ${client}`;
}

const people = ["Ann", "Bob", "Cleo", "Dan", "Eve"];

function namesFor(kind: Cast["kind"], count: number): string[] {
  return people.slice(0, count).map((name, index) => (kind === "webhook" ? `fn-${index + 1}` : name));
}

function choice<Option extends string>(
  label: string,
  options: readonly Option[],
  chosen: Option,
  choose: (option: Option) => void,
): HTMLElement {
  const made = options.map((option) =>
    element("option", { value: option, selected: option === chosen }, option),
  );
  const select = element("select", { onchange: () => choose(select.value as Option) }, ...made);
  return element("label", {}, label, select);
}

function tick(label: string, isOn: boolean, choose: (isOn: boolean) => void): HTMLElement {
  const input = element("input", { type: "checkbox", checked: isOn, onchange: () => choose(input.checked) });
  return element("label", { className: "tick" }, input, label);
}

function slider(
  label: string,
  { least, most, unit, value }: { least: number; most: number; unit: string; value: number },
  choose: (value: number) => void,
): HTMLElement {
  const text = element("span", {}, `${label}: ${Math.round(value)} ${unit}`);
  const input = element("input", {
    type: "range",
    min: String(least),
    max: String(most),
    value: String(value),
  });
  input.addEventListener("input", () => {
    setText(text, `${label}: ${input.value} ${unit}`);
    choose(Number(input.value));
  });
  return element("label", {}, text, input);
}
