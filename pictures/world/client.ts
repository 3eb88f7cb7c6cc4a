import type { Runtime } from "../../src/index.ts";
import type { Answer, Request } from "../timeline.ts";
import type { World } from "./world.ts";

/** One process: its clocks, whether it runs, and what it sends. */
export class Client {
  readonly name: string;
  readonly world: World;
  readonly runtime: Runtime;
  #frozenAt: number | undefined;
  /** ms for which the process was frozen. */
  #stoodStill = 0;
  /** What waits until the process runs again. */
  #held: (() => void)[] = [];

  constructor(world: World, name: string) {
    this.world = world;
    this.name = name;
    const { time } = world;
    this.runtime = {
      now: time.now,
      // It stands still while the platform freezes the process, as in a Lambda.
      monotonic: () => (this.#frozenAt ?? time.elapsed) - this.#stoodStill,
      timer: (ms, callback) => {
        let isCancelled = false;
        const run = () => isCancelled || callback();
        const cancel = time.timer(ms, () => this.#whenRunning(run));
        return () => {
          isCancelled = true;
          cancel();
        };
      },
      random: time.random,
      randomBytes: time.randomBytes,
    };
  }

  #whenRunning(then: () => void): void {
    if (this.#frozenAt === undefined) then();
    else this.#held.push(then);
  }

  freeze(): void {
    this.#frozenAt = this.world.time.elapsed;
    this.world.record({ phase: "frozen", client: this.name, name: "frozen" });
  }

  thaw(): void {
    this.#stoodStill += this.world.time.elapsed - this.#frozenAt!;
    this.#frozenAt = undefined;
    this.world.record({ phase: "thawed", client: this.name });
    for (const then of this.#held.splice(0)) then();
  }

  /** Handles something. `handle` returns what has become of it, in a word. */
  async call(operation: string, key: string, handle: () => Promise<string>): Promise<void> {
    const about = { client: this.name, operation, key };
    this.world.record({ phase: "called", ...about });
    const name = await handle();
    this.world.record({ phase: "returned", ...about, outcome: "granted", name });
  }

  /** Writes to the storage. `arrive` is called there, and returns why the writing is refused, if it is. */
  async write(operation: string, arrive: () => string | undefined): Promise<void> {
    await this.exchange({ endpoint: this.world.storage, operation }, () => {
      const detail = arrive();
      return { outcome: detail === undefined ? "granted" : "held", detail };
    });
  }

  /** Carries a request to an endpoint or to the storage, and the answer back. `arrive` is called in between. */
  async exchange<Arrived extends Answer>(
    about: Omit<Request, "client" | "request">,
    arrive: () => Arrived | Promise<Arrived>,
  ): Promise<Arrived> {
    const { world, name: client } = this;
    const request = world.newRequest();
    world.record({ phase: "sent", client, request, ...about });
    await world.time.sleep(world.travelTime(client, about.endpoint));
    const arrived = await arrive();
    const { outcome, detail } = arrived;
    world.record({ phase: "executed", request, outcome, detail });
    await world.time.sleep(world.travelTime(client, about.endpoint));
    await new Promise<void>((resolve) => this.#whenRunning(resolve));
    world.record({ phase: "answered", request, outcome, detail });
    return arrived;
  }
}
