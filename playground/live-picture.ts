import {
  drawLegend,
  drawPicture,
  frameOf,
  hatch,
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
  readonly #svg: SVGSVGElement;
  readonly #legend = newSvg("Signs");
  readonly #timeline: Timeline;
  readonly #until: number;
  readonly #resized = new ResizeObserver(() => this.#draw());
  #events: readonly TimelineEvent[] = [];
  #now = 0;

  /** @param until the time for which there is room from the beginning: the picture fills up to it */
  constructor(element: HTMLElement, timeline: Timeline, until: number) {
    this.#timeline = timeline;
    this.#until = until;
    this.#svg = newSvg(timeline.title);
    const style = document.createElement("style");
    style.textContent = pictureCss;
    element.replaceChildren(style, this.#svg, this.#legend);
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
    const frame = frameOf(shapes, { ...view, width, above: 6 });
    show(this.#svg, { width, height: frame.height, markup: hatch + drawPicture(shapes, frame) });
    show(this.#legend, { width, ...drawLegend([shapes], width) });
  }
}

function newSvg(label: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "picture");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return svg;
}

function show(
  svg: SVGSVGElement,
  { width, height, markup }: { readonly width: number; readonly height: number; readonly markup: string },
): void {
  svg.setAttribute("width", `${width}`);
  svg.setAttribute("height", `${height}`);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.innerHTML = markup;
}
