import type { Parts } from "./parts.ts";

/** What a reader can do with a mounted picture. */
export interface Actions {
  /** Moves by a part of what is in view. */
  pan(part: number): void;
  /** Moves what is in view by so many px, to the right if positive. */
  drag(px: number): void;
  /** Zooms by a factor, around px of the stage or the middle. */
  zoom(factor: number, x?: number): void;
  all(): void;
  /** Looks at what is at a point of the stage. */
  point(x: number, y: number): void;
  /** Looks at the next or the previous thing. */
  step(by: 1 | -1): void;
  clear(): void;
}

const zoomStep = 1.5;
const panStep = 0.2;

/** Listens to buttons, pointers, wheel and keys; the returned function ends it. */
export function listen(parts: Parts, actions: Actions): () => void {
  const control = new AbortController();
  const { signal } = control;
  const { buttons } = parts;
  buttons.in.addEventListener("click", () => actions.zoom(zoomStep), { signal });
  buttons.out.addEventListener("click", () => actions.zoom(1 / zoomStep), { signal });
  buttons.left.addEventListener("click", () => actions.pan(-panStep), { signal });
  buttons.right.addEventListener("click", () => actions.pan(panStep), { signal });
  buttons.all.addEventListener("click", () => actions.all(), { signal });
  listenToKeys(parts.stage, actions, signal);
  listenToPointers(parts.stage, actions, signal);
  return () => control.abort();
}

function listenToKeys(stage: HTMLElement, actions: Actions, signal: AbortSignal): void {
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => actions.pan(-panStep),
    ArrowRight: () => actions.pan(panStep),
    "+": () => actions.zoom(zoomStep),
    "=": () => actions.zoom(zoomStep),
    "-": () => actions.zoom(1 / zoomStep),
    "0": () => actions.all(),
    Home: () => actions.all(),
    n: () => actions.step(1),
    p: () => actions.step(-1),
    Escape: () => actions.clear(),
  };
  stage.addEventListener(
    "keydown",
    (event) => {
      const action = keys[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    },
    { signal },
  );
}

/** One pointer looks and drags; two zoom. */
function listenToPointers(stage: HTMLElement, actions: Actions, signal: AbortSignal): void {
  const down = new Map<number, number>();
  const place = (event: MouseEvent) => {
    const { left, top } = stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const distance = () => {
    const [one, other] = [...down.values()];
    return other === undefined ? undefined : Math.max(20, Math.abs(one! - other));
  };
  const on = <Name extends keyof HTMLElementEventMap>(
    name: Name,
    listener: (event: HTMLElementEventMap[Name]) => void,
  ) => stage.addEventListener(name, listener, { signal, passive: false });
  on("pointerdown", (event) => {
    down.set(event.pointerId, place(event).x);
    stage.setPointerCapture(event.pointerId);
    actions.point(place(event).x, place(event).y);
  });
  on("pointermove", (event) => {
    const { x, y } = place(event);
    const before = down.get(event.pointerId);
    if (before === undefined) {
      actions.point(x, y);
      return;
    }
    const apart = distance();
    down.set(event.pointerId, x);
    if (apart === undefined) actions.drag(x - before);
    else actions.zoom(distance()! / apart, [...down.values()].reduce((sum, one) => sum + one, 0) / down.size);
  });
  const up = (event: PointerEvent) => down.delete(event.pointerId);
  on("pointerup", up);
  on("pointercancel", up);
  on("pointerleave", (event) => {
    if (event.pointerType === "mouse" && down.size === 0) actions.clear();
  });
  on("wheel", (event) => {
    // The wheel alone scrolls the page, as everywhere.
    if (event.ctrlKey || event.metaKey) actions.zoom(1.2 ** (-event.deltaY / 50), place(event).x);
    else if (event.deltaX !== 0) actions.drag(-event.deltaX);
    else return;
    event.preventDefault();
  });
}
