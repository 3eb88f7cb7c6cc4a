import { quorumOf } from "../../quorum/tally.ts";
import { type Failure, isRefusal } from "../failure.ts";
import { blocks, duration, layout } from "../text.ts";
import { type Row, rowLines, rowsOf } from "./conformance.ts";
import { bestDialect, clockText, isNear, isUsable } from "./quick.ts";
import { type Level, requirements } from "./requirements.ts";
import type { Examined, Seen } from "./session.ts";

// What the answers to doctor's questions mean, and what to do. No I/O.

/** Something that doctor has to say. */
export interface Advice {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

/** The diagnosis of one endpoint. */
export interface Diagnosis
  extends Pick<Examined, "endpoint" | "number" | "variable" | "dialect">,
    Pick<Seen, "roundTrip" | "clock"> {
  /** Whether locks can use it. */
  readonly ok: boolean;
  readonly advice: readonly Advice[];
  /** What was found of all that the library needs, where it was asked. */
  readonly rows?: readonly Row[];
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

/** Something that may be wrong with an endpoint. */
interface Check {
  readonly level: Level;
  readonly code: string;
  /** What is wrong; undefined: nothing. */
  readonly finds: (place: Examined) => string | undefined;
  /** `{url}` and `{token}` stand for the endpoint's variables, `{dialect}` for the best one. */
  readonly fix: string;
}

const isLoopback = ({ url }: Examined): boolean =>
  URL.canParse(url) && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname);

/** A longer round trip is worth a warning: requests have a timeout of 1 s by default, of a third of the ttl for short locks. */
const maxRoundTrip = 300;

const asPage = "set {url} and {token} as the database's page has them";
const restUrl =
  "set {url} to the REST URL of the database, https://….upstash.io, not to a dashboard's or a proxy's address";

/** A request that has failed. `says`: what stands before the error's message. */
const failed = (
  code: string,
  fits: (failure: Failure, place: Examined) => boolean,
  fix: string,
  says = "",
): Check => ({
  level: "error",
  code,
  fix,
  finds(place) {
    const failure = failureAt(place);
    return failure && fits(failure, place) ? says + failure.message : undefined;
  },
});

const misconfigured = (pattern: RegExp, fix: string) =>
  failed("CONFIG", ({ kind, message }) => kind === "config" && pattern.test(message), fix);
const unconnected = (pattern: RegExp, fix: string) =>
  failed("UNREACHABLE", ({ kind, message }) => kind === "network" && pattern.test(message), fix);

/** What keeps an endpoint from being used. The first that is found counts: the others follow from it. */
const errors: readonly Check[] = [
  misconfigured(/basePath/, `${asPage}; the base path of a gateway is --base-path here`),
  misconfigured(/allowInsecure/, `${asPage}; to check it nevertheless: --allow-insecure`),
  misconfigured(/(?:)/, asPage),
  failed(
    "UNREACHABLE",
    ({ kind }) => kind === "timeout",
    "is a firewall in between, or the database stopped? To wait longer: --timeout 15000",
  ),
  failed(
    "UNREACHABLE",
    ({ kind, message }, place) => kind === "network" && isLoopback(place) && /ECONNREFUSED/.test(message),
    "start npx redis-rest-local, and use the variables that it prints; {url} may be of an earlier run",
  ),
  unconnected(/WRONG_VERSION/, "is {url} to begin with http://, or its port another one?"),
  unconnected(/CERT|SSL|TLS|SIGNATURE/, "TLS failed: is {url} right, does a proxy replace certificates?"),
  unconnected(/(?:)/, "check the network, and the host and port of {url}"),
  failed("NOT_REST", ({ message }) => /no answer of Upstash/.test(message), restUrl),
  failed(
    "TOKEN",
    ({ status, message }) =>
      status === 401 || status === 403 || /WRONGPASS|unauthorized|invalid token/i.test(message),
    "set {token} to the REST token of this database; each database has its own, and a new one after a reset",
    "it refuses the token: ",
  ),
  failed(
    "READ_ONLY",
    ({ message }) => /NOPERM/.test(message),
    "set {token} to the REST token of this database, not to its read-only token",
    "the token may not write: ",
  ),
  failed(
    "LIMIT",
    ({ status, message }) => status === 429 || /limit/i.test(message),
    "the plan's limit is reached: wait until it is reset, or change the plan",
  ),
  failed(
    "NOT_REST",
    ({ kind, status = 0 }) => kind === "malformed" || (kind === "http" && status < 500),
    restUrl,
  ),
  failed("SERVER", () => true, "the server has a problem; see its status page or its log, and try again"),
  { level: "error", code: "NOT_REST", finds: ({ seen }) => seen.rest?.found, fix: restUrl },
  {
    level: "error",
    code: "SAME_DATABASE",
    finds: ({ seen }) => seen.database?.found,
    fix: "a database counts once. Set {url} to another one, or remove it",
  },
  {
    level: "error",
    code: "SCRIPTS",
    // A token that may run no script is refused the flag as well: this says nothing about the dialect.
    finds({ seen: { eval: byText, evalsha } }) {
      const messages = [byText, evalsha].map((seen) => seen?.failure?.message ?? seen?.found);
      // The library sends the text then.
      const refusal = messages.find((message) => message && !/NOSCRIPT/.test(message));
      return refusal && `no lock with a fence can be acquired: ${refusal}`;
    },
    fix: "the token must allow EVAL and EVALSHA, and all commands in scripts; several resources, fencing, inspect and free need scripts",
  },
  {
    level: "error",
    code: "DIALECT",
    finds({ dialect, seen }) {
      if (!seen.eval || isUsable(dialect, seen)) return undefined;
      const names = ["ifeq", "delex", "lua-flag"];
      const need = names.find((name) => !seen[name]?.works)!;
      const { failure, found } = seen[need] ?? {};
      return `its dialect is ${dialect}, but ${requirements[need]!.label} does not work: ${failure?.message ?? found}`;
    },
    fix: 'set `dialect: "{dialect}"` for this endpoint in your program; to check that here: --dialect {dialect}',
  },
];

/** What else there is to say. */
const remarks: readonly Check[] = [
  {
    level: "note",
    code: "DIALECT",
    finds(place) {
      const { dialect, seen } = place;
      const best = bestDialect(seen);
      // Local endpoints emulate these commands, so there it says nothing.
      if (isLoopback(place) || !seen.eval?.works || best === dialect || !isUsable(dialect, seen))
        return undefined;
      const gain = dialect === "redis" ? "fewer scripts" : "scripts that do not lock the whole database";
      return `its dialect is ${dialect}; it has what ${best} needs, too, with ${gain}`;
    },
    fix: 'it works as it is; better set `dialect: "{dialect}"` for this endpoint in your program',
  },
  {
    level: "warning",
    code: "NOT_ENCRYPTED",
    finds: (place) =>
      /^https:/.test(place.url) || isLoopback(place) || place.seen.rest?.failure?.kind === "config"
        ? undefined
        : "the token is sent over http://, so that everybody on the way can read it",
    fix: "use https:// in {url}",
  },
  {
    level: "warning",
    code: "SLOW",
    finds: ({ seen: { clock: { roundTrip = 0 } = {} } }) =>
      roundTrip > maxRoundTrip
        ? `a request takes ${duration(roundTrip)}; the default timeout is 1 s, or a third of the ttl if that is less`
        : undefined,
    fix: "run your program near the database, or set timeout to three times as long",
  },
  {
    level: "warning",
    code: "CLOCK",
    finds({ seen: { clock: { clock } = {} } }) {
      if (!clock || isNear(clock)) return undefined;
      const distance = `${duration(Math.abs(clock.ahead))} ${clock.ahead > 0 ? "ahead of" : "behind"}`;
      return `its clock is ${distance} this machine's; locks do not need it, ages, deadlines and signed times of webhooks do`;
    },
    fix: "set the clock of that server by NTP; if all endpoints say this, the clock of this machine",
  },
];

/** The failure that counts, because the others follow from it. */
function failureAt({ seen }: Examined): Failure | undefined {
  const before = ["rest", "token", "database"];
  return (
    Object.entries(seen)
      .map(([need, { failure }]) => ({ need, failure }))
      // Of what only some servers have, a refusal says that this one has not got it.
      .find(({ need, failure }) => failure && (before.includes(need) || !isRefusal(failure)))?.failure
  );
}

/** What is said of how many endpoints there are. */
function countAdvice(count: number): Advice[] {
  const code = "COUNT";
  if (count === 1) {
    const message = "one endpoint: while it is down, no lock can be acquired";
    return [{ level: "note", code, message, fix: "three independent databases go on when one is down" }];
  }
  if (count % 2 !== 0) return [];
  const message = `${count} endpoints survive no more failures than ${count - 1}`;
  return [{ level: "warning", code, message, fix: `use ${count - 1} or ${count + 1}` }];
}

/** What was found means this. */
export function diagnose(places: readonly Examined[], conformance = false): Report {
  const endpoints = places.map((place): Diagnosis => {
    const { endpoint, number, variable, dialect, seen } = place;
    const advised = (checks: readonly Check[]) => checks.flatMap((check) => adviceOf(check, place));
    const [error] = advised(errors);
    const advice = [...(error ? [error] : []), ...advised(remarks)];
    const { roundTrip, clock } = seen.clock ?? {};
    const facts = { endpoint, number, variable, dialect, ok: !error, roundTrip, clock, advice };
    // Where nothing could be asked, only the reason is of interest.
    if (!conformance || !seen.token?.works) return facts;
    const rows = rowsOf(seen, dialect);
    return { ...facts, ok: !error && rows.every(({ level }) => level !== "error"), rows };
  });
  const quorum = quorumOf(endpoints.length);
  return { ok: endpoints.every(({ ok }) => ok), quorum, endpoints, advice: countAdvice(endpoints.length) };
}

function adviceOf({ level, code, finds, fix }: Check, place: Examined): Advice[] {
  const message = finds(place);
  if (message === undefined) return [];
  const { variable, seen } = place;
  const words: Readonly<Record<string, string>> = {
    url: variable ?? "its URL",
    token: variable?.replace("URL", "TOKEN") ?? "its token",
    dialect: bestDialect(seen),
  };
  return [{ level, code, message, fix: fix.replaceAll(/\{(\w+)\}/g, (_, word: string) => words[word]!) }];
}

/** The report as lines. */
export function diagnosisLines({ endpoints, advice, quorum }: Report, width: number): string[] {
  const titles = blocks(
    endpoints.map(({ number, endpoint, ok, dialect, roundTrip, clock }) => {
      const facts = [
        dialect && `dialect ${dialect}`,
        roundTrip !== undefined && `round trip ${roundTrip} ms`,
        clock && `clock ${clockText(clock)}`,
      ];
      return [`${number}`, endpoint, ok ? "ok" : "ERROR", facts.filter(Boolean).join(", ")];
    }),
    width,
  );
  const adviceLines = ({ level, message, fix }: Advice) =>
    [
      [`   ${level}:`, message],
      ["     fix:", fix],
    ].flatMap((row) => layout([row], width));
  const well = endpoints.filter(({ ok }) => ok).length;
  const outcome = well >= quorum ? "locks can be acquired" : "no lock can be acquired";
  return [
    ...endpoints.flatMap((each, index) => [
      ...titles[index]!,
      ...each.advice.flatMap(adviceLines),
      ...rowLines(each.rows ?? [], width),
    ]),
    "",
    ...layout([[`${well} of ${endpoints.length} ok, a quorum is ${quorum}: ${outcome}`]], width),
    ...advice.flatMap(adviceLines),
  ];
}
