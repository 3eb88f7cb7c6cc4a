import type { Command, CommandTable } from "../../../lock-server/src/engine/command.ts";
import { integer, syntaxError } from "../../../lock-server/src/engine/reply-error.ts";
import { Hash, SortedSet } from "../../../lock-server/src/engine/values.ts";

// What redlock-edge does not send, but who looks at a server: tests, this package's page, `redis-cli` by hand.

/** Which keys exist, and how all of them are deleted. */
export interface Keys {
  all(): readonly string[];
  clear(): void;
}

/** Whether a name matches a pattern of KEYS: `*` stands for anything, `?` for one character. */
function matches(pattern: string): (name: string) => boolean {
  const escaped = pattern.replaceAll(/[^\w*?]/g, "\\$&");
  const expression = new RegExp(`^${escaped.replaceAll("*", "[^]*").replaceAll("?", "[^]")}$`);
  return (name) => expression.test(name);
}

/** The place of a key in the walk of SCAN. It is a hash: a key that stays is found, whatever comes and goes meanwhile. */
function placeOf(key: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(key)) hash = Math.imul(hash ^ byte, 0x01000193);
  return 1 + (hash >>> 0);
}

/** Walks over all keys, by their places. */
const scan =
  (keys: Keys): Command =>
  (_, [cursor, ...options]) => {
    const given: Record<string, string> = { MATCH: "*", COUNT: "10" };
    for (let index = 0; index < options.length; index += 2) {
      const [name, value] = [options[index]!.toUpperCase(), options[index + 1]];
      if (!Object.hasOwn(given, name) || value === undefined) throw syntaxError();
      given[name] = value;
    }
    const [from, count] = [integer(cursor!), integer(given.COUNT!)];
    if (count < 1) throw syntaxError();
    const rest = keys.all().filter((key) => placeOf(key) >= from);
    rest.sort((one, other) => placeOf(one) - placeOf(other));
    const next = rest.slice(count).find((key) => placeOf(key) > placeOf(rest[count - 1]!));
    const step = next === undefined ? rest : rest.slice(0, rest.indexOf(next));
    return [String(next === undefined ? 0 : placeOf(next)), step.filter(matches(given.MATCH!))];
  };

const getRange: Command = ({ space }, [key, from, to]) => {
  const text = space.text(key!) ?? "";
  const place = (index: number) => Math.max(0, index < 0 ? text.length + index : index);
  return text.slice(place(integer(from!)), place(integer(to!)) + 1);
};

/** Adds one: how often something was executed is what tests of faults ask. */
const increment: Command = ({ space }, [key]) => {
  const next = integer(space.text(key!) ?? "0") + 1;
  space.put(key!, String(next));
  return next;
};

/** When a key expires, in ms since 1970: −1 never, −2 it does not exist. */
const expireTime: Command = ({ space }, [key]) => {
  const entry = space.entry(key!);
  return entry ? (entry.deadline ?? -1) : -2;
};

const persist: Command = ({ space }, [key]) => {
  const entry = space.entry(key!);
  if (!entry || entry.deadline === null) return 0;
  space.put(key!, entry.value, null);
  return 1;
};

/** Commands for tools. */
export function toolCommands(keys: Keys): CommandTable {
  return {
    KEYS: [(_, [pattern]) => keys.all().filter(matches(pattern!)), [1, 1]],
    SCAN: [scan(keys), [1, 5]],
    DBSIZE: [() => keys.all().length, [0, 0]],
    INCR: [increment, [1, 1]],
    GETRANGE: [getRange, [3, 3]],
    PEXPIRETIME: [expireTime, [1, 1]],
    PERSIST: [persist, [1, 1]],
    HGET: [({ space }, [key, field]) => space.collection(key!, Hash).get(field!) ?? null, [2, 2]],
    ZCARD: [({ space }, [key]) => space.collection(key!, SortedSet).size, [1, 1]],
    FLUSHALL: [
      () => {
        keys.clear();
        return "OK";
      },
      [0, 1],
    ],
  };
}
