import { parseRecord } from "../idempotency/record.ts";
import { type Command, EndpointError } from "../index.ts";
import { digestOf } from "../inspect/inspect.ts";
import { holderIn, parseKey, type StoredKey } from "../inspect/stored-key.ts";
import { parseHolder } from "../lock/note.ts";
import { quorumOf } from "../quorum/tally.ts";
import { tokenLength } from "../runtime/runtime.ts";
import { type Call, clientOf, failureOf, type Place } from "./access.ts";
import { exitCode, type Outcome } from "./environment.ts";
import { quoted } from "./inspect.ts";
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

/** The kinds of keys that somebody holds. The others are counters, results, arrivals, queues and tombstones. */
const isHeld = /^(?:lock|slot|fair|read-write|reentrant|once|mailbox|idem|flight)$/;
const titles: Readonly<Record<string, string>> = {
  slot: "permit",
  "read-write": "reader",
  mailbox: "turn",
  idem: "run",
};

/** `redlock-edge list`: the locks that are held now. */
export async function list(call: Call): Promise<Outcome> {
  const { access, values } = call;
  // It throws if the endpoints cannot be used together.
  clientOf(call);
  const walks = await Promise.all(access.places.map((place) => walk(place, values).catch(failureOf)));
  const answers = walks.flatMap((each) => ("held" in each ? [each] : []));
  const failures = walks.flatMap((each) => ("held" in each ? [] : [each]));
  const [endpoints, quorum] = [walks.length, quorumOf(walks.length)];
  const rows = merged(answers, quorum);
  const isKnown = answers.length >= quorum;
  const complete = isKnown && !answers.some(({ isPart }) => isPart);
  const count = rows.filter(({ hasQuorum }) => hasQuorum).length;
  const some = count > 0 ? exitCode.done : exitCode.nothing;
  const sum = count > 0 ? counted(count, "holder") : "nothing is held";
  const head = ["kind", "name", "holder", "time left", "endpoints", ""];
  const part = `there may be more: the walk ended after --limit ${values.limit} keys of a database`;
  return {
    code: isKnown ? some : exitCode.failed,
    fields: { held: rows, quorum, endpoints, failures, complete },
    text: [
      ...(rows.length > 0 ? [head, ...rows.map((row) => cellsOf(row, endpoints)), ""] : []),
      `${isKnown ? sum : "not known what is held"} below the prefix ${values.prefix}; ${answers.length} of ${counted(endpoints, "endpoint")} answered (${quorum} needed)`,
      ...failures.map(({ endpoint, message }) => `${endpoint}: ${message}; what to fix: redlock-edge doctor`),
      ...(isKnown && !complete ? [part] : []),
    ],
  };
}

function cellsOf(row: ReturnType<typeof merged>[number], endpoints: number): string[] {
  const { kind, name, holder, remaining, age, note, hasQuorum } = row;
  const isHashed = kind === "run" || kind === "flight";
  const facts = [
    !hasQuorum && "no quorum",
    age !== undefined && `began ${duration(age)} ago`,
    note !== undefined && quoted(note),
  ];
  const title = isHashed ? `${name.slice(0, 12)}…` : name;
  const place = `${row.endpoints} of ${endpoints}`;
  return [kind, title, holder, duration(remaining), place, facts.filter(Boolean).join(", ")];
}

/** By holder: the keys of all endpoints together, and how many have them. At fewer than a quorum, they keep nobody out. */
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

/** Sends a command to one server. */
type Ask = (command: Command) => Promise<unknown>;

/** How many keys a SCAN walks over. */
const step = 1_000;

/** Walks over the keys of one endpoint, at every server that has some. `isPart`: the limit has ended it. */
async function walk(place: Place, { prefix, limit, timeout }: Values) {
  const found: Held[] = [];
  // A pattern's own characters stand for themselves only as `?`, which is any one character.
  const pattern = `${prefix.replaceAll(/[[\]*\\^]/g, "?")}:*`;
  const seen = new Set<string>();
  let isPart = false;
  let walked = 0;
  for (const node of (await place.nodes?.()) ?? [place.open()]) {
    const ask: Ask = (command) => node.send(command, AbortSignal.timeout(timeout));
    let next = "0";
    do {
      const reply = await ask(["SCAN", next, "MATCH", pattern, "COUNT", step]);
      const [cursor, keys] = Array.isArray(reply) ? reply : [];
      if (!Array.isArray(keys)) throw new EndpointError(node.name, "malformed", "unexpected reply to SCAN");
      const fresh = keys.map(String).filter((key) => !seen.has(key));
      for (const key of fresh) seen.add(key);
      const own = fresh.flatMap((key) => parseKey(key) ?? []).filter((key) => key.prefix === prefix);
      found.push(...(await Promise.all(own.map((key) => holdersOf(key, ask)))).flat());
      walked += step;
      next = String(cursor);
    } while (next !== "0" && walked < limit);
    isPart ||= next !== "0";
  }
  return { held: found, isPart };
}

/** The longest beginning of a value that is read: a holder with its note, or a record without its result. */
const longest = 800;

/** The holders of a key. A key that another program has written has none. */
async function holdersOf({ key, kind: stored, resource: name }: StoredKey, ask: Ask): Promise<Held[]> {
  if (!isHeld.test(stored)) return [];
  const kind = titles[stored] ?? stored;
  const isSet = kind === "reader" || kind === "reentrant";
  const command = isSet ? ["ZRANGE", key, 0, -1, "WITHSCORES"] : ["GETRANGE", key, 0, longest];
  const [value, ttl] = await Promise.all([ask(command).catch(() => undefined), ask(["PTTL", key])]);
  const found = { kind, name, remaining: Number(ttl) };
  if (value === undefined || value === "" || found.remaining < 0) return [];
  if (Array.isArray(value)) return membersOf(value.flat(), found);
  const text = String(value);
  if (kind !== "run" && kind !== "flight") {
    const { nonce, note } = parseHolder(holderIn({ kind: stored }, text));
    return [{ ...found, holder: await digestOf(nonce), note }];
  }
  const record = parseRecord(text);
  if (record?.state !== "pending") return [];
  return [{ ...found, holder: await digestOf(record.token), age: Math.max(0, Date.now() - record.at) }];
}

/** The members of a set, each with a deadline of its own. The set expires with the last of them. */
async function membersOf(items: readonly unknown[], set: Omit<Held, "holder">): Promise<Held[]> {
  const members = items.filter((_, index) => index % 2 === 0).map(String);
  const deadlines = items.filter((_, index) => index % 2 === 1).map(Number);
  const held = members.map(async (member, index): Promise<Held> => {
    const remaining = set.remaining - (Math.max(...deadlines) - deadlines[index]!);
    const kind = set.kind === "reader" && member.slice(tokenLength) !== "r" ? "writer" : set.kind;
    return { ...set, kind, remaining, holder: await digestOf(member.slice(0, tokenLength)) };
  });
  return (await Promise.all(held)).filter(({ remaining }) => remaining > 0);
}
