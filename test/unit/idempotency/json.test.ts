import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { jsonOf } from "../../../src/idempotency/json.ts";

class Point {
  readonly x = 1;
  move = () => this.x;
}
class Hidden {
  readonly #secret = 1;
  read() {
    return this.#secret;
  }
}

describe("the JSON of a result", () => {
  test.each<[what: string, value: unknown, text: string]>([
    ["a Date", new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ["methods and symbol keys", { a: 1, b: () => 1, [Symbol("c")]: 2 }, '{"a":1}'],
    ["an instance of a class", new Point(), '{"x":1}'],
    ["a Map with a toJSON", Object.assign(new Map(), { toJSON: () => "map" }), '"map"'],
    ["an object without a prototype", Object.create(null), "{}"],
    ["what is empty", [{}, [], "", null, false], '[{},[],"",null,false]'],
    ["an object of another realm", runInNewContext("[{}]"), "[{}]"],
  ])("is written for %s, differently", (_, value, text) => {
    expect(jsonOf(value)).toBe(text);
  });

  test.each<[value: unknown, where: string]>([
    [Number.NaN, " is NaN"],
    [{ a: [0, -Infinity] }, ".a[1] is -Infinity"],
    [{ a: { b: new Map() } }, ".a.b is of class Map"],
    [
      new (class Tags extends Set {
        readonly kind = "tags";
      })(),
      " is of class Tags",
    ],
    [[Object.assign(new Error("no"), { status: 500 })], "[0] is of class Error"],
    [new Uint8Array(2), " is of class Uint8Array"],
    [Buffer.from("ab"), " is of class Buffer"],
    [new ArrayBuffer(1), " is of class ArrayBuffer"],
    [/a/, " is of class RegExp"],
    [Promise.resolve(1), " is of class Promise"],
    [new Headers({ a: "b" }), " is of class Headers"],
    [new Hidden(), " is of class Hidden"],
    [new (class {})(), " is of class (no name)"],
    [runInNewContext("new Map()"), " is of class Map"],
    [[() => 1], "[0] is a function"],
    [{ a: Symbol("s") }, ".a is a symbol"],
  ])("is refused for %o: JSON would lose a part of it", (value, where) => {
    expect(() => jsonOf(value)).toThrow(
      new TypeError(`the result${where}, which JSON would lose: return plain data, or pass a codec`),
    );
  });
});
