import {
  drawPicture,
  frameOf,
  pictureCss,
  shapesOf,
  type Timeline,
  type TimelineEvent,
  viewOf,
} from "./picture/index.ts";

/** ms of a world that are shown at most: the latest. */
const latest = 12_000;

/** A picture in the page that grows with what happens. */
export class LivePicture {
  readonly #svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  readonly #timeline: Timeline;
  readonly #until: number;
  readonly #resized = new ResizeObserver(() => this.#draw());
  #events: readonly TimelineEvent[] = [];
  #now = 0;

  /** @param until the time for which there is room from the beginning: the picture fills up to it */
  constructor(element: HTMLElement, timeline: Timeline, until: number) {
    this.#timeline = timeline;
    this.#until = until;
    this.#svg.setAttribute("class", "picture");
    this.#svg.setAttribute("role", "img");
    this.#svg.setAttribute("aria-label", timeline.title);
    const style = document.createElement("style");
    style.textContent = pictureCss;
    element.replaceChildren(style, this.#svg);
    this.#resized.observe(element);
  }

  /** Appends what has happened until `now`, in ms of the world. */
  add(events: readonly TimelineEvent[], now: number): void {
    this.#events = [...this.#events, ...events];
    this.#now = now;
    this.#draw();
  }

  close(): void {
    this.#resized.disconnect();
  }

  #draw(): void {
    const shapes = shapesOf({ ...this.#timeline, events: this.#events, from: 0, to: this.#now });
    const width = Math.max(280, Math.floor(this.#svg.parentElement!.clientWidth));
    const view = viewOf(Math.max(0, this.#now - latest), Math.max(this.#now, this.#until));
    const { markup, height } = drawPicture(shapes, frameOf(shapes, { ...view, width, above: 6 }));
    this.#svg.setAttribute("width", `${width}`);
    this.#svg.setAttribute("height", `${height}`);
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#svg.innerHTML = markup;
  }
}
