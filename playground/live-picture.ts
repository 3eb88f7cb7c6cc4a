import {
  drawLegend,
  drawPicture,
  frameOf,
  hatch,
  pictureCss,
  shapesOf,
  type Timeline,
  type TimelineEvent,
  toSvg,
  viewOf,
} from "./picture/index.ts";

/** ms of a world that are shown at most: the latest. */
const latest = 12_000;

/** px: in less width, a picture is to be so low that it stays in sight of all below it. */
const narrow = 500;

/** A picture in the page that grows with what happens. */
export class LivePicture {
  readonly #svg: SVGSVGElement;
  readonly #legend = newSvg("Signs");
  readonly #timeline: Timeline;
  readonly #until: number;
  readonly #resized = new ResizeObserver(() => this.#draw());
  #events: readonly TimelineEvent[] = [];
  readonly #lanes: ReadonlyMap<string, HTMLElement>;
  #now = 0;

  /**
   * @param picture `until`: the time for which there is room from the beginning, up to which the picture fills; `lanes`: what
   * stands on the names of lanes
   */
  constructor(
    { picture, legend }: { readonly picture: HTMLElement; readonly legend: HTMLElement },
    timeline: Timeline,
    { until, lanes }: { readonly until: number; readonly lanes: ReadonlyMap<string, HTMLElement> },
  ) {
    this.#timeline = timeline;
    this.#until = until;
    this.#lanes = lanes;
    this.#svg = newSvg(timeline.title);
    const style = document.createElement("style");
    style.textContent = pictureCss;
    picture.replaceChildren(style, this.#svg, ...lanes.values());
    legend.replaceChildren(this.#legend);
    this.#resized.observe(picture);
  }

  /** What is shown, as a file. */
  toFile(title: string): Blob {
    const timeline = { ...this.#timeline, events: this.#events, from: 0, to: this.#now };
    return new Blob([toSvg([timeline], { title })], { type: "image/svg+xml" });
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
    const frame = frameOf(shapes, { ...view, width, above: 6, isPlain: width < narrow });
    show(this.#svg, { width, height: frame.height, markup: hatch + drawPicture(shapes, frame) });
    for (const { name, top, bottom } of frame.lanes) {
      const style = this.#lanes.get(name)?.style;
      if (style)
        [style.top, style.height, style.width] = [`${top}px`, `${bottom - top}px`, `${frame.left - 14}px`];
    }
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
