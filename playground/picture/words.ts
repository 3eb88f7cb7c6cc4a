import type { Bar, Call, Fault, Flight, Lane, RequestHistory, Shapes, Verdict } from "./shapes.ts";
import type { Outcome } from "./timeline.ts";

// What the picture says in words: labels, and the text about what the pointer is on.

/** A text about one thing: a headline, and what else is known. */
export interface Note {
  readonly title: string;
  readonly lines: readonly string[];
}

const words: Record<Outcome, string> = {
  granted: "granted",
  held: "refused",
  gone: "gone",
  error: "unavailable",
};

/** The word for an outcome: `granted`, `refused`, `gone`, `unavailable`; of what nobody can refuse `done`. */
export function wordOf(outcome: Outcome | undefined, operation?: string): string {
  if (outcome === undefined) return "no result yet";
  if (outcome === "granted" && operation !== undefined && !/^(acquire|extend|begin|claim)/.test(operation)) {
    return "done";
  }
  return words[outcome];
}

/** The result of a call in a word. */
export const resultOf = ({ word, outcome, operation }: Call): string => word ?? wordOf(outcome, operation);

/** `2/3`: how many voted for it, of how many. */
export function tallyOf(call: Call): string {
  const votes = Object.values(call.votes ?? {});
  if (votes.length === 0) return "";
  return `${votes.filter((vote) => vote === "granted").length}/${votes.length}`;
}

/** A time, relative to `origin`: `812.5 ms`, or `12.35 s`. */
export function timeText(time: number, origin: number): string {
  const ms = time - origin;
  return Math.abs(ms) < 10_000 ? `${rounded(ms, 1)} ms` : `${rounded(ms / 1_000, 2)} s`;
}

/** A number with at most so many decimals. */
export const rounded = (value: number, decimals: number): string => `${Number(value.toFixed(decimals))}`;

const lines = (...parts: readonly (string | undefined | false)[]): string[] =>
  parts.filter((part): part is string => typeof part === "string" && part !== "");

/** Words for one picture: names of lanes, and times from its beginning. */
export class Narrator {
  readonly #lanes: readonly Lane[];
  readonly #origin: number;

  constructor({ lanes, from }: Pick<Shapes, "lanes" | "from">) {
    this.#lanes = lanes;
    this.#origin = from;
  }

  time(time: number): string {
    return timeText(time, this.#origin);
  }

  lane(lane: number): string {
    return this.#lanes[lane]?.name ?? "unknown";
  }

  bar(bar: Bar): Note {
    const holder = bar.holder === -1 ? "unknown" : this.lane(bar.holder);
    const ends = {
      removed: bar.kind === "validity" ? "ended" : "removed",
      expired: "expired",
      replaced: "replaced",
      open: "still so at the end",
    };
    const title =
      bar.kind === "validity" ? `${holder} may rely on ${bar.key}` : `${bar.key} on ${this.lane(bar.lane)}`;
    return {
      title,
      lines: lines(
        bar.kind === "stored" && `holder: ${holder}`,
        bar.fence !== undefined && `fence: ${bar.fence}`,
        `${this.time(bar.from)} to ${this.time(bar.to)}: ${ends[bar.end]}`,
        bar.end !== "expired" && bar.until !== undefined && `expiry: ${this.time(bar.until)}`,
        bar.unsafe.length > 0 && `taken off for drift from ${this.time(bar.unsafe.at(-1)!.from)}`,
        bar.refreshed.length > 0 &&
          `extended or restored at ${bar.refreshed.map((t) => this.time(t)).join(", ")}`,
      ),
    };
  }

  call(call: Call): Note {
    const votes = Object.entries(call.votes ?? {}).map(([name, vote]) => `${name}: ${words[vote] ?? vote}`);
    return {
      title: `${this.lane(call.lane)}: ${call.operation} ${resultOf(call)}`,
      lines: lines(
        call.key !== undefined && `resource: ${call.key}`,
        `${this.time(call.from)} to ${this.time(call.to)}`,
        call.fence !== undefined && `fence: ${call.fence}`,
        call.validity !== undefined && `validity: ${rounded(call.validity, 1)} ms`,
        votes.length > 0 && `votes: ${votes.join(", ")}`,
        call.detail,
      ),
    };
  }

  request(history: RequestHistory): Note {
    const { client, endpoint, operation, key, sent, executed, answered, lost, detail } = history;
    return {
      title: `${operation ?? "request"}: ${client ?? "a client"} → ${endpoint ?? "an endpoint"}`,
      lines: lines(
        key !== undefined && `resource: ${key}`,
        sent !== undefined && `sent at ${this.time(sent)}`,
        executed &&
          `executed at ${this.time(executed.time)}${executed.outcome ? `: ${words[executed.outcome]}` : ""}`,
        lost && `${lost.what} lost at ${this.time(lost.time)}`,
        answered &&
          `reply at ${this.time(answered.time)}${answered.outcome ? `: ${words[answered.outcome]}` : ""}`,
        !answered && !lost && "no reply yet",
        detail,
      ),
    };
  }

  flight(flight: Flight): Note {
    const note = this.request(flight.history);
    return flight.late ? { ...note, title: `late ${flight.kind}: ${note.title}` } : note;
  }

  fault(fault: Fault): Note {
    const where =
      fault.other === undefined
        ? this.lane(fault.lane)
        : `between ${this.lane(fault.other)} and ${this.lane(fault.lane)}`;
    return {
      title: `${fault.name}: ${where}`,
      lines: lines(`${this.time(fault.from)} to ${this.time(fault.to)}`, fault.detail),
    };
  }

  verdict({ isBroken, name, time, lane, detail }: Verdict): Note {
    return {
      title: `${isBroken ? "violated" : "upheld"}: ${name}`,
      lines: lines(`at ${this.time(time)}${lane === -1 ? "" : `, ${this.lane(lane)}`}`, detail),
    };
  }
}
