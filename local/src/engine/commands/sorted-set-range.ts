import { type Command, type Commands, range, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, parseFloatStrict } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";
import { list, type Member, removeMembers, sorted } from "./sorted-set.ts";

/** What the two ends of a range are: ranks, scores, or members. */
type By = "rank" | "score" | "lex";

/** What the name of a command says, so that it does not take the option for it. */
interface Form {
  readonly by?: By;
  readonly reverse?: boolean;
  /** It stores the members, and so has no reply with scores. */
  readonly stores?: boolean;
}

/** Commands on ranges of sorted sets. */
export const sortedSetRangeCommands: Commands = {
  ZRANGE: rangeCommand({}),
  ZREVRANGE: rangeCommand({ by: "rank", reverse: true }),
  ZRANGEBYSCORE: rangeCommand({ by: "score", reverse: false }),
  ZREVRANGEBYSCORE: rangeCommand({ by: "score", reverse: true }),
  ZRANGEBYLEX: rangeCommand({ by: "lex", reverse: false }),
  ZREVRANGEBYLEX: rangeCommand({ by: "lex", reverse: true }),
  ZRANGESTORE: {
    arity: -5,
    keys: [0, 1, 1],
    write: true,
    run(space, [to, ...words]) {
      const { members } = select(space, words, { stores: true });
      return space.store(to!, "zset", new Map(members));
    },
  },
  ZCOUNT: countCommand("score"),
  ZLEXCOUNT: countCommand("lex"),
  ZREMRANGEBYRANK: removeCommand("rank"),
  ZREMRANGEBYSCORE: removeCommand("score"),
  ZREMRANGEBYLEX: removeCommand("lex"),
};

function rangeCommand(form: Form): Command {
  return reads(-4, (space, words) => {
    const { members, withScores } = select(space, words, form);
    return list(members, withScores);
  });
}

function countCommand(by: By): Command {
  return reads(4, (space, [key, start, stop]) => inside(by, [start!, stop!])(sorted(space, key!)).length);
}

function removeCommand(by: By): Command {
  return writes(4, (space, [key, start, stop]) => {
    const choose = inside(by, [start!, stop!]);
    return removeMembers(space, key!, choose(sorted(space, key!)));
  });
}

/** key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES] */
function select(
  space: Keyspace,
  [key, start, stop, ...words]: readonly string[],
  form: Form,
): { readonly members: readonly Member[]; readonly withScores: boolean } {
  const { by, reverse, withScores, limit } = readOptions(words, form);
  // For Redis, a count of -1 means no limit.
  if (limit && limit[1] !== -1 && by === "rank") {
    throw new ReplyError(
      "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
    );
  }
  if (withScores && by === "lex") {
    throw new ReplyError("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  }
  // The ends of a range of ranks are in the order of the reply, others from the greatest.
  const swapped = reverse && by !== "rank";
  const choose = inside(by, swapped ? [stop!, start!] : [start!, stop!], reverse);
  const all = sorted(space, key!);
  const found = choose(reverse ? all.reverse() : all);
  return { members: by === "rank" ? found : limited(found, limit), withScores };
}

interface RangeOptions {
  readonly by: By;
  readonly reverse: boolean;
  readonly withScores: boolean;
  readonly limit: readonly [offset: number, count: number] | undefined;
}

function readOptions(words: readonly string[], form: Form): RangeOptions {
  let { by, reverse } = form;
  let withScores = false;
  let limit: RangeOptions["limit"];
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "WITHSCORES" && !form.stores) {
      withScores = true;
    } else if (option === "LIMIT" && position + 2 < words.length) {
      limit = [index(words[++position]!), index(words[++position]!)];
    } else if ((option === "BYSCORE" || option === "BYLEX") && by === undefined) {
      by = option === "BYLEX" ? "lex" : "score";
    } else if (option === "REV" && reverse === undefined) {
      reverse = true;
    } else {
      throw syntaxError();
    }
  }
  return { by: by ?? "rank", reverse: reverse ?? false, withScores, limit };
}

function limited(members: readonly Member[], limit: RangeOptions["limit"]): readonly Member[] {
  if (!limit) return members;
  const [offset, count] = limit;
  if (offset < 0) return [];
  return members.slice(offset, count < 0 ? undefined : offset + count);
}

type Choose = (members: readonly Member[]) => readonly Member[];

/**
 * A function that chooses the members of a range, which are given in the order of the reply. Throws a `ReplyError` if the
 * ends cannot be parsed.
 */
function inside(by: By, [start, stop]: readonly [string, string], reverse = false): Choose {
  if (by === "lex") return insideLex(start, stop, reverse);
  if (by === "score") {
    const within = betweenScores(start, stop);
    return (members) => members.filter(within);
  }
  const [from, to] = [index(start), index(stop)];
  return (members) => members.slice(...range(from, to, members.length));
}

/** `1` includes 1, `(1` does not; `-inf`, `+inf`. */
function betweenScores(least: string, most: string): (member: Member) => boolean {
  const [low, aboveLow] = readScoreBound(least);
  const [high, belowHigh] = readScoreBound(most);
  return ([, score]) => (aboveLow ? score > low : score >= low) && (belowHigh ? score < high : score <= high);
}

function readScoreBound(word: string): [bound: number, exclusive: boolean] {
  const exclusive = word.startsWith("(");
  // C's strtod reads 0 in an empty string, and Redis does not mind here.
  const bound = parseFloatStrict((exclusive ? word.slice(1) : word) || "0");
  if (bound === undefined) throw new ReplyError("ERR min or max is not a float");
  return [bound, exclusive];
}

/** `[a` includes a, `(a` does not; `-` and `+` are before and after all members. */
function insideLex(least: string, most: string, reverse: boolean): Choose {
  for (const word of [least, most]) {
    if (!/^(?:[-+]$|[[(])/.test(word)) throw new ReplyError("ERR min or max not valid string range item");
  }
  const [low, high] = [least.slice(1), most.slice(1)];
  const isAbove = ([member]: Member) =>
    least === "-" || (least !== "+" && (least.startsWith("[") ? member >= low : member > low));
  const isBelow = ([member]: Member) =>
    most === "+" || (most !== "-" && (most.startsWith("[") ? member <= high : member < high));
  const [enters, stays] = reverse ? [isBelow, isAbove] : [isAbove, isBelow];
  // A walk, as in Redis, and no filter: with different scores the members are not in the order of their bytes.
  return (members) => {
    const [first, last] = [members[0], members.at(-1)];
    if (!first || !last || !stays(first) || !enters(last)) return [];
    const rest = members.slice(members.findIndex(enters));
    const end = rest.findIndex((member) => !stays(member));
    return end < 0 ? rest : rest.slice(0, end);
  };
}
