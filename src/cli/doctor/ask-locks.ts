import { randomUUID } from "node:crypto";
import type { Ask } from "../../endpoints/ask.ts";
import { type Dialect, type Endpoint, EndpointError } from "../../index.ts";
import { type Cell, type CellAnswer, claim, claimOrRead, end, keep } from "../../redis/cell.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import { textOf } from "../../redis/script.ts";
import { probeTtl, type Seen, type Session, UnexpectedReply, type Written } from "./session.ts";
import { mistakeOf, mustBeStored, write } from "./stored.ts";

// What a conformance check asks of locks: the library's own operations, natively and by script. What is stored after each of
// them counts as well as what was answered.

/** An operation, and what must be seen of it. */
type Step = readonly [
  /** Begins the message where something is wrong. */
  what: string,
  operation: (call: Ask) => Promise<CellAnswer>,
  outcome: CellAnswer["outcome"],
  /** What must be stored afterwards. The first step that names it writes it. */
  stored: Written,
];

/** The lowest fence: as many digits as one of today has. */
const least = 1_234_567_890_123;

/** How a lock is claimed. With a fence, all is done by script. */
function cellOf(session: Session, name: string, isFenced = false): Cell {
  const key = session.key(name);
  const counters = { keys: [session.key(`${name}:fence`)], least, retention: probeTtl };
  const fenced = { tombstone: session.key(`${name}:void`), counters };
  return { keys: [key], value: `c${key}`, ...(isFenced && fenced) };
}

/** A lock from its claim to its end, with others who try to get, extend and end it. */
function life(session: Session, name: string, isFenced = false, claimOne: typeof claim = claim): Step[] {
  const own = cellOf(session, name, isFenced);
  const other = { ...cellOf(session, `${name}:other`, isFenced), keys: own.keys };
  const absent = cellOf(session, `${name}:absent`, isFenced);
  const [{ keys, value }, half] = [own, probeTtl / 2];
  const acquired = { key: keys[0]!, value, ttl: half };
  const extended = { ...acquired, ttl: probeTtl };
  const gone = { key: keys[0]!, value: null };
  const nothing = { key: absent.keys[0]!, value: null };
  return [
    ["a claim", (call) => claimOne(call, own, half), "granted", acquired],
    ["another claim", (call) => claimOne(call, other, probeTtl), "held", acquired],
    ["an extension", (call) => keep(call, own, probeTtl), "granted", extended],
    ["an extension of another value", (call) => keep(call, other, half), "lost", extended],
    ["an extension of nothing", (call) => keep(call, absent, half), "lost", nothing],
    ["an end of another value", (call) => end(call, other), "lost", extended],
    ["an end", (call) => end(call, own), "granted", gone],
    ["an end of nothing", (call) => end(call, absent), "lost", nothing],
  ];
}

/** Sends scripts as text: what a server remembers of them is a question of its own. */
function askOf(session: Session, endpoint: Endpoint): Ask {
  return {
    endpoint,
    send: ([name, ...rest]) =>
      name === "EVALSHA" ? Promise.reject(new Error("NOSCRIPT")) : session.ask([name!, ...rest]),
  };
}

/** Goes through steps, until something is wrong. What they have stored must still be there at the end of all. */
async function follow(session: Session, dialect: Dialect, steps: readonly Step[]): Promise<Seen> {
  const call = askOf(session, { ...session.endpoint, dialect });
  const all = new Map<Written, Written>();
  for (const [what, operation, outcome, stored] of steps) {
    const { result, at } = await session
      .timed(() => operation(call))
      .catch((error) => {
        throw error instanceof EndpointError ? error : new UnexpectedReply(`${what}: ${error.message}`);
      });
    const { other: value, retryAfter: remaining } = result;
    const written = all.get(stored) ?? { ...stored, at };
    all.set(stored, written);
    const wrong =
      result.outcome !== outcome
        ? `the answer is "${result.outcome}"`
        : remaining !== undefined && mistakeOf(written, { value, remaining }, at);
    if (wrong) return { works: false, found: `${what}: ${wrong}` };
    await mustBeStored(session, written, what);
  }
  session.kept.push(...new Map([...all.values()].map((written) => [written.key, written])).values());
  return { works: true };
}

/** Claims by `SET … NX PX`. */
export function askClaim(session: Session): Promise<Seen> {
  const brief = cellOf(session, "brief");
  const [first, later] = [{ key: brief.keys[0]!, value: brief.value }, "clater"];
  const claimLater = async (call: Ask) => {
    await session.pause(5);
    return claim(call, { ...brief, value: later }, probeTtl);
  };
  // In this dialect the first claim is native, too.
  return follow(session, "redis-8.4", [
    ["a claim for 1 ms", (call) => claim(call, brief, 1), "granted", { ...first, ttl: 1 }],
    ["a claim after its end", claimLater, "granted", { ...first, value: later, ttl: probeTtl }],
    ...life(session, "nx").slice(0, 2),
  ]);
}

/** Whether a lock that is there already is extended and ended natively, and runs claim by `SET … NX GET PX`. */
export function askNative(session: Session): Promise<Seen> {
  const [[, , , stored], , ...steps] = life(session, "native") as [Step, ...Step[]];
  const set: Step[1] = async (call) => {
    await call.send(["SET", stored.key, stored.value!, "PX", stored.ttl!]);
    return { outcome: "granted" };
  };
  return follow(session, "redis-8.4", [
    ["a SET", set, "granted", stored],
    ...steps,
    ...life(session, "nx-get", false, claimOrRead).slice(0, 2),
  ]);
}

export function askEval(session: Session): Promise<Seen> {
  return follow(session, "redis", life(session, "script", true));
}

export async function askEvalsha(session: Session): Promise<Seen> {
  const unknown = randomUUID().replaceAll("-", "").padEnd(40, "0");
  const refusal = await session.ask(["EVALSHA", unknown, 1, session.key("noscript")]).then(
    () => undefined,
    (error: Error) => error,
  );
  if (!refusal) return { works: false, found: "it ran a script that it cannot know" };
  if (!refusal.message.includes("NOSCRIPT")) throw refusal;
  const [first, second] = [cellOf(session, "text", true), cellOf(session, "hash", true)];
  const claimByHash = async ({ endpoint }: Ask) => {
    let requests = 0;
    const send: Ask["send"] = (command) => {
      requests += 1;
      return session.ask(command);
    };
    const answer = await claim({ endpoint, send }, second, probeTtl);
    if (requests > 1) throw new Error("NOSCRIPT, of a script that it has just run");
    return answer;
  };
  const storedOf = ({ keys, value }: typeof first) => ({ key: keys[0]!, value, ttl: probeTtl });
  return follow(session, "redis", [
    ["EVAL", (call) => claim(call, first, probeTtl), "granted", storedOf(first)],
    ["EVALSHA", claimByHash, "granted", storedOf(second)],
  ]);
}

export async function askFlag(session: Session): Promise<Seen> {
  const { key, value } = await write(session, { key: session.key("peek"), value: "v1" });
  const script = textOf(peekScript.source, "upstash");
  const reply = await session.ask(["EVAL", script, 2, key, session.key("peek:fence"), "peek"]);
  const [found, remaining] = Array.isArray(reply) ? reply : [];
  const works = found === value && Number(remaining) > 0;
  return works ? { works } : { works, found: "it reads something else" };
}
