import { describe, expect, it } from "vitest";
import { seededRandom } from "../../local/src/memory/seeded-random.ts";
import { explain, linearizable, linearizableEach, type Operation } from "./checker.ts";
import { looseCounterModel, type RegisterInput, registerModel, span } from "./operations.ts";

type Access = Operation<RegisterInput, number | true>;

const write = (invoked: number, returned: number, value: number): Access =>
  span(invoked, returned, { input: { kind: "write", value }, output: true });
const read = (invoked: number, returned: number, value: number): Access =>
  span(invoked, returned, { input: { kind: "read" }, output: value });
const unknownWrite = (invoked: number, returned: number, value: number): Access =>
  span(invoked, returned, { input: { kind: "write", value } });
const unknownRead = (invoked: number, returned: number): Access =>
  span(invoked, returned, { input: { kind: "read" } });

// definition.test.ts compares short histories with the definition. These are longer.

/** An order that is tried first uses the unknown write up before the state is reached from which it is needed. */
const good = [
  write(0, 10, 7),
  write(0, 10, 5),
  read(0, 10, 7),
  unknownWrite(0, Infinity, 7),
  read(11, 12, 7),
  write(13, 14, 8),
  read(15, 16, 8),
  read(17, 18, 7),
];
/** A known outcome that never shows. */
const bad = [
  write(0, Infinity, 7),
  read(1, 2, 0),
  unknownRead(3, 4),
  write(5, 6, 8),
  read(7, 8, 8),
  read(9, Infinity, 0),
];

describe("linearizable", () => {
  it("finds an order, and that there is none, however the operations are listed", () => {
    for (const history of [good, [...good].reverse()]) {
      const result = linearizable(registerModel, history);
      expect(result.outcome, explain(result)).toBe("yes");
    }
    for (const history of [bad, [...bad].reverse()]) {
      expect(linearizable(registerModel, history).outcome).toBe("no");
    }
  });

  it("follows every state that an outcome may lead to", () => {
    const draw = (at: number) => span(at, at + 1, { input: "draw" as const, output: true as const });
    const look = (at: number, output: number) => span(at, at + 1, { input: "look" as const, output });
    expect(linearizable(looseCounterModel, [draw(0), draw(2), look(4, 3), look(6, 3)]).outcome).toBe("yes");
    expect(linearizable(looseCounterModel, [draw(0), draw(2), look(4, 2), look(6, 4)]).outcome).toBe("no");
    expect(linearizable(looseCounterModel, [draw(0), draw(2), look(4, 5)]).outcome).toBe("no");
  });

  it("returns undecided, and never yes, when the limit is reached", () => {
    const writes = Array.from({ length: 12 }, (_, value) => write(0, 10, value + 1));
    const impossible = [...writes, read(11, 12, 99)];
    const cut = linearizable(registerModel, impossible, { limit: 1_000 });
    expect(cut).toEqual({ outcome: "undecided", explored: 1_000 });
    expect(explain(cut)).toBe("undecided: gave up after 1000 configurations");
    // The same search with room decides; 12 · 2¹¹ + 1 sets and last writes can be distinguished.
    expect(linearizable(registerModel, impossible)).toMatchObject({
      outcome: "no",
      explored: 12 * 2 ** 11 + 1,
    });
    expect(linearizable(registerModel, [...writes, read(11, 12, 5)], { limit: 5 }).outcome).toBe("undecided");
    expect(linearizable(registerModel, writes, { limit: 13 }).outcome).toBe("yes");
    expect(linearizable(registerModel, writes, { limit: 12 }).outcome).toBe("undecided");
  });

  it("grows with the history, not exponentially, at low concurrency", () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
    const history = registerRun(seededRandom(seed), 1_500);
    const result = linearizable(registerModel, history);
    expect(result.outcome, `SEED=${seed}: ${explain(result)}`).toBe("yes");
    expect(result.explored, `SEED=${seed}`).toBeLessThan(100 * history.length);
    // A read of what nobody wrote, late in the run: everything before it is searched.
    const late = history.filter(({ input }) => input.kind === "read").at(-1);
    const broken = history.map((access) => (access === late ? { ...access, output: -1 } : access));
    const refused = linearizable(registerModel, broken);
    expect(refused.outcome, `SEED=${seed}`).toBe("no");
    expect(refused.explored, `SEED=${seed}`).toBeLessThan(100 * history.length);
  });

  it("decides a run with a hundred unknown writes", () => {
    const unknown = Array.from({ length: 100 }, (_, value) => unknownWrite(value, Infinity, value + 1));
    const reads = Array.from({ length: 100 }, (_, value) => read(200 + value, 200 + value, 100 - value));
    expect(linearizable(registerModel, [...unknown, ...reads]).outcome).toBe("yes");
    const twice = [...unknown, ...reads, read(400, 401, 50)];
    expect(linearizable(registerModel, twice).outcome).toBe("no");
  });
});

describe("linearizableEach", () => {
  it("checks every resource on its own", () => {
    const histories = new Map([
      ["a", [write(0, 1, 7), read(2, 3, 7)]],
      ["b", [read(2, 3, 0)]],
    ]);
    expect(linearizableEach(registerModel, histories).outcome).toBe("yes");
    expect(linearizableEach(registerModel, histories, { limit: 2 }).outcome).toBe("undecided");
    histories.set("c", [read(2, 3, 7)]);
    const { outcome, results } = linearizableEach(registerModel, histories, { limit: 2 });
    expect(outcome).toBe("no");
    expect([...results].map(([resource, result]) => [resource, result.outcome])).toEqual([
      ["a", "undecided"],
      ["b", "yes"],
      ["c", "no"],
    ]);
  });
});

/** What four processes may see of a correct register; some writes are of unknown outcome. */
function registerRun(random: () => number, length: number): Access[] {
  const free = [0, 0, 0, 0];
  const history: { access: Access; effectAt: number }[] = [];
  for (let count = 0; count < length; count += 1) {
    const process = free.indexOf(Math.min(...free));
    const invoked = free[process]! + random();
    const returned = invoked + random();
    free[process] = returned;
    const effectAt = invoked + random() * (returned - invoked);
    const kind = random();
    const access =
      kind < 0.5
        ? read(invoked, returned, 0)
        : kind < 0.99
          ? write(invoked, returned, count)
          : unknownWrite(invoked, Infinity, count);
    // An unknown write may take effect long after its process gave it up, or never.
    history.push({ access, effectAt: kind < 0.99 ? effectAt : invoked + random() * 2 * length });
  }
  let value = 0;
  return history
    .sort((a, b) => a.effectAt - b.effectAt)
    .map(({ access }) => {
      if (access.input.kind === "read") return { ...access, output: value };
      value = access.input.value;
      return access;
    });
}
