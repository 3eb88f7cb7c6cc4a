import { type Ask, probeTtl, type Seen, type Session, type Written } from "./session.ts";
import { setting, steps, write } from "./steps.ts";
import { mistaken, mustBeStored, peek } from "./stored.ts";

// What a conformance check asks of plain commands: what the library sends, as it sends it.

const half = probeTtl / 2;

export const askNx: Ask = steps((session) => {
  const first = { key: session.key("nx"), value: "v1", ttl: half };
  const other = { ...first, value: "v2", ttl: probeTtl };
  const brief = { ...other, key: session.key("brief") };
  return [
    { send: ["SET", brief.key, "v1", "NX", "PX", 1] },
    { send: setting(first, "NX"), stored: first, reply: "OK" },
    { send: setting(other, "NX"), stored: first, reply: null, when: "a second SET … NX" },
    { send: setting(brief, "NX"), stored: brief, after: 5, when: "after a ttl of 1 ms" },
  ];
});

export const askNxGet: Ask = steps((session) => {
  const first = { key: session.key("nx-get"), value: "v1", ttl: half };
  const second = { ...first, value: "v2", ttl: probeTtl };
  return [
    { send: setting(first, "NX", "GET"), stored: first, reply: null },
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
    { send: setting(second, "IFEQ", "v1"), stored: second, reply: "OK", when: "an equal value" },
    { send: setting(third, "IFEQ", "v1"), stored: second, reply: null, when: "another value" },
    { send: setting(created, "IFEQ", "v1"), stored: absent, reply: null, when: "no value" },
  ];
});

export const askDelex: Ask = steps((session) => {
  const first = { key: session.key("delex"), value: "v1" };
  const gone = { ...first, value: null };
  const removing = (value: string) => ["DELEX", first.key, "IFEQ", value];
  return [
    { send: setting(first), stored: first },
    { send: removing("v2"), stored: first, reply: 0, when: "another value" },
    { send: removing("v1"), stored: gone, reply: 1, when: "an equal value" },
    { send: removing("v1"), stored: gone, reply: 0, when: "no value" },
  ];
});

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

/** What results and tokens of owners may have in them. It begins with a letter, as all that the library writes. */
const oddValue =
  'v1: \u00e9 e\u0301 \u{1f512} \u2028 \ufeff \\ "\\u0041" %41%2541 a+b <&> {} 9007199254740993 V ';

/** Whether a command and a script find what was written, under its name. */
export async function askUnchanged(session: Session): Promise<Seen> {
  const written: Written[] = [];
  for (const [index, name] of twins.flatMap(([, ...pair]) => pair).entries()) {
    written.push(
      await write(session, { key: session.key(`key:${name}`), value: `v${index}`, ttl: probeTtl }),
    );
  }
  const wrong = new Set(await mistaken(session, written));
  const pair = twins.find((_, index) => wrong.has(written[2 * index]!) || wrong.has(written[2 * index + 1]!));
  if (pair) return { works: false, found: `keys that differ ${pair[0]} are not two` };
  const odd = await write(session, { key: session.key(`key:${oddName}`), value: oddValue, ttl: probeTtl });
  const byScript = await peek(session, odd.key);
  const byCommand = await session.ask(["GET", odd.key]);
  // A replica may lag: it has nothing yet.
  const read = [...(byScript ? [byScript.value] : []), ...(byCommand === null ? [] : [byCommand])];
  if (read.length === 0 || read.some((value) => value !== oddValue)) {
    return { works: false, found: "another value is read than was written" };
  }
  session.kept.push(...written, odd);
  return { works: true };
}

/** ms after which a failover has lost what was written. */
const pause = 1_000;

/** Looks once more, after a pause, whether all is there that was written, and nothing that was deleted. */
export async function askKept(session: Session): Promise<Seen> {
  const { kept } = session;
  if (kept.length === 0) return {};
  await session.pause(pause);
  const wrong = await mistaken(session, kept);
  if (wrong.length > 0) {
    return { works: false, found: `of ${kept.length} keys, ${wrong.length} changed, vanished or came back` };
  }
  // As a sample of ttls.
  const nx = kept.find(({ key }) => key === session.key("nx"));
  if (nx) await mustBeStored(session, nx, "at the end");
  return { works: true, found: `${kept.length} keys, once more at the end` };
}
