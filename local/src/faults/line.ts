import type { Runtime } from "../runtime.ts";
import type { Faults } from "./faults.ts";

/** What a client gets: an answer, an HTTP error, a broken connection, or nothing at all. */
export type Carried<Answer> =
  | { readonly answer: Answer }
  | { readonly status: number; readonly html: boolean }
  | "refused"
  | "reset"
  | "silence";

/** What a request does when it arrives. */
export interface Request<Answer> {
  execute(): Answer | Promise<Answer>;
  /** Ends what an answer keeps open, when nobody gets the answer. */
  discard(answer: Answer): void;
}

/** ms for which a reordered request waits at most for the next one to overtake it. */
const reorderLimit = 1000;

/** Carries requests to one endpoint, and answers back, with the faults that are planned for them. */
export class Line {
  readonly #faults: Pick<Faults, "plan">;
  readonly #timer: Runtime["timer"];
  /** End the waits of requests under way. */
  readonly #waits = new Set<() => void>();
  /** Those of requests that the next one overtakes. */
  #overtaken: (() => void)[] = [];
  #cuts = 0;

  constructor(faults: Pick<Faults, "plan">, timer: Runtime["timer"]) {
    this.#faults = faults;
    this.#timer = timer;
  }

  /** Breaks all connections, as the crash of a server does: a request that was not executed by then never is. */
  cut(): void {
    this.#cuts += 1;
    for (const end of this.#waits) end();
  }

  /**
   * Carries a request. Without a fault it is executed before this returns.
   *
   * @param command its name, in any case
   */
  async carry<Answer>(command: string, request: Request<Answer>): Promise<Carried<Answer>> {
    const cuts = this.#cuts;
    const isCut = () => cuts !== this.#cuts;
    const plan = this.#faults.plan(command);
    const [before, after] = [plan.delay?.ms ?? 0, plan["delay-reply"]?.ms ?? 0];
    const lost = plan["drop-request"]?.reset || plan["drop-reply"]?.reset ? "reset" : "silence";
    if (plan.down) return "refused";
    if (plan["drop-request"]) return lost;
    if (before > 0) await this.#wait(before);
    if (plan.reorder && !isCut()) await this.#wait(reorderLimit, this.#overtaken);
    if (isCut()) return "refused";
    if (plan.status) return { status: plan.status.status ?? 500, html: plan.status.html ?? false };
    const answer = await this.#execute(request, plan.duplicate !== undefined);
    if (after > 0 && !plan["drop-reply"] && !isCut()) await this.#wait(after);
    if (!plan["drop-reply"] && !isCut()) return { answer };
    request.discard(answer);
    return isCut() ? "reset" : lost;
  }

  async #execute<Answer>(request: Request<Answer>, isTwice: boolean): Promise<Answer> {
    const overtaken = this.#overtaken;
    this.#overtaken = [];
    try {
      const first = request.execute();
      if (!isTwice) return await first;
      request.discard(await first);
      return await request.execute();
    } finally {
      for (const end of overtaken) end();
    }
  }

  /** Resolves after some ms, or when it is ended. */
  #wait(ms: number, ends?: (() => void)[]): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        this.#waits.delete(end);
        resolve();
      };
      const cancel = this.#timer(ms, end);
      this.#waits.add(end);
      ends?.push(end);
    });
  }
}
