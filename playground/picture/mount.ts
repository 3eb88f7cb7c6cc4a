import { listen } from "./controls.ts";
import { type Frame, frameOf, viewOf } from "./frame.ts";
import { type Item, itemAt, itemsOf } from "./hit.ts";
import { shapesOf } from "./layout.ts";
import { buildView, type Parts } from "./parts.ts";
import { px } from "./pen.ts";
import type { Shapes } from "./shapes.ts";
import { drawPicture } from "./svg.ts";
import { pictureCss, viewCss } from "./theme.ts";
import type { Timeline, TimelineEvent } from "./timeline.ts";
import { appended, type ViewRange, ViewState } from "./view.ts";
import { Narrator } from "./words.ts";

/** A picture in a page. */
export interface MountedPicture {
  /**
   * Appends events.
   *
   * @param now The recorder's time: what goes on is drawn up to it. Default: the time of the last event.
   */
  add(events: readonly TimelineEvent[], now?: number): void;
  /** Removes the picture, and its listeners. */
  close(): void;
}

/** How a picture in a page behaves. */
export interface MountOptions {
  /**
   * ms: a live picture shows the latest so many, and forgets what ended before. Default: it shows everything, and
   * keeps everything.
   */
  readonly latest?: number;
  /** The time, on the recorder's clock, for which there is room from the beginning: a live picture fills up to it. */
  readonly until?: number;
  /** ms that a request or a reply takes at least that is called late. Default 20. */
  readonly late?: number;
}

/**
 * Draws a timeline in a page, and lets its reader zoom, pan, and look at everything with pointer or keyboard.
 * It is drawn at most once for each frame of the display, and only what is in view.
 *
 * @example
 * const picture = mountPicture(document.querySelector("#picture"), timeline, { latest: 60_000 });
 * source.onmessage = ({ data }) => picture.add(JSON.parse(data));
 */
export function mountPicture(
  element: Element,
  timeline: Timeline,
  options: MountOptions = {},
): MountedPicture {
  const picture = new Picture(element, timeline, options);
  return {
    add: (events, now) => picture.add(events, now),
    close: () => picture.close(),
  };
}

let mounted = 0;

class Picture {
  readonly #id = `mounted-picture-${mounted++}`;
  readonly #parts: Parts;
  readonly #latest: number;
  readonly #until: number;
  readonly #late: number | undefined;
  readonly #stop: () => void;
  readonly #resized: ResizeObserver;
  #timeline: Timeline;
  #shapes: Shapes;
  #items: Item[] = [];
  #frame: Frame;
  #view: ViewState;
  #selected: Item | undefined;
  /** Of the next frame of the display, if something has changed. */
  #request: number | undefined;
  #stale = true;

  constructor(element: Element, timeline: Timeline, { latest = Infinity, late, until = 0 }: MountOptions) {
    this.#parts = buildView(element, `${pictureCss}${viewCss}`);
    this.#latest = latest;
    this.#until = until;
    this.#late = late;
    this.#timeline = timeline;
    this.#shapes = shapesOf(timeline, this.#late);
    this.#view = new ViewState(this.#whole());
    this.#frame = frameOf(this.#shapes, { ...this.#view.range, width: this.#width() });
    this.#stop = listen(this.#parts, {
      pan: (part) => this.#change(() => this.#view.pan(part)),
      drag: (px) => this.#change(() => this.#view.pan(-px / (this.#frame.right - this.#frame.left))),
      zoom: (factor, x) => this.#change(() => this.#view.zoom(factor, x && this.#timeAt(x))),
      all: () => this.#change(() => this.#view.all()),
      point: (x, y) => this.#point(x, y),
      step: (by) => this.#step(by),
      clear: () => this.#select(undefined),
    });
    // Its height changes with every picture.
    this.#resized = new ResizeObserver(() => {
      if (this.#width() !== this.#frame.width) this.#redraw();
    });
    this.#resized.observe(this.#parts.stage);
    this.#draw();
  }

  add(events: readonly TimelineEvent[], now?: number): void {
    this.#timeline = appended(this.#timeline, events, { now, latest: this.#latest });
    this.#stale = true;
    this.#redraw();
  }

  close(): void {
    if (this.#request !== undefined) cancelAnimationFrame(this.#request);
    this.#resized.disconnect();
    this.#stop();
    this.#parts.root.remove();
  }

  #whole(): ViewRange {
    const { from, to } = this.#shapes;
    return viewOf(Math.max(from, to - this.#latest), Math.max(to, this.#until));
  }

  #width(): number {
    return Math.max(280, Math.floor(this.#parts.stage.clientWidth));
  }

  #timeAt(x: number): number {
    const { left, right, from, to } = this.#frame;
    return from + ((x - left) / (right - left)) * (to - from);
  }

  #change(change: () => void): void {
    change();
    this.#redraw();
  }

  #redraw(): void {
    this.#request ??= requestAnimationFrame(() => {
      this.#request = undefined;
      this.#draw();
    });
  }

  #draw(): void {
    if (this.#stale) {
      this.#stale = false;
      this.#shapes = shapesOf(this.#timeline, this.#late);
      this.#items = itemsOf(this.#shapes);
      this.#view.grow(this.#whole());
      this.#parts.name(this.#shapes.title);
    }
    const width = this.#width();
    this.#frame = frameOf(this.#shapes, { ...this.#view.range, width, above: 6 });
    const { markup, height } = drawPicture(this.#shapes, this.#frame, { tooltips: false, id: this.#id });
    const { svg } = this.#parts;
    svg.setAttribute("width", `${width}`);
    svg.setAttribute("height", `${height}`);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.innerHTML = markup + this.#selection();
  }

  #selection(): string {
    if (!this.#selected) return "";
    const { x, y, width, height } = this.#selected.box(this.#frame);
    return `<rect class="selected" x="${px(x - 2)}" y="${px(y - 2)}" width="${px(width + 4)}" height="${px(height + 4)}" rx="3"/>`;
  }

  /** Shows what is at a point, next to it. */
  #point(x: number, y: number): void {
    const { left, right } = this.#frame;
    this.#select(x < left || x > right ? undefined : itemAt(this.#items, x, y, this.#frame), { x, y });
  }

  #select(item: Item | undefined, at?: { x: number; y: number }): void {
    if (item !== this.#selected) {
      this.#selected = item;
      this.#redraw();
    }
    this.#parts.card(item?.note(new Narrator(this.#shapes)), at ?? this.#corner(item));
  }

  #corner(item: Item | undefined): { x: number; y: number } {
    if (!item) return { x: 0, y: 0 };
    const { x, y, width, height } = item.box(this.#frame);
    return { x: x + Math.min(width, 40), y: y + Math.min(height, 30) };
  }

  /** Goes to the next or the previous thing in time, and brings it into view. */
  #step(by: 1 | -1): void {
    const inTime = [...this.#items].sort((a, b) => a.time - b.time);
    const at = this.#selected ? inTime.indexOf(this.#selected) : -1;
    const next =
      inTime[at === -1 ? (by === 1 ? 0 : inTime.length - 1) : (at + by + inTime.length) % inTime.length];
    if (!next) return;
    this.#view.include(next.time);
    this.#frame = frameOf(this.#shapes, { ...this.#view.range, width: this.#width(), above: 6 });
    this.#select(next);
  }
}
