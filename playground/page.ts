import { button, element, setText } from "./dom.ts";
import { slider, tick } from "./fields.ts";
import { LivePicture } from "./live-picture.ts";
import { type Moment, readMoment, writeMoment } from "./moment.ts";
import { clientsPanel, endpointsPanel, outcomePanel, type Panel } from "./panels.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { type Preset, presets } from "./presets.ts";
import { type Recording, record, stageOf } from "./recording.ts";
import type { Stage } from "./stage.ts";
import { Story } from "./story.ts";

/** The scene that is played, and what happens in it as long as nobody changes its world. */
interface Scene extends Recording {
  readonly preset: Preset;
  readonly fencing: boolean;
}

const usual = presets[2]!;

/** The page: its controls, its picture, and the world that is shown. */
export class Page {
  readonly #scenes: readonly HTMLButtonElement[];
  readonly #notice = element("p", { className: "notice", role: "status" });
  readonly #shows = element("p", { className: "hint" });
  readonly #time = element("span", { className: "hint" });
  readonly #ending = element("p", { className: "ending" });
  readonly #story = new Story(({ time }) => this.#go(time));
  readonly #previous = button("← Back", () => this.#step(-1), { title: "The step before (arrow key)" });
  readonly #next = button("Next →", () => this.#step(1), { title: "The next step (arrow key)" });
  readonly #pause = button("Pause", () => this.#toggle(), { className: "main" });
  readonly #restart = button("Begin again", () => void this.#again());
  readonly #speedField = slider("Speed", { least: 2, most: 200, unit: "%" }, (speed) => {
    this.#speed = speed / 100;
  });
  readonly #fencing = tick("Fencing", (fencing) => void this.#refence(fencing));
  readonly #latency = slider("Latency", { least: 5, most: 300, unit: "ms" }, (latency) => {
    this.#stage.world.network.latency = latency;
  });
  readonly #loss = slider("Loss", { least: 0, most: 60, unit: "%" }, (loss) => {
    this.#stage.world.network.loss = loss / 100;
  });
  readonly #panels = element("div", { className: "panels" });
  readonly #picture = element("div", { id: "picture" });
  #shown: LivePicture | undefined;
  #stage!: Stage;
  #preset: Preset = usual;
  /** Undefined once its reader has changed its world. */
  #scene: Scene | undefined;
  #parts: readonly Panel[] = [];
  #pending: TimelineEvent[] = [];
  /** ms of the world in a ms of the page. */
  #speed = 0.4;
  #isRunning = true;
  /** Where the world is to go at once, and to stand still. */
  #goal: number | undefined;
  #drawn = -1;

  constructor(root: HTMLElement) {
    this.#scenes = presets.map((preset) =>
      button(preset.name, () => void this.#open(preset).then(() => this.#writeAddress())),
    );
    root.append(...this.#layOut());
    // What is done here makes another world of that of a scene.
    for (const type of ["click", "input"]) {
      this.#panels.addEventListener(type, ({ target }) => {
        if ((target as Element).closest("button, input")) this.#leaveScene();
      });
    }
    addEventListener("hashchange", () => void this.#openAddress());
    addEventListener("keydown", (event) => this.#key(event));
    this.#begin((onEvent) => stageOf(usual, usual.fencing, onEvent));
    void this.#openAddress();
  }

  /** The world that is shown. */
  get stage(): Stage {
    return this.#stage;
  }

  /** The scene that is played. */
  get preset(): Preset {
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
      const stage = this.#stage;
      const { time } = stage.world;
      const goal = this.#goal;
      const end = this.#scene?.end ?? Infinity;
      if (goal !== undefined) {
        // More than once where the sum of two times is rounded down.
        do await time.advance(goal - time.elapsed);
        while (time.elapsed < goal);
      } else if (this.#isRunning) {
        await time.advance(Math.max(0, Math.min(passed * this.#speed, end - time.elapsed)));
      }
      if (stage !== this.#stage) continue;
      if (this.#goal === goal) this.#goal = undefined;
      if (time.elapsed >= end) this.#isRunning = false;
      this.#update();
    }
  }

  #layOut(): Node[] {
    const lead =
      "Processes compete for a lock on several Redis servers, in slow motion: time goes from left to right, and slanted lines are requests and replies.";
    const buttons = [this.#previous, this.#pause, this.#next, this.#restart];
    const story = element(
      "section",
      { className: "story" },
      this.#shows,
      element("div", { className: "buttons" }, ...buttons, this.#speedField.element, this.#time),
      this.#story.element,
      this.#ending,
    );
    return [
      element("h1", {}, "redlock-edge playground"),
      element("p", { className: "lead" }, lead),
      element("div", { className: "scenes", role: "group", "aria-label": "Scenes" }, ...this.#scenes),
      this.#notice,
      element("div", { className: "theatre" }, story, this.#picture, this.#panels),
    ];
  }

  /** What the address names, or the usual scene. */
  async #openAddress(): Promise<void> {
    const ids = presets.map(({ id }) => id);
    const moment = readMoment(location.hash, ids);
    const preset = presets.find(({ id }) => id === moment?.scene) ?? usual;
    await this.#open(preset, moment);
    if (this.#preset !== preset) return;
    const end = this.#scene?.end ?? 0;
    if (!moment && location.hash.length > 1) {
      setText(this.#notice, "This link names no scene, or no time of one. So here is a scene to begin with.");
    } else if (moment?.time !== undefined && moment.time > end) {
      setText(this.#notice, `This link names a time after the end of the scene, at ${end} ms.`);
    }
  }

  /** Plays a scene from its beginning, or shows a moment of it. */
  async #open(preset: Preset, { time, fencing = preset.fencing }: Partial<Moment> = {}): Promise<void> {
    this.#preset = preset;
    setText(this.#ending, "");
    const recording = await record(preset, fencing);
    // Another one was chosen meanwhile.
    if (this.#preset !== preset) return;
    if (this.#scene?.preset !== preset) this.#setSpeed(preset.speed);
    this.#scene = { ...recording, preset, fencing };
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#rewind(time ?? (isStill ? recording.end : undefined));
  }

  /** Begins the scene again; with a time, it stands still there. */
  #rewind(time?: number): void {
    const { preset, fencing, end } = this.#scene!;
    const stage = this.#begin((onEvent) => stageOf(preset, fencing, onEvent));
    this.#goal = time === undefined ? undefined : Math.min(time, end);
    this.#isRunning = time === undefined;
    void preset.play(stage).then(() => {
      if (this.#stage === stage) setText(this.#ending, preset.outcome(stage));
    });
  }

  /** Plays the scene again, as it was chosen. */
  async #again(): Promise<void> {
    await this.#refence(this.#stage.cast.fencing);
  }

  async #refence(fencing: boolean): Promise<void> {
    await this.#open(this.#preset, { fencing });
    this.#writeAddress();
  }

  /** A new world. What was under way in the one before ends with it. */
  #begin(make: (onEvent: (event: TimelineEvent) => void) => Stage): Stage {
    const stage: Stage = make((event) => {
      if (this.#stage === stage) this.#pending.push(event);
    });
    this.#stage = stage;
    this.#pending = [];
    this.#goal = undefined;
    this.#drawn = -1;
    setText(this.#notice, "");
    setText(this.#ending, "");
    setText(this.#shows, this.#preset.shows);
    this.#story.begin(this.#scene?.steps ?? []);
    for (const [index, scene] of this.#scenes.entries()) {
      scene.setAttribute("aria-pressed", String(presets[index] === this.#preset));
    }
    this.#shown?.close();
    const timeline = stage.world.timeline("Who asked whom, and what came back");
    const until = this.#scene?.end ?? 0;
    this.#shown = new LivePicture(this.#picture, timeline, until);
    this.#showPanels(stage);
    return stage;
  }

  #showPanels(stage: Stage): void {
    const clients = clientsPanel(stage);
    const endpoints = endpointsPanel(stage);
    const outcome = outcomePanel(stage);
    this.#parts = [clients, endpoints, outcome];
    const { latency, loss } = stage.world.network;
    this.#fencing.show(stage.cast.fencing);
    this.#latency.show(latency);
    this.#loss.show(loss * 100);
    const fields = [this.#fencing, this.#latency, this.#loss];
    this.#panels.replaceChildren(
      element("h2", {}, "Now break it"),
      element(
        "p",
        { className: "hint" },
        "Freeze a client, kill an endpoint, lose requests. The real library runs in this page, and nothing is sent anywhere.",
      ),
      element("h3", {}, "Clients"),
      clients.element,
      element("h3", {}, "Endpoints"),
      endpoints.element,
      outcome.element,
      element("h3", {}, "The world"),
      element("section", { className: "world" }, ...fields.map((field) => field.element)),
    );
  }

  #setSpeed(speed: number): void {
    this.#speed = speed;
    this.#speedField.show(speed * 100);
  }

  #leaveScene(): void {
    if (!this.#scene) return;
    this.#scene = undefined;
    this.#story.begin([]);
    this.#isRunning = true;
    setText(this.#notice, "You changed this world: it goes its own way now. “Begin again” plays the scene.");
  }

  /** Where the world is, or will be in a moment. */
  get #now(): number {
    return this.#goal ?? this.#stage.world.time.elapsed;
  }

  /** Shows a moment of the scene. */
  #go(time: number): void {
    if (time < this.#now) this.#rewind(time);
    this.#goal = time;
    this.#isRunning = false;
    this.#writeAddress();
  }

  #step(by: 1 | -1): void {
    const now = this.#now;
    const steps = this.#scene?.steps ?? [];
    const step =
      by === 1 ? steps.find(({ time }) => time > now) : steps.filter(({ time }) => time < now).at(-1);
    if (step) this.#go(step.time);
  }

  #toggle(): void {
    const isOver = this.#scene && this.#now >= this.#scene.end;
    if (isOver) this.#rewind();
    else if (this.#isRunning) this.#go(Math.ceil(this.#now));
    else this.#isRunning = true;
    this.#writeAddress();
  }

  #key({ key, target, ctrlKey, metaKey, altKey }: KeyboardEvent): void {
    const isTaken = target instanceof Element && target.closest("input, select");
    if (isTaken || ctrlKey || metaKey || altKey) return;
    if (key === "ArrowLeft") this.#step(-1);
    if (key === "ArrowRight") this.#step(1);
  }

  /** What a link to what is shown has after its #. */
  #hash(time?: number): string {
    if (!this.#scene) return "";
    const { preset, fencing } = this.#scene;
    return writeMoment({ scene: preset.id, time, fencing: fencing === preset.fencing ? undefined : fencing });
  }

  #writeAddress(): void {
    // A document that is an attribute of another page has no address of its own.
    if (location.protocol === "about:") return;
    const hash = this.#hash(this.#isRunning ? undefined : this.#now);
    history.replaceState(null, "", hash || location.pathname + location.search);
  }

  #update(): void {
    const { elapsed } = this.#stage.world.time;
    const scene = this.#scene;
    const steps = scene?.steps ?? [];
    setText(this.#time, scene ? `${Math.round(elapsed)} of ${scene.end} ms` : `${Math.round(elapsed)} ms`);
    setText(this.#pause, this.#isRunning ? "Pause" : "Play");
    for (const control of [this.#previous, this.#next]) control.hidden = !scene;
    this.#restart.hidden = scene !== undefined;
    this.#previous.ariaDisabled = String(!steps.some(({ time }) => time < elapsed));
    this.#next.ariaDisabled = String(!steps.some(({ time }) => time > elapsed));
    // While nobody waits or holds anything, the picture of a changed world stays as it is.
    const isBusy = this.#stage.contenders.some(({ state }) => state === "waiting" || state === "holding");
    if (this.#pending.length > 0 || (elapsed > this.#drawn && (isBusy || scene))) {
      const events = this.#pending.splice(0);
      this.#shown?.add(events, elapsed);
      this.#drawn = elapsed;
    }
    this.#story.show(elapsed);
    for (const part of this.#parts) part.update();
  }
}
