import type { Seen, Session, Written } from "./session.ts";
import { mistaken, mustBeStored, peek, write } from "./stored.ts";

// What a conformance check asks of what is stored: whether it is what was written, all of it, and stays.

/** Two names for each way in which keys may be changed until they are one. */
const twins: readonly (readonly [way: string, one: string, other: string])[] = [
  ["only after 300 characters", `${"n".repeat(300)}1`, `${"n".repeat(300)}2`],
  ["in case", "case", "CASE"],
  ["in a space at the end", "space", "space "],
  ["in an escape", "%41", "A"],
  ["in a backslash", "\\u0041", "u0041"],
  ["in + and a space", "a+b", "a b"],
  ["in braces", "{brace}", "brace"],
  ["in how é is composed", "\u00e9", "e\u0301"],
  ["in characters beyond 16 bits", "\u{1f511}", "\u{1f512}"],
];

/** Whether a command and a script find what was written, under its name. */
export async function askUnchanged(session: Session): Promise<Seen> {
  const names = twins.flatMap(([, ...pair]) => pair);
  const written: Written[] = [];
  for (const name of names) {
    written.push(await write(session, { key: session.key(`key:${name}`), value: `v${name}` }));
  }
  const [wrong] = await mistaken(session, written);
  if (wrong) {
    const [way] = twins[written.indexOf(wrong) >> 1]!;
    return { works: false, found: `names or values that differ ${way} are not two` };
  }
  const text = names.join();
  const odd = await write(session, { key: session.key(`key:${text}`), value: `v${text} ` });
  const byScript = await peek(session, odd.key);
  const byCommand = await session.ask(["GET", odd.key]);
  // A replica may lag: it has nothing yet.
  const read = [...(byScript ? [byScript.value] : []), ...(byCommand === null ? [] : [byCommand])];
  if (read.length === 0 || read.some((value) => value !== odd.value)) {
    return { works: false, found: "another value is read than was written" };
  }
  session.kept.push(...written, odd);
  return { works: true };
}

/** Sizes of values, in bytes, the largest first: that of the default `maxResult`, and smaller ones. */
const valueSizes = [1_000_000, 500_000, 250_000, 100_000, 50_000, 10_000] as const;

/** The largest value that is stored whole, and can be read. */
export async function askResult(session: Session): Promise<Seen> {
  const key = session.key("result");
  let refusal: Error | undefined;
  for (const size of valueSizes) {
    try {
      const written = await write(session, { key, value: "v".repeat(size) });
      await mustBeStored(session, written);
      if (!refusal) return { works: true, found: "more was not tried" };
      return { works: false, found: `${size / 1_000} kB; more: ${refusal.message.replace(/^\S+: /, "")}` };
    } catch (error) {
      refusal ??= error as Error;
    }
  }
  throw refusal;
}

export async function askEviction(session: Session): Promise<Seen> {
  for (const command of [
    ["CONFIG", "GET", "maxmemory-policy"],
    ["INFO", "memory"],
  ]) {
    const reply = await session.ask(command).catch(() => undefined);
    const policy = /maxmemory[-_]policy[:,]\s*([a-z-]+)/.exec(String(reply))?.[1];
    if (policy) return { works: policy === "noeviction", found: policy };
  }
  return { found: "neither CONFIG GET nor INFO says it" };
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
