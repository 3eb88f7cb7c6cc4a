import type { Note } from "./words.ts";

/** The elements of a mounted picture. */
export interface Parts {
  readonly root: HTMLElement;
  /** What has the focus, and takes pointers and keys. */
  readonly stage: HTMLElement;
  readonly svg: SVGSVGElement;
  readonly buttons: Readonly<Record<ButtonName, HTMLButtonElement>>;
  /** Says what the picture is. */
  name(title: string): void;
  /** Shows a note next to a point of the stage, or none. */
  card(note: Note | undefined, at: { readonly x: number; readonly y: number }): void;
}

export type ButtonName = "in" | "out" | "left" | "right" | "all";

const labels: Readonly<Record<ButtonName, readonly [text: string, title: string]>> = {
  in: ["+", "Zoom in (key +)"],
  out: ["−", "Zoom out (key −)"],
  left: ["←", "Earlier (arrow key)"],
  right: ["→", "Later (arrow key)"],
  all: ["Show all", "Show the whole time (key 0)"],
};

const hint =
  "Point at anything to read about it. Drag to move in time; Ctrl and the wheel, or two fingers, to zoom. Keys: ← → + − 0, N and P for the next and the previous event.";

/** Puts the elements of a picture into an element, instead of what is there. */
export function buildView(element: Element, css: string): Parts {
  const page = element.ownerDocument;
  const make = <Name extends keyof HTMLElementTagNameMap>(name: Name, kind: string) => {
    const made = page.createElement(name);
    made.className = kind;
    return made;
  };
  const root = make("div", "picture-view");
  const style = page.createElement("style");
  style.textContent = css;
  const tools = make("div", "picture-tools");
  const buttons = buttonsOf(page);
  tools.append(...Object.values(buttons));
  const help = make("p", "picture-hint");
  help.textContent = hint;
  const stage = make("div", "picture-stage");
  stage.tabIndex = 0;
  stage.setAttribute("role", "application");
  stage.setAttribute("aria-description", hint);
  const svg = page.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "picture");
  svg.setAttribute("role", "img");
  stage.append(svg);
  const card = make("div", "picture-card");
  card.setAttribute("role", "status");
  card.hidden = true;
  root.append(style, tools, stage, help, card);
  element.replaceChildren(root);
  return {
    root,
    stage,
    svg,
    buttons,
    name: (title) => {
      stage.setAttribute("aria-label", title);
      svg.setAttribute("aria-label", title);
    },
    card: (note, at) => showCard(card, stage, note, at),
  };
}

function buttonsOf(page: Document): Parts["buttons"] {
  const button = (name: ButtonName) => {
    const [text, title] = labels[name];
    const made = page.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = title;
    made.setAttribute("aria-label", title);
    return made;
  };
  return {
    out: button("out"),
    in: button("in"),
    left: button("left"),
    right: button("right"),
    all: button("all"),
  };
}

function showCard(
  card: HTMLElement,
  stage: HTMLElement,
  note: Note | undefined,
  at: { readonly x: number; readonly y: number },
): void {
  card.hidden = note === undefined;
  if (!note) return;
  const title = card.ownerDocument.createElement("strong");
  title.textContent = note.title;
  const lines = note.lines.map((line) => {
    const made = card.ownerDocument.createElement("span");
    made.textContent = line;
    return made;
  });
  card.replaceChildren(title, ...lines);
  const left = Math.min(at.x + 14, stage.clientWidth - card.offsetWidth - 2);
  // Above the point if there is no room below it.
  const room = stage.clientHeight - at.y;
  const top =
    room < card.offsetHeight + 20 && at.y > card.offsetHeight + 10
      ? at.y - card.offsetHeight - 10
      : at.y + 16;
  card.style.left = `${Math.max(2, left)}px`;
  card.style.top = `${stage.offsetTop + top}px`;
}
