// `node evidence/sim.mjs --list`: what the simulator assumes and checks, what breaks without an assumption, and what its checks
// let pass. From the data that the tests use.
import { load } from "../../tools/load.mjs";

/** Prints all of it. */
export async function listChecks() {
  const { assumptions, invariants, meaningOf } = await load("evidence/sim/assumptions.ts");
  const { needs } = await load("evidence/sim/needs.ts");
  const { exemptions } = await load("evidence/sim/exemptions.ts");
  console.log("Assumptions:");
  for (const name of assumptions) console.log(`  ${name}: ${meaningOf(name)}`);
  console.log("\nInvariants, and the assumptions that each needs:");
  for (const [name, needed] of Object.entries(invariants)) {
    console.log(`  ${name}: ${meaningOf(name)}\n    needs: ${needed.join(", ") || "nothing"}`);
  }
  console.log("\nWhat breaks without an assumption:");
  for (const [seed, work, invariant, without] of needs) {
    const dropped = without.map((assumption) => ` --without "${assumption}"`).join("");
    console.log(`  ${invariant}: node evidence/sim.mjs --seed ${seed} --work ${work}${dropped}`);
  }
  console.log("\nWhat a check lets pass, although it looks like a violation:");
  for (const { name, because, seed, work, invariant } of exemptions) {
    console.log(`  ${name}: ${because} (${invariant}, --seed ${seed} --work ${work})`);
  }
}
