import type { LocalEndpoint } from "../../local/src/index.ts";
import { envelope } from "../../local/src/rest/http/response.ts";
import type { Observation } from "../../local/src/rest/observe.ts";
import { partition } from "../linearizability/checker.ts";
import { type Request, readRequest } from "../sim/request.ts";
import { isGranted } from "../sim/wire.ts";
import type { Fault } from "./nemesis.ts";
import { machineTime } from "./records.ts";

/** A request about a lock that reached an endpoint. Times are machine time. */
interface Arrival {
  readonly endpoint: string;
  readonly command: readonly string[];
  /** The same, parsed. */
  readonly request: Request;
  readonly from: number;
}

/** One execution of such a request: at some time between `from` and `to`. */
export interface Execution extends Arrival {
  /** Infinity: nobody knows when it was executed, or whether. */
  readonly to: number;
  /** The server's answer; undefined: none came. A fault may have kept it from the client. */
  readonly reply: unknown;
  readonly granted: boolean;
}

/**
 * Notes each request about a lock, and what the server behind the endpoint answered: what clients are told is not enough
 * to find out why two of them hold the same lock.
 */
export class ExecutionLog {
  readonly #executions: Execution[] = [];
  /** Requests that have not been executed yet. */
  readonly #open = new Set<Arrival>();

  constructor(endpoints: readonly LocalEndpoint[]) {
    for (const endpoint of endpoints) this.#watch(endpoint);
  }

  /** All so far, in the order in which they arrived. */
  all(): Execution[] {
    const unknown = { to: Number.POSITIVE_INFINITY, reply: undefined, granted: false };
    const open = [...this.#open].map((arrival): Execution => ({ ...arrival, ...unknown }));
    return [...this.#executions, ...open].sort((one, two) => one.from - two.from);
  }

  #watch(endpoint: LocalEndpoint): void {
    /** By HTTP request: its commands in their order, undefined where one is not about a lock. */
    const arrived = new Map<number, (Arrival | undefined)[]>();
    endpoint.observe((step: Observation) => {
      if (step.phase === "arrived") {
        const from = machineTime();
        const arrivals = commandsOf(step.body.toString()).map((command) =>
          isAboutLock(command)
            ? { endpoint: endpoint.name, command, request: readRequest(command), from }
            : undefined,
        );
        arrived.set(step.request, arrivals);
        for (const arrival of arrivals) if (arrival) this.#open.add(arrival);
      } else if (step.phase === "executed") {
        const arrivals = arrived.get(step.request);
        const execution = arrivals?.shift();
        // A fault may let all of them be executed again.
        arrivals?.push(execution);
        if (!execution) return;
        this.#open.delete(execution);
        const answer = envelope(step.outcome.reply, "json");
        const reply = "error" in answer ? `error: ${answer.error}` : answer.result;
        const granted = isGranted(execution.request, execution.command, reply);
        this.#executions.push({ ...execution, to: machineTime(), reply, granted });
      } else arrived.delete(step.request);
    });
  }
}

/** The commands in the body of a request: one, or those of a pipeline. */
function commandsOf(body: string): string[][] {
  const words = JSON.parse(body) as unknown[];
  const commands = Array.isArray(words[0]) ? (words as unknown[][]) : [words];
  return commands.map((command) => command.map(String));
}

function isAboutLock([name, ...words]: readonly string[]): boolean {
  const key = name === "EVALSHA" || name === "EVAL" ? words[2] : words[0];
  return key?.startsWith("redlock:lock:") === true;
}

/** Two executions that contradict each other: both were granted a key at one endpoint. */
export type DoubleGrant = readonly [Execution, Execution];

/** When an endpoint lost its memory. */
type MemoryLoss = Pick<Fault, "target" | "from" | "to">;

/** ms by which a server's clock and ours may differ over a ttl, and what rounding takes from it. */
const tolerance = 5;

/**
 * Finds endpoints that gave a lock away although they had it for somebody else: one vote for two. Two holders of a lock
 * need such an endpoint, but most of these have no consequence, because another endpoint refuses the second holder.
 */
export function doubleGrants(executions: readonly Execution[], losses: readonly MemoryLoss[]): DoubleGrant[] {
  const groups = partition(executions, ({ endpoint, request }) => `${endpoint} ${request.keys}`);
  return [...groups.values()].flatMap((group) => {
    const grants = group.filter(({ granted, request: { ttl, operation } }) => {
      return granted && ttl && operation !== "release";
    });
    return grants.flatMap((first, index) =>
      contradicting(first, grants.slice(index + 1))
        .filter((second) => !isFreed(group, first, second) && !isLost(losses, first, second))
        .map((second): DoubleGrant => [first, second]),
    );
  });
}

/** Those that were granted to others while the first one's value stood by its ttl. */
function contradicting(first: Execution, later: readonly Execution[]): Execution[] {
  const expires = first.from + first.request.ttl! - tolerance;
  const end = later.findIndex(({ from }) => from >= expires);
  return later
    .slice(0, end < 0 ? later.length : end)
    .filter(({ from, to, request: { value, operation } }) => {
      return value !== first.request.value && operation !== "extend" && from > first.to && to < expires;
    });
}

/** Whether the first one's value may have been released before the second. */
function isFreed(group: readonly Execution[], first: Execution, second: Execution): boolean {
  return group.some(({ request: { operation, value }, from, to }) => {
    return operation === "release" && value === first.request.value && from < second.to && to > first.from;
  });
}

function isLost(losses: readonly MemoryLoss[], first: Execution, second: Execution): boolean {
  return losses.some(({ target, from, to }) => {
    return target === first.endpoint && from < second.to && to > first.from;
  });
}
