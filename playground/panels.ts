import type { Slot } from "./actor.ts";
import { button, element, setText } from "./dom.ts";
import type { Part } from "./parts.ts";
import type { Stage } from "./scenes/index.ts";

/** A part of the page, and how to bring it up to date. */
export interface Panel {
  readonly element: HTMLElement;
  update(): void;
}

/** Does a deed to a part of the world. */
export type Do = (part: string, deed: string) => void;

/** One card per part: what it does, and what can be done to it. */
export function cardsOf(parts: readonly Part[], act: Do): Panel {
  const cards = parts.map(({ name, says, slots }) => {
    const state = element("p", { className: "state" });
    const buttons = slots.map((slot) => slotButton(name, slot, act));
    const row = element("div", { className: "buttons" }, ...buttons.map((each) => each.element));
    const card = element(
      "section",
      { className: "card", "data-part": name },
      element("h4", {}, `${name} `),
      state,
      row,
    );
    return { card, state, says, buttons };
  });
  return {
    element: element("div", { className: "cards" }, ...cards.map(({ card }) => card)),
    update() {
      for (const { state, says, buttons } of cards) {
        setText(state, says());
        for (const each of buttons) each.update();
      }
    },
  };
}

/** The button for what is done to a part most often. It stands on the part's lane of the picture. */
export function laneButton({ name, lane }: Part, act: Do): Panel {
  const { element: made, update } = slotButton(name, lane, act);
  made.className = "lane";
  return {
    element: made,
    update() {
      update();
      made.ariaLabel = `${made.textContent} ${name}`;
    },
  };
}

function slotButton(part: string, slot: Slot, act: Do): Panel {
  const current = () => slot.find((deed) => deed.isPossible());
  const made = button("", () => act(part, current()?.label ?? ""));
  return {
    element: made,
    update() {
      const deed = current();
      setText(made, (deed ?? slot[0]!).label);
      made.disabled = deed === undefined;
    },
  };
}

/** What the storage has. */
export function outcomePanel({ world, lines }: Stage): Panel {
  const list = element("ol", { className: "ledger" });
  const heading = world.storage.replace(/^t/, "T");
  return {
    element: element("section", { className: "outcome" }, element("h3", {}, heading), list),
    update() {
      const all = lines();
      while (list.children.length < all.length) list.append(element("li"));
      all.forEach((line, index) => {
        setText(list.children[index]!, line);
      });
    },
  };
}
