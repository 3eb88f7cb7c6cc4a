import { type Ask, probeTtl, type Seen, type Session, UnexpectedReply } from "./session.ts";
import { follow, setting, steps, write } from "./steps.ts";
import { mistaken, peek } from "./stored.ts";

// What a conformance check asks of plain commands: what the library sends, as it sends it.

const half = probeTtl / 2;

export const askNx: Ask = steps((session) => {
  const first = { key: session.key("nx"), value: "v1", ttl: half };
  const other = { ...first, value: "v2", ttl: probeTtl };
  const brief = { ...other, key: session.key("brief") };
  return [
    { send: ["SET", brief.key, "v1", "NX", "PX", 1] },
    { send: setting(first, "NX"), stored: first, reply: "OK", twice: null },
    { send: setting(other, "NX"), stored: first, reply: null, when: "a second SET … NX" },
    { send: setting(brief, "NX"), stored: brief, after: 5, when: "after a ttl of 1 ms" },
  ];
});

export const askNxGet: Ask = steps((session) => {
  const first = { key: session.key("nx-get"), value: "v1", ttl: half };
  const second = { ...first, value: "v2", ttl: probeTtl };
  return [
    { send: setting(first, "NX", "GET"), stored: first, reply: null, twice: "v1" },
    { send: setting(second, "NX", "GET"), stored: first, reply: "v1", when: "a second SET … NX GET" },
  ];
});

export const askIfEqual: Ask = steps((session) => {
  const first = { key: session.key("ifeq"), value: "v1", ttl: half };
  const second = { ...first, value: "v2", ttl: probeTtl };
  const absent = { key: session.key("ifeq:absent"), value: null };
  const [third, created] = [
    { ...first, value: "v3" },
    { ...absent, value: "v2" },
  ] as const;
  return [
    { send: setting(first) },
    { send: setting(second, "IFEQ", "v1"), stored: second, reply: "OK", twice: null, when: "an equal value" },
    { send: setting(third, "IFEQ", "v1"), stored: second, reply: null, when: "another value" },
    { send: setting(created, "IFEQ", "v1"), stored: absent, reply: null, when: "no value" },
  ];
});

export async function askDelex(session: Session): Promise<Seen> {
  const first = { key: session.key("delex"), value: "v1" };
  const gone = { ...first, value: null };
  const removing = (value: string) => ["DELEX", first.key, "IFEQ", value];
  const asked = follow(session, [
    { send: setting(first), stored: first },
    { send: removing("v2"), stored: first, reply: 0, when: "another value" },
    { send: removing("v1"), stored: gone, reply: 1, twice: 0, when: "an equal value" },
    { send: removing("v1"), stored: gone, reply: 0, when: "no value" },
  ]);
  return asked.catch(async (error: Error) => {
    const deleted = await session.ask(["DELIFEQ", first.key, "v1"]).catch(() => undefined);
    throw deleted === 1 ? new UnexpectedReply("it has DELIFEQ, which the library does not use") : error;
  });
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

export async function askKeys(session: Session): Promise<Seen> {
  const names = twins.flatMap(([, ...pair]) => pair);
  const from = session.runtime.monotonic();
  const all = names.map((name, index) => ({ key: session.key(`key:${name}`), value: `v${index}` }));
  await Promise.all(all.map((each) => session.ask(setting(each), session.connection())));
  const at = { from, to: session.runtime.monotonic() };
  const written = all.map((each) => ({ ...each, ttl: probeTtl, at }));
  const wrong = new Set(await mistaken(session, written));
  const found = await Promise.all(
    [...wrong].map(({ key }) => session.ask(["GET", key], session.connection())),
  );
  // Of two names that are one, both have a value: the other one's.
  if (wrong.size > 0 && found.every((value) => value === null)) {
    session.lost += wrong.size;
    return { found: "what was written is not there" };
  }
  const pair = twins.find((_, index) => wrong.has(written[2 * index]!) || wrong.has(written[2 * index + 1]!));
  if (pair) return { works: false, found: `keys that differ ${pair[0]} are not two` };
  const odd = await write(session, { key: session.key(`key:${oddName}`), value: "v1", ttl: probeTtl });
  const byScript = await peek(session, odd.key);
  const isOther = byScript !== undefined && byScript.value !== odd.value;
  if (isOther && (await session.ask(["GET", odd.key])) === odd.value) {
    return { works: false, found: "a script has another key than a command" };
  }
  session.kept.push(...written, odd);
  return { works: true };
}

/** What results and tokens of owners may have in them. It begins with a letter, as all that the library writes. */
const oddValue =
  'v1: \u00e9 e\u0301 \u{1f512} \u2028 \ufeff \\ "\\u0041" %41%2541 a+b <&> {} 9007199254740993 V ';

export async function askValues(session: Session): Promise<Seen> {
  const written = await write(session, { key: session.key("values"), value: oddValue, ttl: probeTtl });
  const byScript = await peek(session, written.key);
  const all = [byScript?.value ?? null, await session.ask(["GET", written.key])];
  // null: a replica that lags, or no scripts.
  if (all.every((value) => value === null)) return { works: false, found: "nothing is stored" };
  if (all.some((value) => value !== null && value !== oddValue)) {
    return { works: false, found: "another value is read" };
  }
  session.kept.push(written);
  return { works: true };
}
