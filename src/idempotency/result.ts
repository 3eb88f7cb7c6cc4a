import { checkType, checkWellFormed } from "../check.ts";
import { type CompleteRecord, completeText, type UnstoredReason } from "./record.ts";

/** How results become text, of whole characters, and text results again. */
export interface Codec<Value> {
  encode(value: Value): string;
  decode(text: string): Value;
}

/** The default codec. `undefined` has no JSON; it is stored as an empty text. */
export const json: Codec<never> = {
  encode(value: unknown) {
    if (value === undefined) return "";
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw new TypeError(`the result has no JSON: it is a ${typeof value}`);
    return text;
  },
  decode: (text: string) => (text === "" ? undefined : JSON.parse(text)) as never,
};

/** What JSON can hold and gives back as it was. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

type Callable = (...args: never) => unknown;

/** What JSON refuses, drops, or turns into something else: `Date` and the like have a `toJSON`. */
type NotJson =
  | bigint
  | symbol
  | Callable
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | ArrayBuffer
  | ArrayBufferView
  | RegExp
  | { toJSON(...args: never): unknown };

/** The same type if its values come back from JSON as they were, as far as types tell; looks `Deeper` levels deep. */
type FromJson<Value, Deeper extends readonly unknown[]> = Value extends
  | string
  | number
  | boolean
  | null
  | undefined
  ? Value
  : Value extends NotJson
    ? never
    : [Value, Deeper] extends [object, readonly [unknown, ...infer Rest]]
      ? { [Name in keyof Value]: Value[Name] extends Callable ? Value[Name] : FromJson<Value[Name], Rest> }
      : Value;

/**
 * `unknown` if JSON gives results of this type back as they were, else a type that no handler has. It looks at the
 * value and two levels of properties. Interfaces and classes are accepted; their methods are not stored, nor is
 * `undefined` in them, and `NaN` and `Infinity` become `null`. A generic function that passes a handler on needs
 * the same type, or a codec.
 *
 * @example
 * function once<Value>(key: string, work: (() => Promise<Value>) & JsonResult<Value>) {
 *   return idempotency.run(key, work);
 * }
 */
export type JsonResult<Value> = [Value] extends [FromJson<Value, [1, 1]>]
  ? unknown
  : { readonly "this result needs a codec, because JSON does not give it back as it was": never };

/** What of a result is stored: its text, or why there is none. */
export interface StoredResult extends Pick<CompleteRecord, "result" | "unstored"> {
  /** What the codec threw, or what is wrong with what it returned. */
  readonly error?: unknown;
}

/** A result as text. The effect has happened: what cannot be encoded is stored as that, and never run again. */
export function encodeResult<Value>(codec: Pick<Codec<Value>, "encode">, value: Value): StoredResult {
  try {
    // Anything else would be stored as a text that the codec never made.
    const text = checkType("codec.encode()", codec.encode(value), "string");
    return { result: checkWellFormed("codec.encode()", text) };
  } catch (error) {
    return { unstored: "unserializable", error };
  }
}

/** A complete record as text: with its result if that takes at most `most` bytes, else with the reason. */
export function recordOfResult(
  head: Pick<CompleteRecord, "token" | "completedAt" | "fingerprint">,
  { result, unstored }: StoredResult,
  most: number,
): { readonly text: string; readonly unstored: UnstoredReason | undefined } {
  const text = completeText({ ...head, result, unstored });
  if (unstored || isWithin(text, most)) return { text, unstored };
  return { text: completeText({ ...head, unstored: "too-large" }), unstored: "too-large" };
}

/** Whether a text takes at most `most` bytes in a request: in UTF-8, as a string of JSON. */
function isWithin(text: string, most: number): boolean {
  // Each character takes a byte at least: what is far too large need not be copied to be measured.
  return text.length <= most && new TextEncoder().encode(JSON.stringify(text)).length <= most;
}
