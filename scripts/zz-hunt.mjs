import { load } from "/work/wt/lead/scripts/load.mjs";
import { bundleSimulator, startSimulator } from "/work/wt/lead/scripts/simulator.mjs";
const { exemptions } = await load("test/robustness/sim/exemptions.ts");
const { mutants } = await load("test/robustness/sim/mutants.ts");
const { concerns } = await load("test/robustness/sim/mutant.ts");
const { themeOf } = await load("test/robustness/sim/scenario.ts");
const jobs = process.argv.slice(2);
await Promise.all(jobs.map(async (job) => {
  const [kind, part, from = "1", to = "4000"] = job.split("|");
  const e = kind === "e" ? exemptions.find((x) => x.name.includes(part)) : undefined;
  const m = kind === "m" ? mutants.find((x) => x.name.includes(part)) : undefined;
  const mutant = m ?? { name: e.name, breaks: e.because, patches: e.without, noticedBy: [e.invariant] };
  const { file, remove } = await bundleSimulator({ mutant });
  const sim = startSimulator(file, 30000);
  for (let seed = +from; seed <= +to; seed++) {
    if (m && !concerns(m, themeOf(seed))) continue;
    const { violations } = await sim.simulate(e ? { seed, work: e.work, without: e.dropped } : { seed });
    if (violations.some((v) => mutant.noticedBy.includes(v.invariant))) { console.log(`${kind} ${mutant.name} | ${seed} | ${violations.map(v=>v.invariant)}`); break; }
    if (seed === +to) console.log(`${kind} ${mutant.name} none`);
  }
  sim.end(); await remove();
}));
