import { bestDialect, type Examination, type Failure, works } from "./doctor-probe.ts";
import { duration, table } from "./text.ts";

// What the answers to doctor's questions mean, and what to do. No I/O.

/** Something that doctor has to say. */
export interface Advice {
  /** `error`: this endpoint, or the program, does not work. `warning`: it works, but not well. `note`: to know. */
  readonly level: "error" | "warning" | "note";
  readonly code:
    | "CONFIG"
    | "UNREACHABLE"
    | "NOT_REST"
    | "TOKEN"
    | "READ_ONLY"
    | "LIMIT"
    | "SERVER"
    | "SAME_DATABASE"
    | "DIALECT"
    | "SCRIPTS"
    | "NOT_ENCRYPTED"
    | "SLOW"
    | "CLOCK"
    | "COUNT";
  readonly message: string;
  readonly fix: string;
}

/** The diagnosis of one endpoint. */
export interface Diagnosis extends Pick<Examination, "endpoint" | "number" | "variable" | "dialect"> {
  /** Whether locks can use it. */
  readonly ok: boolean;
  readonly roundTrip?: number | undefined;
  readonly clock?: Examination["clock"];
  readonly advice: readonly Advice[];
}

/** The diagnosis of all. */
export interface Report {
  /** Whether every endpoint is well. */
  readonly ok: boolean;
  readonly quorum: number;
  readonly endpoints: readonly Diagnosis[];
  /** What concerns them together. */
  readonly advice: readonly Advice[];
}

/** A clock that is further away, in ms, is worth a warning. */
export const maxClockDistance = 1_000;
/** So is a longer round trip: requests have a timeout of 1 s by default, of a third of the ttl for short locks. */
const maxRoundTrip = 300;

/** What the examinations mean. */
export function diagnose(examinations: readonly Examination[]): Report {
  const clocks = examinations.flatMap(({ clock }) => (clock ? [clock.ahead] : [])).sort((a, b) => a - b);
  const ownDistance = clocks[Math.floor((clocks.length - 1) / 2)] ?? 0;
  const endpoints = examinations.map((examination): Diagnosis => {
    const { endpoint, number, variable, dialect, roundTrip, clock } = examination;
    const advice = [
      ...failures(examination),
      ...encryption(examination),
      ...speed(examination),
      ...clockAdvice(examination, ownDistance),
    ];
    const ok = advice.every(({ level }) => level !== "error");
    return { endpoint, number, variable, dialect, ok, roundTrip, clock, advice };
  });
  const quorum = Math.floor(endpoints.length / 2) + 1;
  return { ok: endpoints.every(({ ok }) => ok), quorum, endpoints, advice: countAdvice(endpoints.length) };
}

/** What keeps an endpoint from being used: the first failure, because the others follow from it. */
function failures(examination: Examination): Advice[] {
  const { unreachable, write, native, flag, scripts, variable } = examination;
  if (unreachable) return [failureAdvice(unreachable, examination)];
  if (typeof write === "number") {
    return [
      {
        level: "error",
        code: "SAME_DATABASE",
        message: `it is the same database as ${write ? `endpoint ${write}` : "another endpoint"}`,
        fix: `a database counts once. Set ${variable ?? "its URL"} to another one, or remove it`,
      },
    ];
  }
  if (write && write !== "yes") return [failureAdvice(write, examination)];
  for (const tried of [native, flag, scripts]) {
    // Only a refusal says anything about the commands.
    if (typeof tried === "object" && !isRefusal(tried)) return [failureAdvice(tried, examination)];
  }
  // A token that may run no script is refused the flag as well: this says nothing about the dialect.
  if (scripts && scripts !== "yes") return [scriptAdvice(scripts)];
  return scripts ? dialectAdvice(examination) : [];
}

/** Whether the server has understood the request, and says no. */
export function isRefusal({ kind, status = 0 }: Failure): boolean {
  return kind === "redis" || (kind === "http" && status < 429);
}

/** What follows from the commands that the server has is always the same dialect, whatever it is examined with. */
function dialectAdvice(examination: Examination): Advice[] {
  const { dialect, native, flag, isLoopback } = examination;
  const best = bestDialect(examination);
  if (dialect === best) return [];
  const setting = `\`dialect: "${best}"\` for this endpoint in your program`;
  if (!works(examination)) {
    const refused = native === "yes" ? "Upstash's flag of scripts" : "SET … IFEQ or DELEX";
    const reason = [native, flag].find((each): each is Failure => typeof each === "object");
    return [
      {
        level: "error",
        code: "DIALECT",
        message: `its dialect is ${dialect}, but it refuses ${refused}: ${reason?.message}`,
        fix: `set ${setting}; to check that here: --dialect ${best}`,
      },
    ];
  }
  // Local endpoints emulate these commands, so there it says nothing.
  if (isLoopback) return [];
  const gain =
    dialect === "redis" ? "saves scripts" : "lets scripts run without a lock on the whole database";
  return [
    {
      level: "note",
      code: "DIALECT",
      message: `its dialect is ${dialect}, and it has what ${best} needs, too`,
      fix: `it works as it is; ${setting} ${gain}`,
    },
  ];
}

function scriptAdvice(failure: Failure): Advice {
  return {
    level: "error",
    code: "SCRIPTS",
    message: `no lock with a fence can be acquired: ${failure.message}`,
    fix: "the token must allow EVAL and EVALSHA, and all commands in scripts; several resources, fencing, inspect and free need scripts",
  };
}

/** What a failed request means. */
export function failureAdvice(failure: Failure, examination: Examination): Advice {
  const { kind, status, message } = failure;
  const error = (code: Advice["code"], text: string, fix: string): Advice => {
    return { level: "error", code, message: text, fix };
  };
  const url = examination.variable ?? "its URL";
  const token = examination.variable?.replace("URL", "TOKEN") ?? "its token";
  if (kind === "config") {
    const option = /basePath/.test(message)
      ? "; the base path of a gateway is --base-path here"
      : /allowInsecure/.test(message)
        ? "; to check it nevertheless: --allow-insecure"
        : "";
    return error("CONFIG", message, `set ${url} and ${token} as the database's page has them${option}`);
  }
  if (kind === "network" || kind === "timeout")
    return error("UNREACHABLE", message, connectionFix(failure, examination));
  const isForeign = /no answer of Upstash/.test(message);
  if (
    !isForeign &&
    (status === 401 || status === 403 || /WRONGPASS|unauthorized|invalid token/i.test(message))
  ) {
    return error(
      "TOKEN",
      `it refuses the token: ${message}`,
      `set ${token} to the REST token of this database; each database has its own, and a new one after a reset`,
    );
  }
  if (/NOPERM/.test(message)) {
    return error(
      "READ_ONLY",
      `the token may not write: ${message}`,
      `set ${token} to the REST token of this database, not to its read-only token`,
    );
  }
  if (status === 429 || /limit/i.test(message)) {
    return error("LIMIT", message, "the plan's limit is reached: wait until it is reset, or change the plan");
  }
  if (kind === "malformed" || (kind === "http" && (status ?? 0) < 500)) {
    return error(
      "NOT_REST",
      message,
      `set ${url} to the REST URL of the database, https://….upstash.io, not to a dashboard's or a proxy's address`,
    );
  }
  return error("SERVER", message, "the server has a problem; see its status page or its log, and try again");
}

function connectionFix({ kind, message }: Failure, { isLoopback, variable }: Examination): string {
  const url = variable ?? "its URL";
  if (kind === "timeout")
    return "is a firewall in between, or the database stopped? To wait longer: --timeout 15000";
  if (isLoopback && /ECONNREFUSED/.test(message)) {
    return `start npx redis-rest-local, and use the variables that it prints; ${url} may be of an earlier run`;
  }
  if (/WRONG_VERSION/.test(message)) return `is ${url} to begin with http://, or its port another one?`;
  if (/CERT|SSL|TLS|SIGNATURE/.test(message)) {
    return `TLS failed: is ${url} right, does a proxy replace certificates?`;
  }
  return `check the network, and the host and port of ${url}`;
}

function encryption({ isEncrypted, isLoopback, unreachable, variable }: Examination): Advice[] {
  if (isEncrypted || isLoopback || unreachable?.kind === "config") return [];
  return [
    {
      level: "warning",
      code: "NOT_ENCRYPTED",
      message: "the token is sent over http://, so that everybody on the way can read it",
      fix: `use https:// in ${variable ?? "its URL"}`,
    },
  ];
}

function speed({ roundTrip }: Examination): Advice[] {
  if (roundTrip === undefined || roundTrip <= maxRoundTrip) return [];
  return [
    {
      level: "warning",
      code: "SLOW",
      message: `a request takes ${duration(roundTrip)}; the default timeout is 1 s, or a third of the ttl if that is less`,
      fix: `run your program near the database, or set timeout above ${Math.ceil((3 * roundTrip) / 100) * 100} ms`,
    },
  ];
}

/** `own`: how far the clocks of most endpoints are ahead of this machine's. */
function clockAdvice({ clock }: Examination, own: number): Advice[] {
  if (!clock || Math.abs(clock.ahead) - clock.within <= maxClockDistance) return [];
  const direction = clock.ahead > 0 ? "ahead of" : "behind";
  const isOwn = Math.abs(own) > maxClockDistance && Math.abs(clock.ahead - own) < maxClockDistance;
  return [
    {
      level: "warning",
      code: "CLOCK",
      message: `its clock is ${duration(Math.abs(clock.ahead))} ${direction} this machine's; locks do not need it, ages, deadlines and signed times of webhooks do`,
      fix: isOwn
        ? "most endpoints agree: set this machine's clock by NTP"
        : "the others agree with this machine: set the clock of that server by NTP",
    },
  ];
}

function countAdvice(count: number): Advice[] {
  if (count === 1) {
    return [
      {
        level: "note",
        code: "COUNT",
        message: "one endpoint: while it is down, no lock can be acquired",
        fix: "three independent databases go on when one is down",
      },
    ];
  }
  if (count % 2 !== 0) return [];
  return [
    {
      level: "warning",
      code: "COUNT",
      message: `${count} endpoints survive no more failures than ${count - 1}`,
      fix: `use ${count - 1} or ${count + 1}`,
    },
  ];
}

/** The report as lines. */
export function reportLines({ endpoints, advice, quorum }: Report): string[] {
  const summaries = table(
    endpoints.map(({ number, endpoint, ok, dialect, roundTrip, clock }) => [
      String(number),
      endpoint,
      ok ? "ok" : "ERROR",
      dialect ? `dialect ${dialect}` : "",
      roundTrip === undefined ? "" : `round trip ${roundTrip} ms`,
      clock === undefined ? "" : `clock ${clockText(clock)}`,
    ]),
  );
  const details = endpoints.map((each, index) => [summaries[index]!, ...each.advice.flatMap(adviceLines)]);
  const well = endpoints.filter(({ ok }) => ok).length;
  const conclusion =
    well >= quorum
      ? `so locks can be acquired${well < endpoints.length ? ", with less to spare" : ""}`
      : "so no lock can be acquired";
  return [
    ...details.flat(),
    "",
    `${well} of ${endpoints.length} ok, a quorum is ${quorum}: ${conclusion}`,
    ...advice.flatMap(adviceLines),
  ];
}

function adviceLines({ level, message, fix }: Advice): string[] {
  return [`   ${level}: ${message}`, `     fix: ${fix}`];
}

/** How far a clock is away, for people. */
export function clockText({ ahead, within }: NonNullable<Examination["clock"]>): string {
  if (Math.abs(ahead) <= within) return `equal (± ${duration(within)})`;
  return `${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead" : "behind"} (± ${duration(within)})`;
}
