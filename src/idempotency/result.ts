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
  /** Must not return unpaired surrogates. */
  encode(value: Value): string;
  /**
   * Every caller gets its result, including the first. If it throws for the first caller, the result is not stored.
   * Later, the call rejects with `RecordCorruptError`.
   */
  decode(text: string): Value;
}

interface JsonCodec {
  encode(value: unknown): string;
  decode<Value>(text: string): Value;
}

/** `undefined` has no JSON, so it is stored as an empty text. */
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

/** JSON refuses, leaves out or changes them: `Date` and similar classes have a `toJSON`. */
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

/** It checks `Deeper` levels. */
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
 * A type that no handler has, if JSON does not return results as they were. It checks the value and two levels of
 * properties, but not methods, `undefined`, `NaN` and `Infinity`. A generic function that takes a handler needs this
 * type, or a codec.
 *
 * @example
 * function once<Value>(key: string, work: (() => Promise<Value>) & JsonResult<Value>) {
 *   return idempotency.run(key, work);
 * }
 */
export type JsonResult<Value> = [Value] extends [FromJson<Value, [1, 1]>]
  ? unknown
  : { readonly "this result needs a codec, because JSON does not return it as it was": never };

export interface StoredResult<Value> extends Pick<RunRecord, "result" | "unstored"> {
  /** As decoded, or the handler's own result if it cannot be stored. */
  readonly value: Value;
  readonly error?: unknown;
}

/** The effect has happened, so the handler must not run again. */
export function encodeResult<Value>(codec: Codec<Value>, value: Value): StoredResult<Value> {
  try {
    // Another type would be stored as a different text.
    const text = checkType("codec.encode()", codec.encode(value), "string");
    return { result: checkWellFormed("codec.encode()", text), value: codec.decode(text) };
  } catch (error) {
    return { unstored: "unserializable", value, error };
  }
}

export function withinBytes(record: RunRecord, most: number): RunRecord {
  if (record.unstored || isWithin(recordText(record), most)) return record;
  return { ...record, result: undefined, unstored: "too-large" };
}

/** In UTF-8, as a string of JSON. */
function isWithin(text: string, most: number): boolean {
  // A text that is far too large need not be copied to be measured.
  return text.length <= most && new TextEncoder().encode(JSON.stringify(text)).length <= most;
}
