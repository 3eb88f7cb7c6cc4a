import { describe, expect, it } from "vitest";
import { explain, linearizable, linearizableEach } from "./checker.ts";
import {
  type AccessRecord,
  type Delivery,
  fencedHistory,
  type GrantRecord,
  grantHistory,
} from "./history.ts";
import { fencedRegisterModel, lockModel } from "./models.ts";

/** Granted at 1, valid until 100. */
const first: GrantRecord = { resource: "r", holder: "a", invoked: 0, acquired: 1, validUntil: 100 };
const freed = (invoked: number, returned: number, released?: boolean) => ({
  releaseInvoked: invoked,
  releaseReturned: returned,
  released,
});
const second = (invoked: number, acquired: number): GrantRecord => ({
  ...first,
  holder: "b",
  invoked,
  acquired,
  validUntil: acquired + 100,
});
const outcomeOf = (records: readonly GrantRecord[], delivery?: Delivery) =>
  linearizableEach(lockModel, grantHistory(records, delivery)).outcome;

describe("grantHistory", () => {
  const good: Record<string, GrantRecord[]> = {
    "a second holder after the release": [{ ...first, ...freed(2, 3, true) }, second(4, 5)],
    "a second holder after the validity": [first, second(2, 100)],
    "a second holder on another resource": [first, { ...second(2, 3), resource: "s" }],
    "a second holder after a release of unknown outcome": [{ ...first, ...freed(2, 3) }, second(2, 4)],
    "a second holder after a release that never returned": [{ ...first, releaseInvoked: 2 }, second(3, 4)],
    "a late release that freed it": [{ ...first, ...freed(150, 160, true) }, second(2, 155)],
    "a late release that found nothing": [{ ...first, ...freed(150, 160, false) }, second(2, 101)],
    "a late release of unknown outcome": [{ ...first, ...freed(150, 160) }, second(2, 101)],
    "a client that comes again": [
      { ...first, ...freed(2, 3, true) },
      { ...second(4, 5), holder: "a" },
    ],
    "an acquire of unknown outcome": [{ resource: "r", holder: "b", invoked: 0 }, first],
    "an extension": [
      { ...first, extensions: [{ invoked: 50, returned: 51, extended: true }] },
      second(2, 100),
    ],
    "an extension of unknown outcome": [{ ...first, extensions: [{ invoked: 50 }] }, second(2, 100)],
    "an extension lost after the validity": [
      { ...first, extensions: [{ invoked: 99, returned: 120, extended: false }] },
      second(2, 110),
    ],
  };
  const bad: Record<string, GrantRecord[]> = {
    "a second holder within the validity": [first, second(2, 99)],
    "a second holder before the release": [{ ...first, ...freed(5, 6, true) }, second(2, 4)],
    "a second holder before a release of unknown outcome": [{ ...first, ...freed(5, 6) }, second(2, 4)],
    "a second holder before a late release that freed it": [
      { ...first, ...freed(150, 160, true) },
      second(2, 149),
    ],
    "a second holder before the validity, the release late and unknown": [
      { ...first, ...freed(150, 160) },
      second(2, 99),
    ],
    "a release within the validity that found nothing": [{ ...first, ...freed(2, 3, false) }],
    "an extension lost within the validity": [
      { ...first, extensions: [{ invoked: 50, returned: 51, extended: false }] },
    ],
    "an extension while another holds": [
      { ...first, extensions: [{ invoked: 150, returned: 151, extended: true }] },
      second(2, 120),
    ],
    "two grants of one client": [first, { ...second(2, 3), holder: "a" }],
  };
  for (const [title, records] of Object.entries(good)) {
    it(`explains ${title}`, () => {
      for (const history of grantHistory(records).values()) {
        const result = linearizable(lockModel, history);
        expect(result.outcome, explain(result)).toBe("yes");
      }
    });
  }
  for (const [title, records] of Object.entries(bad)) {
    it(`does not explain ${title}`, () => {
      expect(outcomeOf(records)).toBe("no");
      expect(outcomeOf([...records].reverse())).toBe("no");
    });
  }

  it("compares the fences of grants that have one", () => {
    const seven = { ...first, fence: 7, ...freed(40, 41, true) };
    expect(outcomeOf([seven, { ...second(50, 51), fence: 6 }])).toBe("no");
    for (const other of [second(50, 51), { ...second(50, 51), fence: 6, resource: "s" }]) {
      expect(outcomeOf([seven, other])).toBe("yes");
    }
  });

  it("lets a duplicated release free what it then finds gone, but nothing before and nothing after it", () => {
    const released = { ...first, ...freed(10, 20, false) };
    expect(outcomeOf([released])).toBe("no");
    expect(outcomeOf([released], { duplicates: true })).toBe("yes");
    expect(outcomeOf([released, second(2, 11)], { duplicates: true })).toBe("yes");
    expect(outcomeOf([released, second(2, 9)], { duplicates: true })).toBe("no");
    expect(outcomeOf([{ ...first, ...freed(10, 20) }, second(2, 9)], { duplicates: true })).toBe("no");
  });
});

describe("fencedHistory", () => {
  const access = (
    at: number,
    record: Partial<AccessRecord> & Pick<AccessRecord, "access">,
  ): AccessRecord => ({ resource: "r", holder: "a", invoked: at, returned: at + 1, ...record });
  const outcome = (accesses: readonly AccessRecord[]) =>
    linearizableEach(fencedRegisterModel(0), fencedHistory(accesses)).outcome;
  const opened = (at: number, fence: number, value: number) =>
    access(at, { access: { kind: "open", fence }, accepted: true, value });

  it("explains a read, a change and a write under each fence", () => {
    const refused = access(70, { access: { kind: "write", fence: 5, value: 2 }, accepted: false });
    const changed = access(20, { access: { kind: "write", fence: 5, value: 1 }, accepted: true });
    const accesses = [opened(10, 5, 0), changed, opened(60, 6, 1), refused];
    expect(outcome(accesses)).toBe("yes");
    expect(outcome(accesses.slice(1, 3).reverse())).toBe("yes");
    expect(outcome(accesses.slice(2, 3))).toBe("no");
    expect(outcome([...accesses, { ...refused, invoked: 90, returned: 91, accepted: true }])).toBe("no");
  });

  it("lets an access of unknown outcome happen late, although its call returned", () => {
    const lost = access(10, { access: { kind: "write", fence: 5, value: 1 } });
    expect(outcome([lost, opened(20, 5, 0), opened(30, 5, 1)])).toBe("yes");
    expect(outcome([lost, opened(20, 5, 1), opened(30, 5, 0)])).toBe("no");
    expect(outcome([lost, opened(5, 5, 1)])).toBe("no");
  });
});
