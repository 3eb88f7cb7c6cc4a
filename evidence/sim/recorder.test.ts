import { expect, test } from "vitest";
import { simulate } from "./simulate.ts";

// What a simulation writes down for its picture.

/** A seed of locks with faults, and one of runs with locks. */
const seeds = [1, 16];

test("a recording has everything that happens", async () => {
  const phases = new Set<string>();
  for (const seed of seeds) {
    const { counts, timeline } = await simulate({ seed, recorded: true });
    const { events, clients, endpoints } = timeline!;
    for (const { phase } of events) phases.add(phase);
    expect(events.every(({ time }, at) => time >= (events[at - 1]?.time ?? 0))).toBe(true);
    expect(events.every(({ client = clients[0]! }) => clients.includes(client))).toBe(true);
    expect(events.every(({ endpoint = endpoints[0]! }) => endpoints.includes(endpoint))).toBe(true);
    const of = (wanted: string) => events.filter(({ phase }) => phase === wanted);
    expect(of("called"), `seed ${seed}`).toHaveLength(counts.get("operations")!);
    const toServers = of("sent").filter(({ endpoint }) => endpoint !== "database");
    expect(toServers).toHaveLength(counts.get("requests")!);
    expect(of("stored").some(({ endpoint, until }) => endpoint !== "database" && until !== undefined)).toBe(
      true,
    );
    expect(of("healed").length).toBeLessThanOrEqual(of("fault").length);
  }
  const all = ["called", "returned", "sent", "executed", "answered", "lost", "stored", "removed", "valid"];
  expect([...phases].sort()).toEqual([...all, "ended", "fault", "healed"].sort());
});

test("the trace names a fault's target and end, and an execution's operation", async () => {
  const { lines } = await simulate({ seed: 1, traced: true });
  const faults = lines.filter((line) => line.includes(" fault: ") && !line.includes("bad network"));
  expect(faults.length).toBeGreaterThan(0);
  for (const line of faults) {
    expect(line).toMatch(
      /fault: (cut off p\d>r\d|(slow|silent|down|down, forgets) r\d|(paused|frozen) p\d) until [\d.]+|killed p\d|clock set by \S+ ms [pr]\d/,
    );
  }
  const executions = lines.filter((line) => /p\d>r\d /.test(line));
  expect(executions.length).toBeGreaterThan(0);
  for (const line of executions) {
    expect(line).toMatch(
      /p\d>r\d (acquire|restore|extend|release|free|peek|announce|raise fence|subscribe) \S+|fault/,
    );
  }
});
