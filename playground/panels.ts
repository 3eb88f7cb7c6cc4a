import type { Contender, State } from "./contender.ts";
import { button, element, setText } from "./dom.ts";
import type { Stage } from "./stage.ts";

/** A part of the page, and how to bring it up to date. */
export interface Panel {
  readonly element: HTMLElement;
  update(): void;
}

/** One card per client: what it does, and what can be done to it. */
export function clientsPanel(stage: Stage): Panel {
  const cards = stage.contenders.map((contender) => clientCard(contender));
  return {
    element: element("div", { className: "cards" }, ...cards.map((card) => card.element)),
    update() {
      for (const card of cards) card.update();
    },
  };
}

function clientCard(contender: Contender): Panel {
  const { client } = contender;
  const state = element("p", { className: "state" });
  const actions = turns(contender);
  const freeze = button("Freeze", () => (client.isFrozen ? client.thaw() : client.freeze()), {
    title: "Stop the process, as a platform does; its monotonic clock stands still",
  });
  return {
    element: element(
      "section",
      { className: "card", "data-client": client.name },
      element("h4", {}, `${client.name} `),
      state,
      element("div", { className: "buttons" }, ...actions.map((action) => action.element)),
      element("div", { className: "buttons faults" }, freeze),
    ),
    update() {
      setText(state, describe(contender));
      setText(freeze, client.isFrozen ? "Wake up" : "Freeze");
      for (const action of actions) action.update();
    },
  };
}

function describe(contender: Contender): string {
  const frozen = contender.client.isFrozen ? "frozen, " : "";
  if (contender.state === "holding") {
    const fence = contender.fence === undefined ? "" : ` · fence ${contender.fence}`;
    return `${frozen}holds it for ${Math.max(0, Math.round(contender.remaining()))} ms more${fence}`;
  }
  return frozen + { idle: "does nothing", waiting: "waits for it", lost: "has lost it" }[contender.state];
}

/** What a contender can do: buttons that are enabled when it makes sense. */
function turns(contender: Contender): Panel[] {
  const turn = (label: string, states: readonly State[], act: () => unknown): Panel => {
    const made = button(label, () => void act());
    return {
      element: made,
      update() {
        made.disabled = contender.client.isFrozen || !states.includes(contender.state);
      },
    };
  };
  return [
    turn("Acquire", ["idle", "lost"], () => contender.acquire()),
    turn("Give up", ["waiting"], () => contender.giveUp()),
    turn("Write", ["holding", "lost"], () => contender.write(`${contender.client.name}'s line`)),
    turn("Extend", ["holding"], () => contender.extend().catch(() => undefined)),
    turn("Release", ["holding", "lost"], () => contender.release()),
  ];
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
  return {
    element: element("div", { className: "cards" }, ...cards.map((card) => card.element)),
    update() {
      for (const card of cards) card.update();
    },
  };
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

/** The ledger's lines. */
export function outcomePanel({ ledger }: Stage): Panel {
  const list = element("ol", { className: "ledger" });
  return {
    element: element("section", { className: "outcome" }, element("h3", {}, "The ledger"), list),
    update() {
      const all = ledger.entries.map(
        ({ by, what, fence }) => `${by}: ${what}${fence === undefined ? "" : ` (fence ${fence})`}`,
      );
      while (list.children.length < all.length) list.append(element("li"));
      all.forEach((line, index) => {
        setText(list.children[index]!, line);
      });
    },
  };
}
