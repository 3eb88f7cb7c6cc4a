import { button, element, setText } from "./dom.ts";
import { slider } from "./fields.ts";
import { LivePicture } from "./live-picture.ts";
import { type Moment, readMoment, writeMoment } from "./moment.ts";
import { clientsPanel, endpointsPanel, outcomePanel, type Panel } from "./panels.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { type Recording, record, usualStage } from "./recording.ts";
import { type Scene, type Stage, scenes } from "./scenes/index.ts";
import { Story } from "./story.ts";

const usual = scenes[0]!;
/** ms for which the end of an act is seen before the next act begins. */
const interval = 2_500;

/** The page: its controls, its picture, and the world that is shown. */
export class Page {
  readonly #scenes = scenes.map((scene) =>
    button(scene.name, () => void this.#open(scene).then(() => this.#writeAddress())),
  );
  readonly #acts = element("div", { className: "acts", role: "group", "aria-label": "Without, and with" });
  readonly #notice = element("p", { className: "notice", role: "status" });
  readonly #shows = element("p", { className: "hint" });
  readonly #time = element("span", { className: "hint" });
  readonly #ending = element("p", { className: "ending" });
  readonly #story = new Story(({ time }) => this.#go(time));
  readonly #previous = button("← Back", () => this.#step(-1), { title: "The step before (arrow key)" });
  readonly #next = button("Next →", () => this.#step(1), { title: "The next step (arrow key)" });
  readonly #pause = button("Pause", () => this.#toggle(), { className: "main" });
  readonly #restart = button("Begin again", () => void this.#openAct(this.#stage.act));
  readonly #speedField = slider("Speed", { least: 2, most: 200, unit: "%" }, (speed) => {
    this.#speed = speed / 100;
  });
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
  /** What happens as long as nobody changes the world; undefined once its reader has. */
  #recording: Recording | undefined;
  #parts: readonly Panel[] = [];
  #pending: TimelineEvent[] = [];
  /** ms of the world in a ms of the page. */
  #speed = 0.4;
  #isRunning = true;
  /** Where the world is to go at once, and to stand still. */
  #goal: number | undefined;
  /** When the next act begins, in ms of the page. */
  #nextAct: number | undefined;
  #openings = 0;
  #drawn = -1;

  constructor(root: HTMLElement) {
    root.append(...this.#layOut());
    // What is done here makes another world of that of a scene.
    for (const type of ["click", "input"]) {
      this.#panels.addEventListener(type, ({ target }) => {
        if ((target as Element).closest("button, input")) this.#leaveScene();
      });
    }
    addEventListener("hashchange", () => void this.#openAddress());
    addEventListener("keydown", (event) => this.#key(event));
    this.#begin(usual, 0);
    void this.#openAddress();
  }

  /** The world that is shown. */
  get stage(): Stage {
    return this.#stage;
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
      const end = this.#recording?.end ?? Infinity;
      if (goal !== undefined) {
        // More than once where the sum of two times is rounded down.
        do await time.advance(goal - time.elapsed);
        while (time.elapsed < goal);
      } else if (this.#isRunning) {
        await time.advance(Math.max(0, Math.min(passed * this.#speed, end - time.elapsed)));
      }
      if (stage !== this.#stage) continue;
      if (this.#goal === goal) this.#goal = undefined;
      if (this.#isRunning && time.elapsed >= end) {
        this.#isRunning = false;
        this.#nextAct = now + interval;
      }
      if (now >= (this.#nextAct ?? Infinity)) this.#leadOn();
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
      this.#acts,
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
    const moment = readMoment(location.hash, scenes);
    const scene = scenes.find(({ id }) => id === moment?.scene) ?? usual;
    if (!(await this.#open(scene, moment))) return;
    const end = this.#recording?.end ?? 0;
    if (!moment && location.hash.length > 1) {
      setText(this.#notice, "This link names no scene, or no time of one. So here is a scene to begin with.");
    } else if (moment?.time !== undefined && moment.time > end) {
      setText(this.#notice, `This link names a time after the end of the scene, at ${end} ms.`);
    }
  }

  /** Plays an act from its beginning, or shows a moment of it. @returns whether no other one was chosen meanwhile */
  async #open(scene: Scene, { act = 0, time }: Partial<Moment> = {}): Promise<boolean> {
    this.#openings += 1;
    const opening = this.#openings;
    setText(this.#ending, "");
    const recording = await record(scene, act);
    if (this.#openings !== opening) return false;
    if (this.#recording?.stage.scene !== scene) this.#setSpeed(scene.speed);
    this.#recording = recording;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#rewind(time ?? (isStill ? recording.end : undefined));
    return true;
  }

  /** Begins the act again; with a time, it stands still there. */
  #rewind(time?: number): void {
    const { stage: recorded, end } = this.#recording!;
    const stage = this.#begin(recorded.scene, recorded.act);
    this.#goal = time === undefined ? undefined : Math.min(time, end);
    this.#isRunning = time === undefined;
    void stage.play().then(() => {
      if (this.#stage === stage) setText(this.#ending, stage.outcome());
    });
  }

  async #openAct(act: number): Promise<void> {
    await this.#open(this.#stage.scene, { act });
    this.#writeAddress();
  }

  /** Goes on with the next act. @returns whether there is one */
  #leadOn(): boolean {
    this.#nextAct = undefined;
    const { scene, act } = this.#stage;
    const hasNext = act + 1 < scene.acts.length;
    if (hasNext) void this.#openAct(act + 1);
    return hasNext;
  }

  /** A new world. What was under way in the one before ends with it. */
  #begin(scene: Scene, act: number): Stage {
    const stage: Stage = usualStage(scene, act, (event) => {
      if (this.#stage === stage) this.#pending.push(event);
    });
    this.#stage = stage;
    this.#pending = [];
    this.#goal = undefined;
    this.#nextAct = undefined;
    this.#drawn = -1;
    setText(this.#notice, "");
    setText(this.#ending, "");
    setText(this.#shows, scene.shows);
    this.#story.begin(this.#recording?.steps ?? []);
    for (const [index, choice] of this.#scenes.entries()) {
      choice.setAttribute("aria-pressed", String(scenes[index] === scene));
    }
    const acts = scene.acts.map(({ name }, index) =>
      button(name, () => void this.#openAct(index), { "aria-pressed": index === act }),
    );
    this.#acts.replaceChildren(...(acts.length > 1 ? acts : []));
    this.#shown?.close();
    const timeline = stage.world.timeline("Who asked whom, and what came back");
    const until = this.#recording?.end ?? 0;
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
    this.#latency.show(latency);
    this.#loss.show(loss * 100);
    const fields = [this.#latency, this.#loss];
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
    if (!this.#recording) return;
    this.#recording = undefined;
    this.#nextAct = undefined;
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
    this.#nextAct = undefined;
    this.#writeAddress();
  }

  #step(by: 1 | -1): void {
    const now = this.#now;
    const steps = this.#recording?.steps ?? [];
    const step =
      by === 1 ? steps.find(({ time }) => time > now) : steps.filter(({ time }) => time < now).at(-1);
    if (step) this.#go(step.time);
    else if (by === 1 && this.#recording) this.#leadOn();
  }

  #toggle(): void {
    const isOver = this.#recording && this.#now >= this.#recording.end;
    if (isOver && this.#leadOn()) return;
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
    if (!this.#recording) return "";
    const { scene, act } = this.#stage;
    return writeMoment({ scene: scene.id, act, time });
  }

  #writeAddress(): void {
    // A document that is an attribute of another page has no address of its own.
    if (location.protocol === "about:") return;
    const hash = this.#hash(this.#isRunning ? undefined : this.#now);
    history.replaceState(null, "", hash || location.pathname + location.search);
  }

  #update(): void {
    const { elapsed } = this.#stage.world.time;
    const recording = this.#recording;
    const steps = recording?.steps ?? [];
    const of = recording ? ` of ${recording.end}` : "";
    setText(this.#time, `${Math.round(elapsed)}${of} ms`);
    setText(this.#pause, this.#isRunning ? "Pause" : "Play");
    for (const control of [this.#previous, this.#next]) control.hidden = !recording;
    this.#restart.hidden = recording !== undefined;
    this.#previous.ariaDisabled = String(!steps.some(({ time }) => time < elapsed));
    const isLast = this.#stage.act + 1 === this.#stage.scene.acts.length;
    this.#next.ariaDisabled = String(isLast && !steps.some(({ time }) => time > elapsed));
    // While nobody waits or holds anything, the picture of a changed world stays as it is.
    const isBusy = this.#stage.actors.some((actor) => actor.isBusy);
    if (this.#pending.length > 0 || (elapsed > this.#drawn && (isBusy || recording))) {
      const events = this.#pending.splice(0);
      this.#shown?.add(events, elapsed);
      this.#drawn = elapsed;
    }
    this.#story.show(elapsed);
    for (const part of this.#parts) part.update();
  }
}
