import { type Command, type Commands, countedKeys } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { integer, parseFloatStrict } from "./numbers.ts";
import { notNegative } from "./options.ts";
import { ReplyError, syntaxError } from "./reply.ts";
import { inOrder, list, type Member } from "./sorted-set.ts";

type Scores = ReadonlyMap<string, number>;

/** How a command combines its sets. */
interface Operation {
  /** Whether it takes WEIGHTS and AGGREGATE. */
  readonly weighted: boolean;
  combine(sets: readonly Scores[], aggregate: (left: number, right: number) => number): Scores;
}

const union: Operation = {
  weighted: true,
  combine(sets, aggregate) {
    const result = new Map<string, number>();
    for (const [member, score] of sets.flatMap((set) => [...set])) {
      const before = result.get(member);
      result.set(member, before === undefined ? score : aggregate(before, score));
    }
    return result;
  },
};

const intersection: Operation = {
  weighted: true,
  combine(sets, aggregate) {
    const all = union.combine(sets, aggregate);
    return new Map([...all].filter(([member]) => sets.every((set) => set.has(member))));
  },
};

const difference: Operation = {
  weighted: false,
  combine: ([first, ...others]) =>
    new Map([...first!].filter(([member]) => !others.some((other) => other.has(member)))),
};

/** Commands on several sorted sets, or sets, whose members count as if they had the score 1. */
export const sortedSetAlgebraCommands: Commands = {
  ZUNION: combined("zunion", union),
  ZINTER: combined("zinter", intersection),
  ZDIFF: combined("zdiff", difference),
  ZUNIONSTORE: stored("zunionstore", union),
  ZINTERSTORE: stored("zinterstore", intersection),
  ZDIFFSTORE: stored("zdiffstore", difference),
  ZINTERCARD: {
    arity: -3,
    keys: countedKeys(0),
    run(space, words) {
      const { sets, rest } = readSets(space, "zintercard", words);
      let limit = 0;
      for (let position = 0; position < rest.length; position += 2) {
        const value = rest[position + 1];
        if (rest[position]!.toUpperCase() !== "LIMIT" || value === undefined) throw syntaxError();
        limit = notNegative("LIMIT", value);
      }
      const { size } = intersection.combine(sets, add);
      return limit === 0 ? size : Math.min(limit, size);
    },
  },
};

function combined(name: string, operation: Operation): Command {
  return {
    arity: -3,
    keys: countedKeys(0),
    run(space, words) {
      const { sets, rest } = readSets(space, name, words);
      const options = readOptions(rest, sets.length, operation, true);
      return list(combine(sets, operation, options), options.withScores);
    },
  };
}

function stored(name: string, operation: Operation): Command {
  return {
    arity: -4,
    keys: countedKeys(1),
    write: true,
    run(space, [to, ...words]) {
      const { sets, rest } = readSets(space, name, words);
      const options = readOptions(rest, sets.length, operation, false);
      return space.store(to!, "zset", new Map(combine(sets, operation, options)));
    },
  };
}

function combine(
  sets: readonly Scores[],
  operation: Operation,
  { weights, aggregate }: CombineOptions,
): Member[] {
  const weighted = sets.map(
    (set, position) =>
      new Map([...set].map(([member, score]) => [member, numberOr0(weights[position]! * score)])),
  );
  return inOrder(operation.combine(operation.weighted ? weighted : sets, aggregate));
}

/** Parses numkeys key …, and reads the keys. */
function readSets(
  space: Keyspace,
  name: string,
  [count, ...words]: readonly string[],
): { readonly sets: readonly Scores[]; readonly rest: readonly string[] } {
  const keyCount = integer(count!);
  if (keyCount < 1n) throw new ReplyError(`ERR at least 1 input key is needed for '${name}' command`);
  if (keyCount > words.length) throw syntaxError();
  const sets = words.slice(0, Number(keyCount)).map((key) => {
    if (space.entry(key)?.type !== "set") return space.value(key, "zset") ?? new Map<string, number>();
    return new Map([...space.value(key, "set")!].map((member) => [member, 1]));
  });
  return { sets, rest: words.slice(sets.length) };
}

interface CombineOptions {
  readonly weights: readonly number[];
  readonly aggregate: (left: number, right: number) => number;
  readonly withScores: boolean;
}

/** [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES] */
function readOptions(
  words: readonly string[],
  count: number,
  { weighted }: Operation,
  replies: boolean,
): CombineOptions {
  let weights: readonly number[] = Array.from({ length: count }, () => 1);
  let aggregate: CombineOptions["aggregate"] | undefined = add;
  let withScores = false;
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "WITHSCORES" && replies) {
      withScores = true;
    } else if (option === "WEIGHTS" && weighted && position + count < words.length) {
      weights = words.slice(position + 1, position + 1 + count).map(readWeight);
      position += count;
    } else if (option === "AGGREGATE" && weighted) {
      aggregate = aggregates[(words[++position] ?? "").toUpperCase()];
      if (!aggregate) throw syntaxError();
    } else {
      throw syntaxError();
    }
  }
  return { weights, aggregate, withScores };
}

const aggregates: Readonly<Record<string, CombineOptions["aggregate"]>> = {
  SUM: add,
  MIN: Math.min,
  MAX: Math.max,
};

/** Infinities of both signs add up to 0. */
function add(left: number, right: number): number {
  return numberOr0(left + right);
}

function numberOr0(value: number): number {
  return Number.isNaN(value) ? 0 : value;
}

function readWeight(word: string): number {
  const weight = parseFloatStrict(word);
  if (weight === undefined) throw new ReplyError("ERR weight value is not a float");
  return weight;
}
