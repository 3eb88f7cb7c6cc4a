import { parseRecord } from "../idempotency/record.ts";
import { type Command, type Endpoint, EndpointError } from "../index.ts";
import { digestOf } from "../inspect/inspect.ts";
import { holderIn, parseKey, type StoredKey } from "../inspect/stored-key.ts";
import { settingsOf } from "../lock/client.ts";
import { parseHolder } from "../lock/note.ts";
import { quorumOf } from "../quorum/tally.ts";
import { tokenLength } from "../runtime/runtime.ts";
import { type Call, clientOf, failureOf, type Place } from "./access.ts";
import { exitCode, type Outcome } from "./environment.ts";
import { quoted } from "./finding.ts";
import type { Values } from "./options.ts";
import { counted, duration } from "./text.ts";

// The locks that are held now. Nothing in Redis lists the holders, so only a walk over all keys finds them.

/** Something that is held at one endpoint. */
interface Held {
  /** `lock`, `permit`, `fair`, `reader`, `writer`, `reentrant`, `once`, `turn`, `run` or `flight`. */
  readonly kind: string;
  /** The resource, or the synchronizer's name. For a run or flight the hash of its scope and key. */
  readonly name: string;
  /** The first 12 hex digits of the SHA-256 of the holder's token. */
  readonly holder: string;
  readonly note?: string | undefined;
  /** ms since a run began. */
  readonly age?: number;
  /** ms until it is free by itself. */
  readonly remaining: number;
}

/** How many keys a SCAN walks over, and how many keys are read at once. */
const step = 1_000;
const share = 100;

/** The kinds of keys that somebody holds. The others are counters, results, arrivals, queues and tombstones. */
const kinds: Readonly<Record<string, string>> = {
  lock: "lock",
  slot: "permit",
  fair: "fair",
  "read-write": "reader",
  reentrant: "reentrant",
  once: "once",
  mailbox: "turn",
  idem: "run",
  flight: "flight",
};

/** `redlock-edge list`: the locks that are held now. */
export async function list(call: Call): Promise<Outcome> {
  const found = await gather(call);
  const { held, quorum, endpoints, failures, commands, complete } = found;
  const { prefix, limit } = call.values;
  const answered = endpoints - failures.length;
  const isKnown = answered >= quorum;
  const count = held.filter(({ hasQuorum }) => hasQuorum).length;
  const sum = count === 0 ? "nothing is held" : counted(count, "holder");
  const part = `there may be more: the walk ended after --limit ${limit} keys of a database`;
  const cost = `cost: ${counted(commands, "command")} at each endpoint, one for about ${step} keys of its database and two for each key of a holder`;
  const head = ["kind", "name", "holder", "time left", "endpoints", ""];
  const text = [
    ...(held.length > 0 ? [head, ...held.map((row) => cellsOf(row, found)), ""] : []),
    `${isKnown ? sum : "not known what is held"} below the prefix ${prefix}; ${answered} of ${counted(endpoints, "endpoint")} answered (${quorum} needed)`,
    ...failures.map(({ endpoint, message }) => `${endpoint}: ${message}`),
    ...(isKnown && !complete ? [part] : []),
    isKnown ? cost : "to see what to fix: redlock-edge doctor",
  ];
  const some = count > 0 ? exitCode.done : exitCode.nothing;
  return { code: isKnown ? some : exitCode.failed, fields: found, text };
}

type Listing = Awaited<ReturnType<typeof gather>>;

/** What all endpoints have together. `complete`: no limit has ended a walk. */
async function gather(call: Call) {
  const { access, values } = call;
  const { endpoints } = settingsOf(clientOf(call));
  const ends = await Promise.allSettled(access.places.map((place) => walk(place, values)));
  const answers = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const failures = ends.flatMap((end, index) =>
    end.status === "rejected" ? [{ endpoint: endpoints[index]!.name, ...failureOf(end.reason) }] : [],
  );
  const quorum = quorumOf(ends.length);
  const held = merged(answers, quorum);
  const commands = Math.max(0, ...answers.map((each) => each.commands));
  const complete = answers.length >= quorum && !answers.some(({ isPart }) => isPart);
  return { held, quorum, endpoints: ends.length, failures, commands, complete };
}

function cellsOf(row: Listing["held"][number], { quorum, endpoints, failures }: Listing): string[] {
  const { kind, name, holder, remaining, age, note, hasQuorum } = row;
  const isOpen = row.endpoints + failures.length >= quorum;
  const isHashed = kind === "run" || kind === "flight";
  const facts = [
    !hasQuorum && (isOpen ? "too few answered" : "too few to hold it"),
    age !== undefined && `began ${duration(age)} ago`,
    note !== undefined && quoted(note),
  ];
  const place = `${row.endpoints} of ${endpoints}`;
  const shown = isHashed ? `${name.slice(0, 12)}…` : name;
  return [kind, shown, holder, duration(remaining), place, facts.filter(Boolean).join(", ")];
}

/** By holder: the keys of all endpoints together, and of how many. At fewer than a quorum they keep nobody out. */
function merged(answers: readonly { readonly held: readonly Held[] }[], quorum: number) {
  const all = new Map<string, Held[]>();
  for (const each of answers.flatMap(({ held }) => held)) {
    const id = JSON.stringify([each.kind, each.name, each.holder]);
    all.set(id, [...(all.get(id) ?? []), each]);
  }
  const rows = [...all.values()].map((parts) => {
    parts.sort((a, b) => b.remaining - a.remaining);
    // It is free once fewer than a quorum of endpoints have it.
    const last = parts[quorum - 1];
    return { ...(last ?? parts[0]!), endpoints: parts.length, hasQuorum: last !== undefined };
  });
  return rows.sort((a, b) => `${a.kind} ${a.name}`.localeCompare(`${b.kind} ${b.name}`));
}

/** Walks over the keys of one endpoint, at every server that has some. `isPart`: the limit has ended it. */
async function walk(place: Place, { prefix, limit, timeout }: Values) {
  const found = { held: [] as Held[], commands: 0, isPart: false };
  const seen = new Set<string>();
  let walked = 0;
  for (const node of await place.nodes()) {
    const ask: Ask = (command) => {
      found.commands += 1;
      return node.send(command, AbortSignal.timeout(timeout));
    };
    let next = "0";
    do {
      const scanned = await scan(node, ask, [next, "MATCH", `${patternOf(prefix)}:*`, "COUNT", step]);
      const fresh = scanned.keys.filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      const mine = fresh
        .flatMap((key) => parseKey(key) ?? [])
        .filter((key) => key.prefix === prefix && kinds[key.kind]);
      for (let first = 0; first < mine.length; first += share) {
        const read = mine.slice(first, first + share).map((key) => holdersOf(key, ask));
        found.held.push(...(await Promise.all(read)).flat());
      }
      walked += step;
      next = scanned.next;
    } while (next !== "0" && walked < limit);
    found.isPart ||= next !== "0";
  }
  return found;
}

/** A prefix may have characters that mean something in a pattern. `?` stands for each. */
const patternOf = (prefix: string) => prefix.replaceAll(/[[\]*\\^]/g, "?");

type Ask = (command: Command) => Promise<unknown>;

async function scan({ name }: Endpoint, ask: Ask, args: Command) {
  const reply = await ask(["SCAN", ...args]);
  const [next, keys] = Array.isArray(reply) ? reply : [];
  if (!Array.isArray(keys)) throw new EndpointError(name, "malformed", "unexpected reply to SCAN");
  return { next: String(next), keys: keys.map(String) };
}

/** The longest beginning of a value that is read: a holder with its note, or a record without its result. */
const longest = 800;

/** The holder of a key. A key that another program has written has nobody. */
async function holdersOf({ key, kind, resource }: StoredKey, ask: Ask): Promise<Held[]> {
  const isSet = kind === "read-write" || kind === "reentrant";
  const command = isSet ? ["ZRANGE", key, 0, -1, "WITHSCORES"] : ["GETRANGE", key, 0, longest];
  const [value, ttl] = await Promise.all([ask(command).catch(nothingIfForeign), ask(["PTTL", key])]);
  const remaining = Number(ttl);
  if (value === undefined || value === "" || remaining < 0) return [];
  const found = { kind: kinds[kind]!, name: resource, remaining };
  if (Array.isArray(value)) return membersOf(value.flat(), found);
  const text = String(value);
  if (kind !== "idem" && kind !== "flight") {
    const { nonce, note } = parseHolder(holderIn({ kind }, text));
    return [{ ...found, holder: await digestOf(nonce), note }];
  }
  const record = parseRecord(text);
  if (record?.state !== "pending") return [];
  return [{ ...found, holder: await digestOf(record.token), age: Math.max(0, Date.now() - record.at) }];
}

/** The members of a set, each with a deadline of its own. The set expires with the last of them. */
async function membersOf(items: readonly unknown[], found: Omit<Held, "holder">): Promise<Held[]> {
  const members = items.filter((_, index) => index % 2 === 0).map(String);
  const deadlines = items.filter((_, index) => index % 2 === 1).map(Number);
  const held = members.map(async (member, index): Promise<Held> => {
    const remaining = found.remaining - (Math.max(...deadlines) - deadlines[index]!);
    const kind = found.kind === "reader" && member.slice(tokenLength) !== "r" ? "writer" : found.kind;
    return { ...found, kind, remaining, holder: await digestOf(member.slice(0, tokenLength)) };
  });
  return (await Promise.all(held)).filter(({ remaining }) => remaining > 0);
}

function nothingIfForeign(error: unknown): undefined {
  if (!failureOf(error).message.includes("WRONGTYPE")) throw error;
}
