import type { Dialect } from "../../index.ts";

import { type Failure, isRefusal } from "../access.ts";
import { duration } from "../text.ts";
import { questions } from "./questions.ts";
import type { Level } from "./requirements.ts";
import { remedies as serverRemedies } from "./server-remedies.ts";
import type { Examined, Seen, SeenByNeed } from "./session.ts";

// What the answers to doctor's questions mean, and what to do. No I/O.

/** Something that doctor has to say. */
export interface Advice {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

/** A longer round trip is worth a warning: requests have a timeout of 1 s by default, of a third of the ttl for short locks. */
const maxRoundTrip = 300;

/** A clock that is further away, in ms, is worth a warning. */
const maxClockDistance = 1_000;

const asPage = "copy {both} from the database's page";
const restUrl =
  "set {url} to the REST URL of the database, https://….upstash.io, not to a dashboard's or a proxy's address";
const tlsUrl = "set {url} to a URL with TLS if the port has it, and to one without if it does not";

/** What to do about a failure. `says`: what stands before the error's message. */
type Remedy = readonly [code: string, pattern: RegExp, fix: string, says?: string];

/** By its kind, its status or 0, and its message. The first that fits counts. */
const remedies: readonly Remedy[] = [
  [
    "SAME_DATABASE",
    /^config 0 it is the same database/,
    "a database counts once. Set {url} to another one, or remove it",
  ],
  ["CONFIG", /^config .*basePath/, `${asPage}; the base path of a gateway is --base-path here`],
  ["CONFIG", /^config .*allowInsecure/, `${asPage}; to check it nevertheless: --allow-insecure`],
  [
    "CONFIG",
    /^config .*Redis protocol/,
    "copy {both} from the REST API's part of the database's page; or name all databases REDIS_URL, and set no REST variables",
  ],
  ["CONFIG", /^config/, asPage],
  ["NOT_REST", /no answer of Upstash/, restUrl],
  [
    "TOKEN",
    /^\w+ 40[13]|WRONGPASS|NOAUTH|unauthorized|invalid token|without any password/i,
    "set {token} to the {secret} of this database; each database has its own, and a new one after a reset",
    "it refuses the {secret}: ",
  ],
  [
    "UNREACHABLE",
    /^timeout/,
    "is a firewall in between, or the database stopped? To wait longer: --timeout 15000",
  ],
  [
    "UNREACHABLE",
    /^network .*ECONNREFUSED/,
    "check the host and port of {url}; for local endpoints, start npx redis-rest-local, and use the variables that it prints",
  ],
  ["UNREACHABLE", /^network .*(WRONG_VERSION|RESP type|closed unexpectedly)/, tlsUrl],
  [
    "UNREACHABLE",
    /^network .*(CERT|SSL|TLS|SIGNATURE)/,
    "TLS failed: is {url} right, does a proxy replace certificates?",
  ],
  ["UNREACHABLE", /^network/, "check the network, and the host and port of {url}"],
  [
    "READ_ONLY",
    /NOPERM/,
    "set {token} to one that may write, not to a read-only one",
    "the {secret} may not write: ",
  ],
  ["LIMIT", /^\w+ 429|limit/i, "the plan's limit is reached: wait until it is reset, or change the plan"],
  ["NOT_REST", /^malformed|^http [1-4]/, restUrl],
  ["SERVER", /^/, "the server has a problem; see its status page or its log, and try again"],
];

/** The failure that counts, because the others follow from it. */
function failureAt(seen: SeenByNeed): Failure | undefined {
  return (
    Object.entries(seen)
      .map(([need, { failure }]) => ({ need, failure }))
      // Of what only some servers have, a refusal says that this one has not got it.
      .find(
        ({ need, failure }) => failure && ((need in questions && need !== "clock") || !isRefusal(failure)),
      )?.failure
  );
}

/** What keeps an endpoint from being used. */
function failureAdvice({ kind, status = 0, message }: Failure): Advice {
  const text = `${kind} ${status} ${message}`;
  const [code, , fix, says = ""] = remedies.find(([, pattern]) => pattern.test(text))!;
  const known = serverRemedies.find(({ errors }) => errors.some((said) => message.includes(said)));
  return { level: "error", code, message: says + message, fix: (code === "SERVER" && known?.remedy) || fix };
}

/** The dialects, from the one that needs least. */
const dialects: readonly Dialect[] = ["redis", "redis-8.4", "upstash"];

/** The dialect with which the server does most at the least cost. */
function bestDialect({ native, flag }: SeenByNeed): Dialect {
  if (!native?.works) return "redis";
  return flag?.works ? "upstash" : "redis-8.4";
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname);
}

function dialectAdvice({ dialect, seen, url }: Examined): Advice[] {
  const best = bestDialect(seen);
  if (!dialect || !seen.eval?.works || dialect === best) return [];
  const isEnough = dialects.indexOf(dialect) < dialects.indexOf(best);
  // Local endpoints emulate these commands, so there it says nothing.
  if (isEnough && isLoopback(url)) return [];
  const gain = dialect === "redis" ? "fewer scripts" : "scripts that do not lock the whole database";
  const [level, message] = isEnough
    ? (["note", `its dialect is ${dialect}; it has what ${best} needs, too, with ${gain}`] as const)
    : (["error", `its dialect is ${dialect}, but it has only what ${best} needs`] as const);
  const fix = `set \`dialect: "${best}"\` for this endpoint in your program; to check that here: --dialect ${best}`;
  return [{ level, code: "DIALECT", message, fix }];
}

/** What else there is to say. */
function remarks({ roundTrip = 0, clock = 0 }: Seen = {}): Advice[] {
  const found: Advice[] = [];
  if (roundTrip > maxRoundTrip) {
    found.push({
      level: "warning",
      code: "SLOW",
      message: `a request takes ${duration(roundTrip)}; the default timeout is 1 s, or a third of the ttl if that is less`,
      fix: "run your program near the database, or set timeout to three times as long",
    });
  }
  if (Math.abs(clock) > maxClockDistance) {
    const distance = `${duration(Math.abs(clock))} ${clock > 0 ? "ahead of" : "behind"}`;
    found.push({
      level: "warning",
      code: "CLOCK",
      message: `its clock is ${distance} this machine's; locks do not need it, ages, deadlines and signed times of webhooks do`,
      fix: "set the clock of that server by NTP; if all endpoints say this, the clock of this machine",
    });
  }
  return found;
}

/** What is to be said of an endpoint. */
export function adviceOn(place: Examined): Advice[] {
  const { variable, seen } = place;
  const url = variable ?? "its URL";
  const token = variable?.replace("URL", "TOKEN") ?? "its token";
  const isSocket = url.startsWith("REDIS_URL");
  const words: Readonly<Record<string, string>> = {
    url,
    token: isSocket ? `the password in ${url}` : token,
    both: isSocket ? url : `${url} and ${token}`,
    secret: isSocket ? "password" : "token",
  };
  const failure = failureAt(seen);
  const all = [...(failure ? [failureAdvice(failure)] : dialectAdvice(place)), ...remarks(seen.clock)];
  const inWords = (text: string) =>
    text.replaceAll(/\{(url|token|both|secret)\}/g, (_, word: string) => words[word]!);
  return all.map(({ fix, message, ...advice }) => {
    return { ...advice, message: inWords(message), fix: inWords(fix) };
  });
}

/** What is said of how many endpoints there are. */
export function countAdvice(count: number): Advice[] {
  const code = "COUNT";
  if (count === 1) {
    const message = "one endpoint: while it is down, no lock can be acquired";
    return [{ level: "note", code, message, fix: "three independent databases go on when one is down" }];
  }
  if (count % 2 !== 0) return [];
  const message = `${count} endpoints survive no more failures than ${count - 1}`;
  return [{ level: "warning", code, message, fix: `use ${count - 1} or ${count + 1}` }];
}
