import { checkType, checkWellFormed } from "../check/check.ts";
import { jsonOf } from "./json.ts";
import { type RunRecord, recordText } from "./record.ts";

/**
 * Converts results to text and back.
 *
 * @example
 * const bookings: Codec<{ at: Date; amount: bigint }> = {
 *   encode: ({ at, amount }) => JSON.stringify([at.getTime(), amount.toString()]),
 *   decode(text) {
 *     const [at, amount] = JSON.parse(text);
 *     return { at: new Date(at), amount: BigInt(amount) };
 *   },
 * };
 */
export interface Codec<Value> {
  /** Returns well-formed text: without unpaired surrogates. */
  encode(value: Value): string;
  /**
   * Returns what `encode` was given: every caller gets what this returns, the first one too. If it throws for the first
   * one, the result counts as one that cannot be stored. Later, the call rejects with `RecordCorruptError`.
   */
  decode(text: string): Value;
}

/** JSON as a codec of every type. */
interface JsonCodec {
  encode(value: unknown): string;
  decode<Value>(text: string): Value;
}

/** The default codec. `undefined` has no JSON, so it is stored as an empty text. */
export const json: JsonCodec = {
  encode: (value) => (value === undefined ? "" : jsonOf(value)),
  decode: (text) => (text === "" ? undefined : JSON.parse(text)),
};

/** Values that JSON returns as they were. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

type Callable = (...args: never) => unknown;

/** Types that JSON refuses, leaves out or changes: `Date` and similar classes have a `toJSON`. */
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

/** The type itself if JSON returns its values as they were, as far as types show. It checks `Deeper` levels. */
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
 * `unknown` if JSON returns results of this type as they were, else a type that no handler has. Checks the value and two levels
 * of properties. Interfaces and classes are accepted, but their methods are not stored, nor is `undefined` in them, and a
 * result with `NaN` or `Infinity` is not stored. A generic function that takes a handler needs this type, or a codec.
 *
 * @example
 * function once<Value>(key: string, work: (() => Promise<Value>) & JsonResult<Value>) {
 *   return idempotency.run(key, work);
 * }
 */
export type JsonResult<Value> = [Value] extends [FromJson<Value, [1, 1]>]
  ? unknown
  : { readonly "this result needs a codec, because JSON does not return it as it was": never };

/** A result as it is stored: its text, or the reason why there is none. */
export interface StoredResult<Value> extends Pick<RunRecord, "result" | "unstored"> {
  /** What every caller gets: the result as it is decoded, or the handler's own result if it cannot be stored. */
  readonly value: Value;
  /** The error that the codec threw, or that describes its result. */
  readonly error?: unknown;
}

/**
 * Encodes a result. The effect has happened: a result that cannot be encoded is stored as a reason, so that the handler
 * does not run again.
 */
export function encodeResult<Value>(codec: Codec<Value>, value: Value): StoredResult<Value> {
  try {
    // Any other type would be stored as a text that the codec did not return.
    const text = checkType("codec.encode()", codec.encode(value), "string");
    return { result: checkWellFormed("codec.encode()", text), value: codec.decode(text) };
  } catch (error) {
    return { unstored: "unserializable", value, error };
  }
}

/** A complete record: with its result if it takes at most `most` bytes, else with the reason. */
export function withinBytes(record: RunRecord, most: number): RunRecord {
  if (record.unstored || isWithin(recordText(record), most)) return record;
  return { ...record, result: undefined, unstored: "too-large" };
}

/** Whether a text takes at most `most` bytes in a request: in UTF-8, as a string of JSON. */
function isWithin(text: string, most: number): boolean {
  // Each character takes at least one byte: a text that is far too large need not be copied to be measured.
  return text.length <= most && new TextEncoder().encode(JSON.stringify(text)).length <= most;
}
