import { type Click, type Moment, readMoment, usualSeed, writeMoment } from "./address.ts";
import { button, element, setText } from "./dom.ts";
import { slider } from "./fields.ts";
import { LivePicture } from "./live-picture.ts";
import { cardsOf, laneButton, outcomePanel, type Panel } from "./panels.ts";
import { most, partsOf } from "./parts.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { type Recording, record } from "./recording.ts";
import { Replay } from "./replay.ts";
import { type Scene, type Stage, scenes } from "./scenes/index.ts";
import { Story } from "./story.ts";

const usual = scenes[0]!;
/** ms for which the end of an act is seen before the next act begins. */
const interval = 2_500;

/** The page: its controls, its picture, and the world that is shown. */
export class Page {
  readonly #scenes = scenes.map((scene) => button(scene.name, () => void this.#open(scene)));
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
  readonly #copy = button("Copy link", () => void this.#copyLink());
  readonly #save = button("Download SVG", () => this.#download());
  readonly #speedField = slider("Speed", { least: 2, most: 200, unit: "%" }, (speed) => {
    this.#speed = speed / 100;
  });
  readonly #latency = slider("Latency", { least: 5, most: most.latency, unit: "ms" }, (ms) =>
    this.#do("latency", `${ms}`),
  );
  readonly #loss = slider("Loss", { least: 0, most: most.loss, unit: "%" }, (share) =>
    this.#do("loss", `${share}`),
  );
  readonly #seed = button(
    "",
    () => void this.#open(this.#stage.scene, { ...this.#moment, clicks: [], seed: this.#stage.seed + 1 }),
  );
  readonly #challenge: Element;
  readonly #panels = element("div", { className: "panels" });
  readonly #picture = element("div", { id: "picture" });
  readonly #legend = element("div", { id: "legend" });
  #shown: LivePicture | undefined;
  #replay!: Replay;
  /** What happens as long as nobody changes the world; undefined once somebody has. */
  #recording: Recording | undefined;
  /** ms for which the picture has room from the beginning. */
  #until = 0;
  #parts: readonly Panel[] = [];
  #pending: TimelineEvent[] = [];
  /** What the reader wants to do next. */
  #wanted: Omit<Click, "time">[] = [];
  /** ms of the world in a ms of the page, as the scene wants it, or the reader. */
  #speed = 0.4;
  #pacedFor: Scene | undefined;
  #isRunning = true;
  /** Where the world is to go at once, and to stand still. */
  #goal: number | undefined;
  /** When the next act begins, in ms of the page. */
  #nextAct: number | undefined;
  #openings = 0;
  #drawn = -1;

  /** @param challenge what stands above all that can be done to a world */
  constructor(root: Element, challenge: Element) {
    this.#challenge = challenge;
    root.append(...this.#layOut());
    addEventListener("hashchange", () => void this.#openAddress());
    addEventListener("keydown", (event) => this.#key(event));
    this.#begin(usual, { act: 0, seed: usualSeed, clicks: [] });
    void this.#openAddress();
  }

  /** The world that is shown. */
  get stage(): Stage {
    return this.#stage;
  }

  get #stage(): Stage {
    return this.#replay.stage;
  }

  /** Advances the world with the page's time, for as long as the page is open. */
  async run(): Promise<void> {
    for (let last = performance.now(); ; ) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      // A tab in the background gets no frames: then the world stands still, too.
      const passed = Math.min(100, now - last);
      last = now;
      const replay = this.#replay;
      await this.#goOn(replay, passed);
      if (replay !== this.#replay) continue;
      if (this.#isRunning && replay.elapsed >= (this.#recording?.end ?? Infinity)) {
        this.#isRunning = false;
        this.#nextAct = now + interval;
      }
      if (now >= (this.#nextAct ?? Infinity)) this.#leadOn();
      this.#update();
    }
  }

  async #goOn(replay: Replay, passed: number): Promise<void> {
    const goal = this.#goal;
    if (goal !== undefined) {
      // A frame that was under way may have gone beyond it.
      await replay.advance(Math.max(goal, Math.ceil(replay.elapsed)));
      if (this.#replay === replay && this.#goal === goal) {
        this.#goal = undefined;
        this.#writeAddress();
      }
    }
    for (const { part, deed } of this.#wanted.splice(0)) {
      await replay.act(part, deed);
      if (replay !== this.#replay) return;
      this.#leaveScene();
    }
    const end = this.#recording?.end ?? Infinity;
    if (goal === undefined && this.#isRunning) {
      await replay.advance(Math.max(replay.elapsed, Math.min(replay.elapsed + passed * this.#speed, end)));
    }
  }

  #layOut(): Node[] {
    const buttons = [this.#previous, this.#pause, this.#next, this.#restart];
    const story = element(
      "section",
      { className: "story" },
      this.#shows,
      this.#acts,
      element("div", { className: "buttons" }, ...buttons, this.#speedField.element, this.#time),
      this.#story.element,
      this.#ending,
      element("div", { className: "buttons" }, this.#copy, this.#save),
    );
    const side = element("div", { className: "side" }, this.#picture, this.#legend);
    return [
      element("div", { className: "scenes", role: "group", "aria-label": "Scenes" }, ...this.#scenes),
      this.#notice,
      element("div", { className: "theatre" }, story, side, this.#panels),
    ];
  }

  /** What the address names, or the usual scene. */
  async #openAddress(): Promise<void> {
    const moment = readMoment(location.hash, scenes);
    const scene = scenes.find(({ id }) => id === moment?.scene) ?? usual;
    if (!(await this.#show(scene, moment))) return;
    const end = this.#recording?.end;
    if (!moment && location.hash.length > 1) {
      setText(this.#notice, "This link names no scene, or no time of one. So here is a scene to begin with.");
    } else if (end !== undefined && (moment?.time ?? 0) > end) {
      setText(this.#notice, `This link names a time after the end of the scene, at ${end} ms.`);
    }
  }

  async #open(scene: Scene, moment: Partial<Moment> = {}): Promise<void> {
    if (await this.#show(scene, { ...moment, time: undefined })) this.#writeAddress();
  }

  #openAct(act: number): Promise<void> {
    return this.#open(this.#stage.scene, { act, seed: this.#stage.seed });
  }

  /** Plays an act from its beginning, or shows a moment of it. @returns whether no other one was chosen meanwhile */
  async #show(
    scene: Scene,
    { act = 0, seed = usualSeed, clicks = [], time }: Partial<Moment> = {},
  ): Promise<boolean> {
    this.#openings += 1;
    const opening = this.#openings;
    setText(this.#ending, "");
    const recording = await record(scene, act, seed);
    if (this.#openings !== opening) return false;
    if (this.#pacedFor !== scene) this.#setPace(scene);
    this.#recording = clicks.length === 0 ? recording : undefined;
    this.#until = recording.end;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const end = Math.max(recording.end, clicks.at(-1)?.time ?? 0);
    this.#begin(scene, { act, seed, clicks, time: time ?? (isStill ? end : undefined) });
    if (clicks.length > 0) this.#sayChanged();
    return true;
  }

  /** A new world, which plays, or stands still at a time. What was under way in the one before ends with it. */
  #begin(scene: Scene, { act, seed, clicks, time }: Omit<Moment, "scene">): void {
    const replay: Replay = new Replay(scene, { act, seed, clicks }, (event) => {
      if (this.#replay === replay) this.#pending.push(event);
    });
    const { stage } = replay;
    this.#replay = replay;
    this.#pending = [];
    this.#wanted = [];
    const { end = 0, steps = [] } = this.#recording ?? {};
    this.#goal = time === undefined ? undefined : Math.min(time, end || time);
    this.#isRunning = time === undefined;
    this.#nextAct = undefined;
    this.#drawn = -1;
    for (const each of [this.#notice, this.#ending]) setText(each, "");
    setText(this.#shows, scene.shows);
    this.#story.begin(steps);
    for (const [index, choice] of this.#scenes.entries()) {
      choice.setAttribute("aria-pressed", String(scenes[index] === scene));
    }
    const acts = scene.acts.map(({ name }, index) =>
      button(name, () => void this.#openAct(index), { "aria-pressed": index === act }),
    );
    this.#acts.replaceChildren(...(acts.length > 1 ? acts : []));
    this.#shown?.close();
    const lanes = this.#showPanels(stage);
    const timeline = stage.world.timeline("Who asked whom, and what came back");
    const places = { picture: this.#picture, legend: this.#legend };
    this.#shown = new LivePicture(places, timeline, { until: this.#until, lanes });
    void stage.play().then(() => {
      if (this.#replay === replay) setText(this.#ending, stage.outcome());
    });
  }

  /** Shows what can be done to a world. @returns the buttons for its lanes */
  #showPanels(stage: Stage): ReadonlyMap<string, HTMLElement> {
    const act = (part: string, deed: string) => this.#do(part, deed);
    const { actors, endpoints } = partsOf(stage);
    const [clients, servers, outcome] = [cardsOf(actors, act), cardsOf(endpoints, act), outcomePanel(stage)];
    const lanes = [...actors, ...endpoints].map((part) => ({ name: part.name, ...laneButton(part, act) }));
    this.#parts = [clients, servers, outcome, ...lanes];
    const { latency, loss } = stage.world.network;
    this.#latency.show(latency);
    this.#loss.show(loss * 100);
    setText(this.#seed, `Other random numbers (seed ${stage.seed})`);
    const fields = [this.#latency.element, this.#loss.element, this.#seed];
    this.#panels.replaceChildren(
      this.#challenge,
      element("h3", {}, "Clients"),
      clients.element,
      element("h3", {}, "Endpoints"),
      servers.element,
      outcome.element,
      element("h3", {}, "The world"),
      element("section", { className: "world" }, ...fields),
    );
    return new Map(lanes.map((lane) => [lane.name, lane.element]));
  }

  /** Goes on with the next act. @returns whether there is one */
  #leadOn(): boolean {
    this.#nextAct = undefined;
    const { scene, act } = this.#stage;
    const hasNext = act + 1 < scene.acts.length;
    if (hasNext) void this.#openAct(act + 1);
    return hasNext;
  }

  #setPace(scene: Scene): void {
    this.#pacedFor = scene;
    this.#speed = scene.speed;
    this.#speedField.show(scene.speed * 100);
  }

  /** Does something to the world as soon as its time is whole. */
  #do(part: string, deed: string): void {
    this.#wanted.push({ part, deed });
  }

  /** Somebody has changed the world. */
  #leaveScene(): void {
    if (this.#recording) {
      this.#recording = undefined;
      this.#nextAct = undefined;
      this.#story.begin([]);
      this.#isRunning = true;
      this.#sayChanged();
    }
    this.#writeAddress();
  }

  #sayChanged(): void {
    setText(this.#notice, "You changed this world: it goes its own way now. “Begin again” plays the scene.");
  }

  /** Where the world is, or will be in a moment. */
  get #now(): number {
    return this.#goal ?? this.#replay.elapsed;
  }

  /** Shows a moment of the scene. */
  #go(time: number): void {
    if (time < this.#now) this.#begin(this.#stage.scene, { ...this.#moment, time });
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
    if (isOver) this.#begin(this.#stage.scene, { ...this.#moment, time: undefined });
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

  /** What is shown. */
  get #moment(): Moment {
    const { scene, act, seed } = this.#stage;
    return { scene: scene.id, act, seed, clicks: this.#replay.clicks, time: Math.ceil(this.#now) };
  }

  #writeAddress(): void {
    // A document that is an attribute of another page has no address of its own.
    if (location.protocol === "about:") return;
    const { time, ...moment } = this.#moment;
    history.replaceState(null, "", writeMoment(this.#isRunning ? moment : { ...moment, time }));
  }

  /** Copies a link to this moment. */
  async #copyLink(): Promise<void> {
    const link = location.href.replace(/#.*|$/, writeMoment(this.#moment));
    try {
      await navigator.clipboard.writeText(link);
      setText(this.#notice, "Copied: the link opens this world at this moment.");
    } catch {
      setText(this.#notice, `Your browser does not let this page copy. The link: ${link}`);
    }
  }

  #download(): void {
    const { scene, act } = this.#stage;
    const name = scene.acts[act]!.name;
    const href = URL.createObjectURL(this.#shown!.toFile(name ? `${scene.shows} ${name}.` : scene.shows));
    element("a", { href, download: `${scene.id}.svg` }).click();
    URL.revokeObjectURL(href);
  }

  #update(): void {
    const { elapsed } = this.#replay;
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
      this.#shown?.add(this.#pending.splice(0), elapsed);
      this.#drawn = elapsed;
    }
    this.#story.show(elapsed);
    for (const part of this.#parts) part.update();
  }
}
