import type { Actor } from "./actor.ts";
import { button, element, setText } from "./dom.ts";
import type { Stage } from "./scenes/index.ts";

/** A part of the page, and how to bring it up to date. */
export interface Panel {
  readonly element: HTMLElement;
  update(): void;
}

/** One card per process: what it does, and what can be done to it. */
export function clientsPanel(stage: Stage): Panel {
  return cardsOf(stage.actors.map((actor) => clientCard(actor)));
}

function cardsOf(cards: readonly Panel[]): Panel {
  return {
    element: element("div", { className: "cards" }, ...cards.map((card) => card.element)),
    update() {
      for (const card of cards) card.update();
    },
  };
}

function clientCard(actor: Actor): Panel {
  const { client, actions } = actor;
  const state = element("p", { className: "state" });
  const buttons = actions.map(({ label, act }) => button(label, () => void act()));
  const freeze = button("Freeze", () => (client.isFrozen ? client.thaw() : client.freeze()), {
    title: "Stop the process, as a platform does; its monotonic clock stands still",
  });
  return {
    element: element(
      "section",
      { className: "card", "data-client": client.name },
      element("h4", {}, `${client.name} `),
      state,
      element("div", { className: "buttons" }, ...buttons, freeze),
    ),
    update() {
      setText(state, actor.says);
      setText(freeze, client.isFrozen ? "Wake up" : "Freeze");
      for (const [index, action] of actions.entries()) buttons[index]!.disabled = !action.isPossible();
    },
  };
}

/** One card per endpoint: what it holds, and what can be done to it. */
export function endpointsPanel(stage: Stage): Panel {
  const { world } = stage;
  const cards = world.endpoints.map((endpoint): Panel => {
    const state = element("p", { className: "state" });
    const kill = button("Kill", () => world.kill(endpoint));
    const start = button("Start", () => world.start(endpoint, "kept"));
    const empty = button("Start empty", () => world.start(endpoint, "lost"), { title: "Its data is lost" });
    const jump = button("Clock +5 s", () => world.jump(endpoint, 5_000));
    const cuts = world.clients.map(({ name }) => cutSwitch(stage, name, endpoint.name));
    return {
      element: element(
        "section",
        { className: "card", "data-endpoint": endpoint.name },
        element("h4", {}, `${endpoint.name} `),
        state,
        element("div", { className: "buttons faults" }, kill, start, empty, jump),
        element("div", { className: "cuts" }, "Reached by: ", ...cuts.map((cut) => cut.element)),
      ),
      update() {
        const isKilled = world.killed.has(endpoint.name);
        const held = [...world.stored(endpoint).values()].filter(({ until }) => until > world.time.elapsed);
        const what = held.map(({ label, holder }) => `${label}: ${holder}`).join(", ") || "holds nothing";
        setText(state, isKilled ? "killed" : what);
        kill.disabled = isKilled;
        start.disabled = empty.disabled = !isKilled;
        for (const cut of cuts) cut.update();
      },
    };
  });
  return cardsOf(cards);
}

function cutSwitch({ world }: Stage, client: string, endpoint: string): Panel {
  const input = element("input", {
    type: "checkbox",
    onchange: () => world.setCut(client, endpoint, !input.checked),
  });
  return {
    element: element("label", {}, input, client),
    update() {
      input.checked = !world.isCut(client, endpoint);
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
