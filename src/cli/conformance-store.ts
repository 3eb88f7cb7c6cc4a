import { peekScript } from "../redis/peek.lua.ts";
import type { ConformanceSession, Seen } from "./conformance-session.ts";
import { mistaken, mustBeStored, write } from "./conformance-stored.ts";
import { counted } from "./text.ts";

// What a conformance check asks of the store: whether reads are fresh, writes stay, and what a failover or full memory does.

const fails = (found: string): Seen => ({ works: false, found });

/** How often it writes and reads: two values at each key, because a cache knows nothing of the second one. */
const rounds = 10;

/** ms after which a replica has what was written, and a failover has lost it. */
const pause = 1_000;

/** Writes, and reads at once over two other connections: as a program reads, and as the library does. */
export async function askReads(session: ConformanceSession): Promise<Seen> {
  const hasScripts = session.seen.eval?.works === true;
  const readers = [session.connection(), session.connection()] as const;
  const stale = { GET: 0, scripts: 0 };
  let lost = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const name = `reads:${Math.ceil(round / 2)}`;
    const { key, value, ttl, at } = await write(session, session.key(name), `v${round}`);
    const written = { key, value, ttl, at };
    const [read, peeked] = await Promise.all([
      session.ask(["GET", key], readers[0]),
      hasScripts ? session.ask(["EVAL", peekScript.source, 1, key, "peek"], readers[1]) : [value],
    ]);
    const isStale = [read !== value, !Array.isArray(peeked) || peeked[0] !== value] as const;
    if (isStale.includes(true)) await session.pause(pause);
    if (isStale.includes(true) && (await mistaken(session, [written])).length > 0) {
      lost += 1;
    } else {
      stale.GET += Number(isStale[0]);
      stale.scripts += Number(isStale[1]);
      if (round % 2 === 0) session.kept.push(written);
    }
  }
  session.lost += lost;
  const found = `stale: ${stale.GET} of ${rounds} by GET, ${stale.scripts} by scripts`;
  // What was not stored at all is another question.
  if (lost === rounds) return {};
  return { works: stale.GET + stale.scripts === 0, found };
}

/** Looks once more, after a pause, whether all is there that was written, and nothing that was deleted. */
export async function askKept(session: ConformanceSession): Promise<Seen> {
  const { kept, lost, seen } = session;
  if (kept.length + lost === 0) return {};
  await session.pause(pause);
  const wrong = kept.length > 0 ? await mistaken(session, kept) : [];
  const gone = lost + wrong.filter(({ value }) => value !== null).length;
  const back = wrong.filter(({ value }) => value === null).length;
  const found = [
    gone > 0 && `${gone} of ${counted(kept.length + lost, "write")} lost`,
    back > 0 && `${counted(back, "deleted key")} there again`,
  ];
  if (gone + back > 0) return fails(found.filter(Boolean).join(", "));
  // That of SET … NX, as a sample.
  if (seen.nx?.works) await mustBeStored(session, kept[0]!, "at the end");
  return { works: true, found: `${counted(kept.length, "key")}, once more at the end` };
}

export async function askEviction(session: ConformanceSession): Promise<Seen> {
  const policyOf = (text: unknown) => /maxmemory[-_]policy[:,]\s*([a-z-]+)/.exec(String(text))?.[1];
  const quietly = (command: readonly string[]) => session.ask(command).catch(() => undefined);
  const policy =
    policyOf(await quietly(["CONFIG", "GET", "maxmemory-policy"])) ??
    policyOf(await quietly(["INFO", "memory"]));
  return policy === undefined
    ? { found: "neither CONFIG GET nor INFO says it" }
    : { works: policy === "noeviction", found: policy };
}

export async function askWait(session: ConformanceSession): Promise<Seen> {
  const reply = await session.ask(["WAIT", 0, 100]);
  if (!Number.isSafeInteger(reply)) return fails("it does not return a number");
  return { works: true, found: `${reply} replicas acknowledge writes` };
}
