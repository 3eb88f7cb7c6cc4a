import type { Command, CommandTable } from "./command.ts";
import { integer, ReplyError, syntaxError } from "./reply-error.ts";
import { Hash, SortedSet } from "./values.ts";

// Hashes and sorted sets, as far as the scripts of redlock-edge use them. As in Redis, an argument that is wrong is refused
// before a key of the wrong kind is.

const hset: Command = ({ space }, [key, ...pairs]) => {
  if (pairs.length % 2 > 0) throw new ReplyError("ERR wrong number of arguments for 'hset' command");
  const hash = space.collection(key!, Hash);
  const before = hash.size;
  for (let index = 0; index < pairs.length; index += 2) hash.set(pairs[index]!, pairs[index + 1]!);
  space.put(key!, hash);
  return hash.size - before;
};

const hmget: Command = ({ space }, [key, ...fields]) => {
  const hash = space.collection(key!, Hash);
  return fields.map((field) => hash.get(field) ?? null);
};

/** Removes fields or members. */
const remove =
  <Kind extends Hash | SortedSet>(kind: new (from?: Kind) => Kind): Command =>
  ({ space }, [key, ...names]) => {
    const collection = space.collection(key!, kind);
    const removed = names.filter((name) => collection.delete(name)).length;
    if (removed > 0) space.put(key!, collection);
    return removed;
  };

const hgetall: Command = ({ space }, [key]) => [...space.collection(key!, Hash)].flat();

/** Adds one member. `XX`: only changes one that is there; `GT`: never lowers a score. */
const zadd: Command = ({ space }, [key, how, score, member]) => {
  const option = how!.toUpperCase();
  if (option !== "XX" && option !== "GT") throw syntaxError();
  const next = integer(score!);
  const set = space.collection(key!, SortedSet);
  const known = set.get(member!);
  if (option === "XX" ? known === undefined : known !== undefined && known >= next) return 0;
  set.set(member!, next);
  space.put(key!, set);
  return Number(known === undefined);
};

const zscore: Command = ({ space }, [key, member]) => {
  const score = space.collection(key!, SortedSet).get(member!);
  return score === undefined ? null : String(score);
};

/** A text that sorts as its bytes do: UTF-16 puts what is beyond U+FFFF before U+E000 … U+FFFF, and UTF-8 does not. */
const sortable = (text: string) =>
  text.replace(/[\ud800-\uffff]/g, (unit) =>
    String.fromCharCode(unit.charCodeAt(0) + (unit < "\ue000" ? 0x2000 : -0x800)),
  );

/** Members by score, and those of one score by their bytes. */
const zrange: Command = ({ space }, [key, from, to, ...options]) => {
  const [option] = options;
  if (option !== undefined && option.toUpperCase() !== "WITHSCORES") throw syntaxError();
  const [first, last] = [integer(from!), integer(to!)];
  const all = [...space.collection(key!, SortedSet)].sort(
    ([name, score], [otherName, otherScore]) =>
      score - otherScore || (sortable(name) < sortable(otherName) ? -1 : 1),
  );
  const place = (index: number) => (index < 0 ? all.length + index : index);
  const chosen = all.slice(Math.max(0, place(first)), Math.max(0, place(last) + 1));
  return chosen.flatMap(([name, score]) => (option === undefined ? [name] : [name, String(score)]));
};

/** Whether a score is within two bounds. `(` excludes the lower one. */
function within(least: string, most: string): (score: number) => boolean {
  const boundOf = (word: string) =>
    word === "-inf" ? -Infinity : word === "+inf" ? Infinity : integer(word);
  const isOpen = least.startsWith("(");
  const [low, high] = [boundOf(isOpen ? least.slice(1) : least), boundOf(most)];
  return (score) => (isOpen ? score > low : score >= low) && score <= high;
}

const zcount: Command = ({ space }, [key, least, most]) => {
  const isChosen = within(least!, most!);
  return [...space.collection(key!, SortedSet).values()].filter(isChosen).length;
};

const zremrangebyscore: Command = ({ space }, [key, least, most]) => {
  const isChosen = within(least!, most!);
  const set = space.collection(key!, SortedSet);
  const chosen = [...set].filter(([, score]) => isChosen(score));
  for (const [member] of chosen) set.delete(member);
  if (chosen.length > 0) space.put(key!, set);
  return chosen.length;
};

export const collectionCommands: CommandTable = {
  HSET: [hset, [3, Infinity]],
  HMGET: [hmget, [2, Infinity]],
  HDEL: [remove(Hash), [2, Infinity]],
  HGETALL: [hgetall, [1, 1]],
  ZADD: [zadd, [4, 4]],
  ZREM: [remove(SortedSet), [2, Infinity]],
  ZSCORE: [zscore, [2, 2]],
  ZRANGE: [zrange, [3, 4]],
  ZCOUNT: [zcount, [3, 3]],
  ZREMRANGEBYSCORE: [zremrangebyscore, [3, 3]],
};
