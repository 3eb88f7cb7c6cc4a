import fc from "fast-check";
import { type Command, command, field, index, key, optional, some, value, word } from "./words.ts";

// Without `*`: the servers' clocks differ.
const newId = word(
  "1-1",
  "1-2",
  "2-1",
  "3",
  "3-*",
  "3-*",
  "5-*",
  "9-9",
  "0-0",
  "0-*",
  "x",
  "18446744073709551616-1",
);
const id = word("0", "1", "1-1", "1-2", "2-1", "3-0", "5", "9-9", "x", "1-x");
const interval = word("-", "+", "1", "(1-1", "2-1", "3", "(3", "(x", "(", "(0-0", "x");
const trim: fc.Arbitrary<Command> = fc
  .oneof(
    fc.tuple(word("MAXLEN", "maxlen"), some(word("="), 1), word(0, 1, 2, -1, "x")),
    fc.tuple(word("MINID"), some(word("="), 1), id),
    fc.constantFrom<Command>(["LIMIT", 1], ["NOMKSTREAM"], ["MAXLEN"]),
  )
  .map((words) => [...words].flat() as Command);

/** Commands on streams. */
export const streams: readonly fc.Arbitrary<Command>[] = [
  command("XADD", key, newId, field, value),
  command("XADD", key, newId, field, value, some(fc.tuple(field, value)), optional(field)),
  command("XADD", key, some(trim, 2), newId, field, value),
  command("XLEN", key),
  command("XRANGE", key, interval, interval, some(fc.tuple(word("COUNT", "foo"), index), 1)),
  command("XREVRANGE", key, interval, interval, some(fc.tuple(word("COUNT"), index), 1)),
  command("XRANGE", key, word("-"), word("+"), optional(word("COUNT"), word(1, 2))),
  command("XREVRANGE", key, word("+"), word("-"), optional(word("COUNT"), word(1, 2))),
  command("XDEL", key, id, some(id)),
  command("XTRIM", key, trim),
  command("XREAD", some(fc.tuple(word("COUNT"), index), 1), word("STREAMS"), key, id),
  command("XREAD", word("streams", "STREAMS", "foo"), key, key, id, word("$", "0", "1-1")),
  command("XREAD", word("STREAMS"), key, key, id),
];

const group = word("g", "g", "h");
const consumer = word("c", "d");
const counted = some(fc.tuple(word("COUNT"), word(1, 2, 0, -1, "x")), 1);

/** Commands on the groups of streams. */
export const groupsOfStreams: readonly fc.Arbitrary<Command>[] = [
  command("XADD", key, newId, field, value),
  command("XADD", key, newId, field, value),
  command("XDEL", key, id),
  command(
    "XGROUP",
    word("CREATE", "create"),
    key,
    group,
    word("0", "$", "1-1", "x"),
    some(word("MKSTREAM", "foo"), 1),
  ),
  command("XGROUP", word("SETID"), key, group, word("0", "$", "1-1", "x")),
  command("XGROUP", word("DESTROY"), key, group),
  command("XGROUP", word("CREATECONSUMER", "DELCONSUMER"), key, group, consumer),
  command("XGROUP", optional(word("NOSUCH", "CREATE"))),
  command(
    "XREADGROUP",
    word("GROUP"),
    group,
    consumer,
    counted,
    optional(word("NOACK")),
    word("STREAMS"),
    key,
    word(">"),
  ),
  command(
    "XREADGROUP",
    word("GROUP"),
    group,
    consumer,
    counted,
    word("STREAMS"),
    key,
    word(">", "0", "1-1", "$", "x"),
  ),
  command(
    "XREADGROUP",
    word("GROUP", "foo"),
    group,
    consumer,
    word("STREAMS"),
    key,
    key,
    word(">", "0"),
    word(">"),
  ),
  command("XACK", key, group, id, some(id)),
  command("XPENDING", key, group),
  command(
    "XCLAIM",
    key,
    group,
    consumer,
    word(0, 0, 1_000_000, "x"),
    id,
    id,
    some(word("FORCE", "JUSTID", "foo"), 2),
  ),
  command(
    "XAUTOCLAIM",
    key,
    group,
    consumer,
    word(0, 1_000_000),
    word("0", "(1-1", "-"),
    counted,
    word("JUSTID", "COUNT"),
  ),
  command("XAUTOCLAIM", key, group, consumer, word(0), word("0"), counted),
  command("XINFO", word("GROUPS"), key),
];
