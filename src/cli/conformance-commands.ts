import {
  type ConformanceSession,
  probeTtl,
  replyOf,
  type Seen,
  UnexpectedReply,
} from "./conformance-session.ts";
import { mistaken, mustBeStored, peek, write } from "./conformance-stored.ts";

// What a conformance check asks of plain commands: what the library sends, as it sends it. What is stored counts, whatever
// was answered: if a gateway sends requests twice, only that is found. An answer counts where the library believes it.

const works: Seen = { works: true };
const fails = (found: string): Seen => ({ works: false, found });

/** ms that the shortest key lives, and after which it must have gone. */
const brief = { ttl: 1, gone: 5 };

/** Whether requests are executed twice, and the second answer counts: that is row `once`. */
async function isAnsweredTwice(session: ConformanceSession, name: string): Promise<boolean> {
  const again = write(session, session.key(`${name}:twice`), "v1", { options: ["NX", "GET"] });
  return again.then(
    ({ reply }) => reply === "v1",
    () => false,
  );
}

export async function askNx(session: ConformanceSession): Promise<Seen> {
  const [key, short] = [session.key("nx"), session.key("brief")];
  await write(session, short, "v1", { options: ["NX"], ttl: brief.ttl });
  const first = await write(session, key, "v1", { options: ["NX"], ttl: probeTtl / 2 });
  await mustBeStored(session, first);
  if (first.reply !== "OK" && !(await isAnsweredTwice(session, "nx")))
    return fails("stored, it does not say OK");
  const second = await write(session, key, "v2", { options: ["NX"] });
  await mustBeStored(session, first, "after a second SET … NX");
  if (second.reply !== null) return fails("a second SET … NX was not refused");
  await session.pause(brief.gone);
  const again = await write(session, short, "v2", { options: ["NX"] });
  await mustBeStored(session, again, `after a ttl of ${brief.ttl} ms`);
  session.kept.push(first);
  return works;
}

export async function askNxGet(session: ConformanceSession): Promise<Seen> {
  const key = session.key("nx-get");
  const first = await write(session, key, "v1", { options: ["NX", "GET"], ttl: probeTtl / 2 });
  if (first.reply !== null && first.reply !== "v1") return fails("it returned something that was not there");
  await mustBeStored(session, first);
  const second = await write(session, key, "v2", { options: ["NX", "GET"] });
  await mustBeStored(session, first, "after a second SET … NX GET");
  if (second.reply !== "v1") return fails("it did not return the value in the way");
  session.kept.push(first);
  return works;
}

export async function askIfEqual(session: ConformanceSession): Promise<Seen> {
  const [key, absent] = [session.key("ifeq"), session.key("ifeq:absent")];
  await write(session, key, "v1", { ttl: probeTtl / 2 });
  const equal = await write(session, key, "v2", { options: ["IFEQ", "v1"] });
  await mustBeStored(session, equal, "where the value was equal");
  if (equal.reply !== "OK" && !(await isAnsweredTwice(session, "ifeq")))
    return fails("stored, it does not say OK");
  const other = await write(session, key, "v3", { options: ["IFEQ", "v1"], ttl: probeTtl / 2 });
  await mustBeStored(session, equal, "where the value was another one");
  if (other.reply !== null) return fails("where the value was another one, it was not refused");
  const none = await write(session, absent, "v2", { options: ["IFEQ", "v1"] });
  await mustBeStored(session, { key: absent, value: null }, "where no value was there");
  if (none.reply !== null) return fails("where no value was there, it was not refused");
  session.kept.push(equal, { key: absent, value: null });
  return works;
}

export async function askDelex(session: ConformanceSession): Promise<Seen> {
  const key = session.key("delex");
  await write(session, key, "v1");
  const remove = (value: string) => session.ask(["DELEX", key, "IFEQ", value]);
  const other = await remove("v2").catch(async (error: Error) => {
    const deleted = await session.ask(["DELIFEQ", key, "v1"]).catch(() => undefined);
    throw deleted === 1 ? new UnexpectedReply("it has DELIFEQ, which the library does not use") : error;
  });
  await mustBeStored(session, { key, value: "v1" }, "where the value was another one");
  if (other !== 0) return fails("where the value was another one, it does not say 0");
  const equal = await remove("v1");
  await mustBeStored(session, { key, value: null }, "where the value was equal");
  if (equal !== 1 && !(await isAnsweredTwice(session, "delex"))) return fails("deleted, it does not say 1");
  if ((await remove("v1")) !== 0) return fails("where no value was there, it does not say 0");
  session.kept.push({ key, value: null });
  return works;
}

/** Two names for each way in which keys may be changed until they are one. */
const twins: readonly (readonly [way: string, one: string, other: string])[] = [
  ["only after 300 characters", `${"n".repeat(300)}1`, `${"n".repeat(300)}2`],
  ["in case", "case", "CASE"],
  ["in a space at the end", "space", "space "],
  ["in an escape", "%41", "A"],
  ["in + and a space", "a+b", "a b"],
  ["in braces", "{brace}", "brace"],
  ["in how é is composed", "\u00e9", "e\u0301"],
  ["in characters beyond 16 bits", "\u{1f511}", "\u{1f512}"],
];

/** All of these ways. */
const oddName = "Odd %41 a+b {brace} \u00e9 e\u0301 \u{1f511} ";

export async function askKeys(session: ConformanceSession): Promise<Seen> {
  const keys = twins.flatMap(([, ...names]) => names.map((name) => session.key(`key:${name}`)));
  const from = session.runtime.monotonic();
  const sent = keys.map((key, index) => ["SET", key, `v${index}`, "PX", probeTtl]);
  if (session.seen.pipeline?.works) (await session.askTogether(sent)).outcomes.forEach(replyOf);
  else for (const command of sent) await session.ask(command);
  const at = { from, to: session.runtime.monotonic() };
  const all = keys.map((key, index) => ({ key, value: `v${index}`, ttl: probeTtl, at }));
  const wrong = new Set(await mistaken(session, all));
  const found = await Promise.all(
    [...wrong].map(({ key }) => session.ask(["GET", key], session.connection())),
  );
  // Of two names that are one, both have a value: the other one's.
  if (wrong.size > 0 && found.every((value) => value === null)) {
    session.lost += wrong.size;
    return { found: "what was written is not there" };
  }
  const pair = twins.find((_, index) => wrong.has(all[2 * index]!) || wrong.has(all[2 * index + 1]!));
  if (pair) return fails(`keys that differ ${pair[0]} are not two`);
  const odd = await write(session, session.key(`key:${oddName}`), "v1");
  const byScript = await peek(session, odd.key);
  const isOther = byScript !== undefined && byScript.value !== odd.value;
  if (isOther && (await session.ask(["GET", odd.key])) === odd.value) {
    return fails("a script has another key than a command");
  }
  session.kept.push(...all, odd);
  return works;
}

/** What results and tokens of owners may have in them. It begins with a letter, as all that the library writes. */
const oddValue =
  'v1: \u00e9 e\u0301 \u{1f512} \u2028 \ufeff \\ "\\u0041" %41%2541 a+b <&> {} 9007199254740993 V ';

export async function askValues(session: ConformanceSession): Promise<Seen> {
  const key = session.key("values");
  const written = await write(session, key, oddValue);
  const byScript = await peek(session, key);
  const all = [byScript?.value ?? null, await session.ask(["GET", key])];
  // null: a replica that lags, or no scripts.
  if (all.every((value) => value === null)) return fails("nothing is stored");
  if (all.some((value) => value !== null && value !== oddValue)) return fails("another value is read");
  session.kept.push(written);
  return works;
}
