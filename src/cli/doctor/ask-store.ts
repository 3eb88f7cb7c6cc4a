import { peekScript } from "../../redis/peek.lua.ts";
import { counted } from "../text.ts";
import { probeTtl, type Seen, type Session } from "./session.ts";
import { write } from "./steps.ts";
import { mistaken, mustBeStored } from "./stored.ts";

// What a conformance check asks of the store: whether reads are fresh, writes stay, and what a failover or full memory does.

/** How often it writes and reads: two values at each key, because a cache knows nothing of the second one. */
const rounds = 10;

/** ms after which a replica has what was written, and a failover has lost it. */
const pause = 1_000;

/** Writes, and reads at once over two other connections: as a program reads, and as the library does. */
export async function askReads(session: Session): Promise<Seen> {
  const hasScripts = session.seen.eval?.works === true;
  const readers = [session.connection(), session.connection()] as const;
  const stale = { GET: 0, scripts: 0 };
  let lost = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const key = session.key(`reads:${Math.ceil(round / 2)}`);
    const written = await write(session, { key, value: `v${round}`, ttl: probeTtl });
    const [read, peeked] = await Promise.all([
      session.ask(["GET", key], readers[0]),
      hasScripts ? session.ask(["EVAL", peekScript.source, 1, key, "peek"], readers[1]) : [written.value],
    ]);
    const isStale = read !== written.value;
    const isPeekStale = !Array.isArray(peeked) || peeked[0] !== written.value;
    if (isStale || isPeekStale) {
      await session.pause(pause);
      if ((await mistaken(session, [written])).length > 0) {
        lost += 1;
        continue;
      }
    }
    stale.GET += Number(isStale);
    stale.scripts += Number(isPeekStale);
    if (round % 2 === 0) session.kept.push(written);
  }
  session.lost += lost;
  // What was not stored at all is another question.
  if (lost === rounds) return {};
  const found = `stale: ${stale.GET} of ${rounds} by GET, ${stale.scripts} by scripts`;
  return { works: stale.GET + stale.scripts === 0, found };
}

/** Looks once more, after a pause, whether all is there that was written, and nothing that was deleted. */
export async function askKept(session: Session): Promise<Seen> {
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
  if (gone + back > 0) return { works: false, found: found.filter(Boolean).join(", ") };
  // That of SET … NX, as a sample.
  if (seen.nx?.works) await mustBeStored(session, kept[0]!, "at the end");
  return { works: true, found: `${counted(kept.length, "key")}, once more at the end` };
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

export async function askWait(session: Session): Promise<Seen> {
  const reply = await session.ask(["WAIT", 0, 100]);
  if (!Number.isSafeInteger(reply)) return { works: false, found: "it does not return a number" };
  return { works: true, found: `${reply} replicas acknowledge writes` };
}
