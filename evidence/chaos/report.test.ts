import { describe, expect, test } from "vitest";
import { readRequest } from "../sim/request.ts";
import type { Hold } from "./holds.ts";
import type { Run } from "./main.ts";
import { type FaultCounts, type FaultKind, faultKinds } from "./nemesis.ts";
import { accounts } from "./records.ts";
import { evaluateRun } from "./report.ts";

const hold: Hold = {
  id: "0.0/1",
  resource: "plain-1",
  ttl: 100,
  invoked: 0,
  granted: 5,
  until: 90,
  renewed: 5,
  excess: -5,
  releasing: 50,
  released: { at: 60, outcome: "freed" },
  looks: [{ at: 5, until: 90 }],
  ran: [],
  accesses: [],
};
const { granted: _granted, until: _until, releasing: _releasing, released: _released, ...asked } = hold;
const refused: Hold = { ...asked, id: "0.0/2", refused: "NO_QUORUM" };

/** A run in which every kind of fault occurred, and each promise was kept. */
function goodRun(more: Partial<Run> = {}): Run {
  const times = Object.fromEntries(faultKinds.map((kind) => [kind, 1])) as FaultCounts["times"];
  const { signal } = new AbortController();
  return {
    options: { seconds: 30, seed: 1, endpoints: 3, clients: 4, project: "", signal },
    seconds: 30,
    faults: { times, hits: { "link slow": 3 }, spans: [], quorumDown: 500 },
    clientsStarted: 5,
    failures: [],
    progress: { stuck: "", seconds: 1 },
    events: 1,
    deliveries: 2,
    requests: 100,
    executions: [],
    holds: [hold, refused],
    contended: 3,
    balances: accounts.map((account) => ({ account, acknowledged: 4, final: 4, refused: 1, repeated: 0 })),
    effects: new Map(),
    last: new Map([["event-1", null]]),
    ...more,
  };
}

/** The failed checks: title and findings. */
function failures(run: Run): string[] {
  const { checks, passed, text } = evaluateRun(run);
  const failed = checks.filter(({ holds }) => !holds);
  expect(passed).toBe(failed.length === 0);
  expect(text.match(/^ {2}FAIL /gm)?.length ?? 0).toBe(failed.length);
  return failed.map(({ title, found }) => `${title}: ${found}`);
}

describe("evaluateRun", () => {
  test("passes a run that kept every promise", () => {
    expect(failures(goodRun())).toEqual([]);
  });

  test.each(faultKinds)("fails a long run without: %s", (kind: FaultKind) => {
    const { faults } = goodRun();
    const idle = { faults: { ...faults, times: { ...faults.times, [kind]: 0 } } };
    expect(failures(goodRun(idle))).toEqual([`everything has happened: ${kind}`]);
    expect(failures(goodRun({ ...idle, seconds: 29 }))).toEqual([]);
  });

  test("fails a long run without grants, contention, missing quorums, or hits", () => {
    const { faults } = goodRun();
    const missing = (more: Partial<Run>) => failures(goodRun(more));
    expect(missing({ holds: [refused] })).toEqual(["everything has happened: grants"]);
    expect(missing({ contended: 0 })).toEqual(["everything has happened: contentions"]);
    expect(missing({ holds: [hold] })).toEqual(["everything has happened: answers without a quorum"]);
    expect(missing({ faults: { ...faults, hits: { "link slow": 0 } } })).toEqual([
      'everything has happened: requests hit by "link slow"',
    ]);
  });

  test("allows lost updates only on accounts that are not opened with a fence", () => {
    const losing = (guard: string) =>
      goodRun().balances.map((balance) =>
        balance.account.guard === guard ? { ...balance, final: 3 } : balance,
      );
    expect(failures(goodRun({ balances: losing("none") }))).toEqual([]);
    expect(failures(goodRun({ balances: losing("greater") }))).toEqual([]);
    expect(failures(goodRun({ balances: losing("opened") }))).toEqual([
      "fenced accounts lose no update: 2 lost",
    ]);
  });

  test("shows what happened to a lock that two had", () => {
    const other: Hold = {
      ...hold,
      id: "1.1/1",
      invoked: 6,
      granted: 8,
      releasing: 55,
      looks: [{ at: 8, until: 90 }],
    };
    const command = ["SET", "redlock:lock:{plain-1}", "t0621c87", "NX", "PX", "100"];
    const request = readRequest(command);
    const execution = { endpoint: "r0", command, request, from: 6, to: 7, reply: "OK", granted: true };
    const { faults } = goodRun();
    const spans = [{ kind: "link slow", target: "r1", from: 1, to: 3 } as const];
    const run = goodRun({
      holds: [hold, other, refused],
      executions: [execution],
      faults: { ...faults, spans },
    });
    expect(failures(run)[0]).toMatch(/^two holds of a resource/);
    const [, trail] = evaluateRun(run).text.split("What happened to plain-1");
    const order = [
      "fault r1 link slow",
      "1.1/1 acquires",
      "r0 acquire t0621c87",
      "1.1/1 may rely on it until",
      "1.1/1 releases",
    ];
    const places = order.map((text) => trail!.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((one, two) => one - two));
  });

  test("fails when clients end by themselves, get stuck, or remaining() promises too much", () => {
    expect(failures(goodRun({ failures: ["client 1.1 ended by itself"] }))).toHaveLength(1);
    expect(failures(goodRun({ progress: { stuck: "not everybody gets every lock", seconds: 60 } }))).toEqual([
      "afterwards everybody gets everything: not everybody gets every lock",
    ]);
    expect(failures(goodRun({ holds: [{ ...hold, excess: 3 }, refused] }))[0]).toMatch(
      /^remaining\(\) never/,
    );
  });
});
