import { describe, expect, it } from "vitest";
import { explain, linearizable, type Operation } from "./checker.ts";
import {
  type FencedInput,
  type FencedOutput,
  fencedRegisterModel,
  type HoldInput,
  type ResultInput,
  resultModel,
  semaphoreModel,
} from "./models.ts";
import { span } from "./operations.ts";

type Holding = Operation<HoldInput, boolean>;

const acquire = (holder: string, invoked: number, returned: number, fence?: number): Holding =>
  span(invoked, returned, { input: { kind: "acquire", holder, fence }, output: true });
const release = (holder: string, invoked: number, returned: number): Holding =>
  span(invoked, returned, { input: { kind: "release", holder }, output: true });
const end = (holder: string, from: number): Holding =>
  span(from, Infinity, { input: { kind: "end", holder } });

// history.test.ts has what calls of the library become.
describe("semaphoreModel", () => {
  const [a, b] = [acquire("a", 0, 1), acquire("b", 0, 1)];
  const good = {
    "as many holders as permits": [a, b, release("a", 2, 3), acquire("c", 4, 5)],
    "a holder after another's end": [a, b, end("b", 5), acquire("c", 4, 6)],
    "fences that increase": [acquire("a", 0, 1, 5), acquire("b", 2, 3, 9)],
    "concurrent grants in either order": [acquire("a", 0, 3, 9), acquire("b", 1, 2, 5)],
  };
  const bad = {
    "one holder more than permits": [a, b, acquire("c", 2, 3), release("a", 4, 5)],
    "two new holders for one release": [a, b, release("a", 2, 3), acquire("c", 4, 5), acquire("d", 4, 5)],
    "a release that freed what another had taken over": [
      a,
      b,
      end("a", 5),
      acquire("c", 6, 7),
      release("a", 8, 9),
    ],
    "two releases that both freed it": [a, release("a", 2, 3), release("a", 4, 5)],
    "a fence drawn twice": [acquire("a", 0, 1, 5), acquire("b", 2, 3, 5)],
    "a fence drawn twice at once": [acquire("a", 0, 3, 5), acquire("b", 0, 3, 5)],
    "a fence smaller than an earlier one": [acquire("a", 0, 1, 9), acquire("b", 2, 3, 5)],
    "a fence smaller than that of the holder before": [
      acquire("a", 0, 1, 9),
      acquire("b", 0, 2),
      release("a", 4, 5),
      acquire("c", 0, 6, 5),
    ],
  };
  table(semaphoreModel(2), good, bad);
});

describe("fencedRegisterModel", () => {
  type Guarded = Operation<FencedInput, FencedOutput>;
  const open = (fence: number, at: number, output?: FencedOutput): Guarded =>
    span(at, output ? at + 1 : Infinity, { input: { kind: "open", fence }, output });
  const write = (fence: number, value: number, at: number, accepted?: boolean): Guarded => {
    const output = accepted === undefined ? undefined : { accepted };
    return span(at, output ? at + 1 : Infinity, { input: { kind: "write", fence, value }, output });
  };
  const withValue = (value: number): FencedOutput => ({ accepted: true, value });
  const read = (value: number, at: number): Guarded => open(9, at, withValue(value));

  const good: Record<string, Guarded[]> = {
    "a holder that opens, reads and writes": [
      open(1, 0, withValue(0)),
      write(1, 7, 2, true),
      open(2, 4, withValue(7)),
      read(7, 6),
    ],
    "several writes with one fence": [write(1, 7, 0, true), write(1, 8, 2, true), read(8, 4)],
    "an old fence refused": [
      open(2, 0, withValue(0)),
      write(1, 7, 2, false),
      open(1, 4, { accepted: false }),
      read(0, 6),
    ],
    "an open of unknown outcome that refuses an old fence": [open(2, 0), write(1, 7, 2, false)],
    "an open of unknown outcome that did not": [open(2, 0), write(1, 7, 2, true)],
    "a write of unknown outcome that came late": [
      write(1, 7, 0),
      open(1, 2, withValue(0)),
      open(1, 4, withValue(7)),
    ],
    "a write of unknown outcome that an open shut out": [
      write(1, 7, 0),
      open(2, 2, withValue(0)),
      read(0, 4),
    ],
    "an open whose value was not looked at": [write(1, 7, 0, true), open(2, 2, { accepted: true })],
  };
  const bad: Record<string, Guarded[]> = {
    "an old fence accepted by a write": [open(2, 0, withValue(0)), write(1, 7, 2, true)],
    "an old fence accepted by an open": [write(2, 7, 0, true), open(1, 2, withValue(7))],
    "a good fence refused": [open(1, 0, withValue(0)), write(2, 7, 2, false)],
    "the fence in use refused": [open(1, 0, withValue(0)), write(1, 7, 2, false)],
    "a refused write that shows": [open(2, 0, withValue(0)), write(1, 7, 2, false), read(7, 4)],
    "a lost update": [
      open(1, 0, withValue(0)),
      open(2, 2, withValue(0)),
      write(1, 1, 4, true),
      write(2, 1, 6, true),
    ],
    "an acknowledged write that was lost": [write(1, 7, 0, true), open(2, 2, withValue(0))],
    "a write of unknown outcome that came in spite of an open": [
      write(1, 7, 0),
      open(2, 2, withValue(0)),
      read(7, 4),
    ],
  };
  table(fencedRegisterModel(0), good, bad);
});

describe("resultModel", () => {
  const run = (kind: ResultInput["kind"], result: string, invoked: number, returned = invoked + 1) =>
    span(invoked, returned, { input: { kind, result }, output: true as const });
  const first = [run("begin", "a", 0), run("store", "a", 2, 4)];
  const good = {
    "a result that all get": [...first, run("read", "a", 3), run("read", "a", 9)],
    "a handler beside the first": [...first, run("begin", "b", 1, 3)],
    "none before the first": [run("read", "", 1), ...first],
  };
  const bad = {
    "a second result": [...first, run("store", "b", 5)],
    "another answer": [...first, run("read", "b", 5)],
    "a result that is gone": [...first, run("read", "", 5)],
    "a handler after it is stored": [...first, run("begin", "b", 5)],
  };
  table(resultModel, good, bad);
});

function table<State, Input, Output>(
  model: Parameters<typeof linearizable<State, Input, Output>>[0],
  good: Record<string, Operation<Input, Output>[]>,
  bad: Record<string, Operation<Input, Output>[]>,
): void {
  for (const [title, history] of Object.entries(good)) {
    it(`accepts ${title}`, () => {
      const result = linearizable(model, history);
      expect(result.outcome, explain(result)).toBe("yes");
    });
  }
  for (const [title, history] of Object.entries(bad)) {
    it(`refuses ${title}`, () => {
      expect(linearizable(model, history).outcome).toBe("no");
    });
  }
}
