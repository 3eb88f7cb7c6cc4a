import { type Commands, writes } from "./command.ts";
import { parseInteger } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";
import { drop } from "./stream.ts";
import { parseId } from "./stream-id.ts";
import type { Stream } from "./stream-value.ts";

/** Commands that delete entries of a stream together with what groups know of them. Upstash has them, and Redis from 8.2 on. */
export const streamDeleteCommands: Commands = {
  // XDELEX key [KEEPREF | DELREF | ACKED] IDS count id …
  XDELEX: writes(-5, (space, [key, ...words]) => {
    const { references, ids } = readIds(words);
    const stream = space.value(key!, "stream");
    return ids.map((id) =>
      stream?.entries.some((entry) => entry.id === id) ? remove(stream, id, references) : -1,
    );
  }),
  // XACKDEL key group [KEEPREF | DELREF | ACKED] IDS count id …
  XACKDEL: writes(-6, (space, [key, name, ...words]) => {
    const { references, ids } = readIds(words);
    const stream = space.value(key!, "stream");
    const group = stream?.groups.get(name!);
    return ids.map((id) => (stream && group?.pending.delete(id) ? remove(stream, id, references) : -1));
  }),
};

/** What becomes of an entry's references in groups: they stay, they are deleted, or they keep the entry. */
type References = "KEEPREF" | "DELREF" | "ACKED";

function readIds(words: readonly string[]): {
  readonly references: References;
  readonly ids: readonly bigint[];
} {
  const option = words[0]!.toUpperCase();
  const references = option === "KEEPREF" || option === "DELREF" || option === "ACKED" ? option : undefined;
  const [name, count, ...ids] = references ? words.slice(1) : words;
  if (name?.toUpperCase() !== "IDS") throw syntaxError();
  const given = parseInteger(count ?? "");
  if (given === undefined || given < 1n) throw new ReplyError("ERR Number of IDs must be a positive integer");
  if (Number(given) !== ids.length) {
    throw new ReplyError("ERR The `numids` parameter must match the number of arguments");
  }
  return { references: references ?? "KEEPREF", ids: ids.map((id) => parseId(id)) };
}

/** Deletes an entry; 2 if it stays because a group has still to read or to acknowledge it. */
function remove(stream: Stream, id: bigint, references: References): number {
  const groups = [...stream.groups.values()];
  const isReferenced = groups.some((group) => group.lastId < id || group.pending.has(id));
  if (references === "ACKED" && isReferenced) return 2;
  if (references === "DELREF") for (const group of groups) group.pending.delete(id);
  drop(stream, new Set([id]));
  return 1;
}
