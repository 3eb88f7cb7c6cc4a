import type { Scenario } from "./scenario.ts";
import { goodNetwork, goodStreams, type NetworkConditions } from "./world.ts";

/** Ways to make a scenario smaller. Each yields scenarios that have less: those that have much less come first. */
export const reductions: readonly ((scenario: Scenario) => Scenario[])[] = [
  withoutFaults,
  withFewerProcesses,
  withFewerCalls,
  withoutHazards,
  withFewerEndpoints,
  withSimplerWork,
  plainer,
];

function withoutFaults(scenario: Scenario): Scenario[] {
  const { faults } = scenario;
  const each = faults.map((fault) => ({ ...scenario, faults: faults.filter((other) => other !== fault) }));
  return faults.length > 1 ? [{ ...scenario, faults: [] }, ...each] : each;
}

const hazards = [
  "tail",
  "loseRequest",
  "loseReply",
  "duplicate",
  "reset",
  "httpError",
  "garbled",
] as const satisfies readonly (keyof NetworkConditions)[];

function withoutHazards(scenario: Scenario): Scenario[] {
  const { badNetwork } = scenario;
  const present = hazards.filter((hazard) => (badNetwork[hazard] ?? 0) > 0);
  const each = present.map((hazard) => ({ ...scenario, badNetwork: { ...badNetwork, [hazard]: 0 } }));
  return [{ ...scenario, badNetwork: goodNetwork }, ...each];
}

/** Half of a number, then one less, down to `least`. */
function less(from: number, least: number): number[] {
  const choices = [least, Math.floor((from + least) / 2), from - 1];
  return [...new Set(choices)].filter((one) => one >= least && one < from);
}

function withFewerProcesses(scenario: Scenario): Scenario[] {
  return less(scenario.processes, 1).map((processes) => ({ ...scenario, processes }));
}

function withFewerEndpoints(scenario: Scenario): Scenario[] {
  return less(scenario.endpoints, 1).map((endpoints) => ({
    ...scenario,
    endpoints,
    dialects: scenario.dialects.slice(0, endpoints),
    exactReplies: scenario.exactReplies.slice(0, endpoints),
    // One silent endpoint of two leaves no quorum.
    silentMinority: scenario.silentMinority && endpoints > 2,
  }));
}

function withFewerCalls(scenario: Scenario): Scenario[] {
  return less(scenario.calls, 1).map((calls) => ({ ...scenario, calls }));
}

function withSimplerWork(scenario: Scenario): Scenario[] {
  const { work, resources } = scenario;
  const kinds = work.length > 1 ? [...new Set(work)].map((kind) => ({ ...scenario, work: [kind] })) : [];
  return resources.length > 1 ? [...kinds, { ...scenario, resources: resources.slice(0, 1) }] : kinds;
}

/** Each with one trait less. */
function plainer(scenario: Scenario): Scenario[] {
  const { wakeUps, dialects, exactReplies } = scenario;
  const traits: Partial<Scenario>[] = [
    { wakeUps: undefined },
    { retention: undefined },
    { handingOn: false },
    { handingOff: false, handingOn: false },
    { lingering: false },
    { owned: 0 },
    { fencing: false },
    { silentMinority: false },
    { oddEndpoint: undefined },
    { http: false },
    { lifetime: "server" },
    { dialects: dialects.map(() => "redis" as const) },
    { exactReplies: exactReplies.map(() => true) },
  ];
  if (wakeUps) {
    traits.push({ wakeUps: { ...wakeUps, streams: goodStreams } });
    traits.push({ wakeUps: { ...wakeUps, forging: undefined } });
    traits.push({ wakeUps: { ...wakeUps, isLasting: false } });
  }
  return traits.map((trait) => ({ ...scenario, ...trait }));
}
