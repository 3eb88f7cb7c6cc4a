import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import type { Argument } from "./argument.ts";
import type { Backend, Outcome } from "./backend.ts";
import type { Answer } from "./http/inject-faults.ts";

/** A step of one request to an endpoint. `at`: ms since 1970. */
export type Observation =
  | {
      readonly phase: "arrived";
      readonly request: number;
      readonly at: number;
      /** Names the connection that it came by. */
      readonly connection: string;
      /** The header `User-Agent`. */
      readonly agent: string;
      readonly path: string;
      readonly body: Buffer;
    }
  | {
      readonly phase: "executed";
      readonly request: number;
      readonly at: number;
      readonly command: readonly Argument[];
      readonly outcome: Outcome;
    }
  | {
      readonly phase: "ended";
      readonly request: number;
      readonly at: number;
      /** The HTTP status; undefined: there was no answer. */
      readonly status: number | undefined;
    };

/** Lets somebody look on at the requests of one endpoint. Costs nothing while nobody does. */
export class RequestObservation {
  #observer: ((step: Observation) => void) | undefined;
  /** The request that the running code belongs to. */
  readonly #current = new AsyncLocalStorage<number>();
  #count = 0;

  /** Calls `observer` at each step from now on; undefined: nobody looks on any more. */
  observe(observer: ((step: Observation) => void) | undefined): void {
    this.#observer = observer;
    // As long as it is on, every promise of the process is slower.
    if (!observer) this.#current.disable();
  }

  /** A backend that shows the commands of observed requests. */
  backend(inner: Backend): Backend {
    const show = (command: readonly Argument[], outcome: Outcome) => {
      const request = this.#current.getStore();
      if (request !== undefined) {
        this.#observer?.({ phase: "executed", request, at: Date.now(), command, outcome });
      }
    };
    return {
      async execute(command) {
        const outcome = await inner.execute(command);
        show(command, outcome);
        return outcome;
      },
      async transaction(commands) {
        const outcomes = await inner.transaction(commands);
        if (Array.isArray(outcomes)) {
          for (const [index, outcome] of outcomes.entries()) show(commands[index]!, outcome);
        }
        return outcomes;
      },
      subscribe: (command, subscriber) => inner.subscribe(command, subscriber),
      close: () => inner.close(),
    };
  }

  /** Answers a request, and shows its steps. */
  async answer(
    request: Request,
    connection: string,
    answer: (request: Request) => Promise<Answer>,
  ): Promise<Answer> {
    if (!this.#observer) return answer(request);
    const body = Buffer.from(await request.clone().arrayBuffer());
    // Nobody may look on any more.
    if (!this.#observer) return answer(request);
    this.#count += 1;
    const id = this.#count;
    const { pathname: path } = new URL(request.url);
    const agent = request.headers.get("user-agent") ?? "";
    this.#observer({ phase: "arrived", request: id, at: Date.now(), connection, agent, path, body });
    const answered = await this.#current.run(id, () => answer(request));
    const status = answered instanceof Response ? answered.status : undefined;
    this.#observer?.({ phase: "ended", request: id, at: Date.now(), status });
    return answered;
  }
}
