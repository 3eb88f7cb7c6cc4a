import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { shrinkFailure, writePicture } from "./failures.mjs";
import type { Report } from "./main.ts";
import { mutants } from "./mutants.ts";
import { caught } from "./noticed.ts";
import { bundleSimulator, startSimulator } from "./processes.mjs";
import type { Failing } from "./shrink.ts";

// Known defects that let two hold one lock: the seed that notices each shrinks to a simulation that one can follow.

const some = [
  "only the first of several keys",
  "release ends any hold of its owner",
  "partial grants are kept",
];

test.each(some)("the smallest simulation that shows: %s", { timeout: 240_000 }, async (name) => {
  const mutant = mutants.find((one) => one.name === name)!;
  const { file, remove } = await bundleSimulator({ mutant });
  const simulator = startSimulator(file);
  const folder = await mkdtemp(join(tmpdir(), "sim-"));
  try {
    const { seed } = caught[name]!;
    const { failing, invariant } = await shrinkFailure(
      file,
      { seed },
      { limit: 60_000, log: () => undefined },
    );
    const { processes, endpoints, calls, faults } = (failing as Failing).scenario;
    expect(processes).toBeLessThanOrEqual(2);
    expect(endpoints).toBeLessThanOrEqual(3);
    expect(processes * calls).toBeLessThanOrEqual(12);
    expect(faults.length).toBeLessThanOrEqual(1);
    // It is repeated from a file.
    const replayed: Report = await simulator.simulate(JSON.parse(JSON.stringify(failing)));
    const again: Report = await simulator.simulate(JSON.parse(JSON.stringify(failing)));
    expect(replayed.violations.map((one) => one.invariant)).toContain(invariant);
    expect(again.violations).toEqual(replayed.violations);
    const html = join(folder, "smallest.html");
    await writePicture(file, failing, { file: html });
    expect(await readFile(html, "utf8")).toContain(invariant);
  } finally {
    simulator.end();
    await remove();
    await rm(folder, { recursive: true });
  }
});
