import { element } from "./dom.ts";
import { choice, slider, tick } from "./fields.ts";
import type { Cast, Stage } from "./stage.ts";
import type { Network } from "./world.ts";

const people = ["Ann", "Bob", "Cleo", "Dan", "Eve"];

function namesFor(kind: Cast["kind"], count: number): string[] {
  return people.slice(0, count).map((name, index) => (kind === "webhook" ? `fn-${index + 1}` : name));
}

/** What a world is made of, and how its network is. */
export class WorldPanel {
  readonly element: HTMLElement;
  readonly #fields = {
    kind: choice("What they use", ["lock", "semaphore", "fair lock", "webhook"], (kind) =>
      this.#change({ kind }),
    ),
    endpoints: choice("Endpoints", ["1", "3", "5"], (count) => this.#change({ endpoints: Number(count) })),
    clients: choice("Clients", ["1", "2", "3", "4", "5"], (count) =>
      this.#change({ clients: people.slice(0, Number(count)) }),
    ),
    fencing: tick("Fencing", (fencing) => this.#change({ fencing })),
    latency: slider("Latency", { least: 5, most: 300, unit: "ms" }, (latency) => {
      this.#network.latency = latency;
    }),
    loss: slider("Loss", { least: 0, most: 60, unit: "%" }, (loss) => {
      this.#network.loss = loss / 100;
    }),
  };
  readonly #choose: (cast: Cast) => void;
  #cast!: Cast;
  #network!: Network;

  /** @param choose gets what another world is to be made of */
  constructor(choose: (cast: Cast) => void) {
    this.#choose = choose;
    const fields = Object.values(this.#fields).map((field) => field.element);
    this.element = element("section", { className: "world" }, ...fields);
  }

  /** Shows the world that there is now. */
  show({ cast, world }: Stage): void {
    this.#cast = cast;
    this.#network = world.network;
    const { kind, endpoints, clients, fencing, latency, loss } = this.#fields;
    kind.show(cast.kind);
    endpoints.show(String(cast.endpoints) as "1");
    clients.show(String(cast.clients.length) as "1");
    fencing.show(cast.fencing);
    latency.show(world.network.latency);
    loss.show(world.network.loss * 100);
  }

  #change(changed: Partial<Cast>): void {
    const { kind, endpoints, clients, fencing } = { ...this.#cast, ...changed };
    this.#choose({ kind, endpoints, fencing, clients: namesFor(kind, clients.length) });
  }
}
