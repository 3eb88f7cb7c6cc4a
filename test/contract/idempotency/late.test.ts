import { describe, expect, test } from "vitest";
import { EndpointError, QuorumError } from "../../../src/errors/errors.ts";
import type { Fate, Link } from "../../support/link.ts";
import { delays, virtualWorld, watch } from "../../support/virtual-client.ts";
import { records, runner, running, silence } from "../../support/virtual-runs.ts";

// Runs whose requests are lost, refused or late, in virtual time. The timeout of a request is 100 ms, the pause between
// two rounds 10 ms.

const never = () => expect.unreachable("nothing may run");
const free = [null, null, null];

/** The first command of each link after this has another fate. */
function once(links: readonly Link[], fate: Fate): void {
  for (const link of links) {
    link.fate = () => {
      link.fate = () => "delivered";
      return fate;
    };
  }
}

describe("a begin", () => {
  test("whose replies are lost runs once, in the next round", async () => {
    const world = virtualWorld();
    const { idempotency, links, started } = runner(world, { wait: 1_000 });
    once(links, "reply lost");
    const call = watch(idempotency.run("key", () => "once"));
    await started();
    await world.runtime.advance(20);
    expect(call.value).toEqual({ status: "executed", value: "once" });
    expect(records(world)).toEqual(new Array(3).fill('C1 "once"'));
  });

  test("that reaches no quorum runs nothing, and says why", async () => {
    const world = virtualWorld();
    const { idempotency, links, started } = runner(world);
    for (const link of links.slice(0, 2)) link.fate = () => "refused";
    const call = watch(idempotency.run("key", never));
    await started();
    await world.runtime.advance(200);
    const { votes, message, cause } = call.error as QuorumError;
    expect(votes.map(({ endpoint }) => endpoint)).toEqual(["e1", "e2", "e3"]);
    expect(votes[0]).toMatchObject({ outcome: "error", cause: { kind: "network" } });
    expect(cause).toBeInstanceOf(EndpointError);
    expect(message).toMatch(/"key".*e1/s);
    expect(records(world)).toEqual(free);
  });

  test("that is executed after its rollback leaves nothing beyond its lease", async () => {
    const world = virtualWorld();
    const { late } = delays(world.runtime);
    const { idempotency, links, started } = runner(world, { lease: 1_000 });
    once(links, late(300));
    const call = watch(idempotency.run("key", never));
    await started();
    await world.runtime.advance(299);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect(records(world)).toEqual(free);
    await world.runtime.advance(2);
    expect(records(world)).toEqual(["P1", "P1", "P1"]);
    await world.runtime.advance(1_000);
    expect(records(world)).toEqual(free);
  });
});

describe("the end of a run", () => {
  test("whose replies are lost is stored all the same", async () => {
    const world = virtualWorld();
    const client = runner(world);
    const { call, end } = await running(client);
    once(client.links, "reply lost");
    end.open("done");
    await world.runtime.advance(20);
    expect(call.value).toEqual({ status: "executed", value: "done" });
    expect(records(world)).toEqual(new Array(3).fill('C1 "done"'));
  });

  test("that cannot free the key of a failed one leaves it to the lease", async () => {
    const world = virtualWorld();
    const client = runner(world, { lease: 1_000 });
    const { call, end } = await running(client);
    silence(client.links);
    const failure = new Error("declined");
    end.open(Promise.reject(failure));
    await world.runtime.advance(999);
    expect([call.error, records(world)]).toEqual([failure, ["P1", "P1", "P1"]]);
    await world.runtime.advance(1);
    expect(records(world)).toEqual(free);
  });
});
