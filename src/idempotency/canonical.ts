import {
  checkOptions,
  checkText,
  checkWellFormed,
  isWellFormed,
  type Schema,
  wrongType,
} from "../check/check.ts";
import { sha256Hex } from "../runtime/bytes.ts";
import { hasJson, lossInItself } from "./json.ts";

/** Options of {@link canonicalKey}. */
export interface CanonicalOptions {
  /**
   * Members that do not count, because they differ in each attempt. A dot goes into nested objects and arrays:
   * `items.seenAt`. Default: none.
   */
  readonly exclude?: readonly string[] | undefined;
}

const schema: Schema<CanonicalOptions> = {
  exclude(name, paths: unknown) {
    if (!Array.isArray(paths)) throw wrongType(name, paths, "an array of names");
    for (const path of paths) checkText(`a name of ${name}`, path as string, Infinity);
  },
};

export function checkCanonicalOptions(what: string, options: CanonicalOptions): CanonicalOptions {
  return checkOptions(what, options, schema);
}

/**
 * A key for a call, made of the called function's name and its arguments: equal JSON has one key, regardless of the
 * order of its members. It is the SHA-256 of the arguments by RFC 8785, so that other languages can make equal keys.
 * Give ids above 2^53 as text, because `JSON.parse` rounds them.
 *
 * @param name of the called function, 1 … 190 characters
 * @param args plain data. Members that are undefined are left out
 * @returns name, colon and 64 hex digits: a key, or a fingerprint
 * @throws TypeError that names a value which JSON cannot say, such as `NaN` or a `Map`
 * @throws RangeError when a text contains half of a surrogate pair, or the name has a wrong length
 *
 * @example
 * const key = await canonicalKey("refund", { order: "A 17", cents: 500, note }, { exclude: ["note"] });
 * await idempotency.run(key, { scope: ["agent", run] }, () => refund("A 17", 500));
 */
export async function canonicalKey(
  name: string,
  args: unknown,
  options: CanonicalOptions = {},
): Promise<string> {
  checkText("name", name, 190);
  const { exclude } = checkCanonicalOptions("canonicalKey", options);
  const text = canonicalJson("args", args, exclude);
  return `${name}:${await sha256Hex(new TextEncoder().encode(text))}`;
}

/**
 * The JSON Canonicalization Scheme, RFC 8785.
 *
 * @throws TypeError | RangeError as {@link canonicalKey}
 */
export function canonicalJson(root: string, value: unknown, exclude: readonly string[] = []): string {
  const above = new Set<object>();

  // `place` is called for errors only: in a deeply nested body, the texts of all would take minutes.
  function textOf(given: unknown, excluded: readonly string[], place: () => string): string | undefined {
    const isReplaced = hasJson(given) && !ArrayBuffer.isView(given);
    const plain: unknown = isReplaced ? given.toJSON() : given;
    const loss = lossInItself(plain);
    if (loss) throw new TypeError(`${place()}${loss}, which JSON cannot say`);
    if (typeof plain === "string" && !isWellFormed(plain)) checkWellFormed(place(), plain);
    if (typeof plain !== "object" || plain === null) return JSON.stringify(plain);
    if (above.has(plain)) throw new TypeError(`${place()} contains itself, which JSON cannot say`);
    above.add(plain);
    const text = Array.isArray(plain)
      ? `[${itemsOf(plain, excluded, place)}]`
      : `{${membersOf(plain, excluded, place)}}`;
    above.delete(plain);
    return text;
  }

  // Not by map, which leaves holes out.
  const itemsOf = (items: readonly unknown[], excluded: readonly string[], place: () => string) =>
    Array.from(items, (item, at) => textOf(item, excluded, () => `${place()}[${at}]`) ?? "null");

  const membersOf = (members: object, excluded: readonly string[], place: () => string) =>
    Object.keys(members)
      .filter((name) => !excluded.includes(name))
      .sort()
      .flatMap((name) => {
        if (!isWellFormed(name)) checkWellFormed(`a name in ${place()}`, name);
        const within = excluded.flatMap((path) =>
          path.startsWith(`${name}.`) ? [path.slice(name.length + 1)] : [],
        );
        const member = (members as Readonly<Record<string, unknown>>)[name];
        const text = textOf(member, within, () => `${place()}.${name}`);
        return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
      });

  const text = textOf(value, exclude, () => root);
  if (text === undefined) throw new TypeError(`${root} is undefined, which JSON cannot say`);
  return text;
}
