import { expect, test } from "vitest";
import { exemptions } from "./exemptions.ts";
import type { Report } from "./main.ts";
import { bundleSimulator, startSimulator } from "./processes.mjs";

// Takes one exemption after another out of the checks. Each must then accuse the sound library at its seed, else it is
// not needed, and only hides what it should show.

test.each(exemptions.map((exemption) => [exemption.name, exemption] as const))(
  "needed: %s",
  { timeout: 120_000 },
  async (name, { without: patches, seed, work, invariant, dropped, because: breaks }) => {
    const { file, remove } = await bundleSimulator({
      mutant: { name, breaks, patches, noticedBy: [invariant] },
    });
    const simulator = startSimulator(file);
    try {
      const { violations }: Report = await simulator.simulate({ seed, work, without: dropped });
      expect(violations.map((violation) => violation.invariant)).toContain(invariant);
    } finally {
      simulator.end();
      await remove();
    }
  },
);
