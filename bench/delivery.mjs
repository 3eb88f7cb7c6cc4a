// Measures a webhook's delivery through a Worker in workerd, with endpoints 20 ms away: run and lock as separate operations,
// and together. The samples alternate, so that both ways meet the same machine.
import { measureGain } from "../tools/demo/gain.mjs";

const samples = 60;
const distance = 20;

export async function print() {
  for (const dialect of ["redis", "upstash"]) {
    console.log(
      `\nA delivery in workerd, three endpoints ${distance} ms away, dialect ${dialect}, ${samples} samples\n`,
    );
    console.log("| | requests | commands | p50 |");
    console.log("| --- | --- | --- | --- |");
    const rows = await measureGain({ samples, distance, dialect });
    for (const { way, kind, requests, commands, p50 } of rows) {
      console.log(`| ${kind}, ${way} | ${requests} | ${commands} | ${p50.toFixed(0)} ms |`);
    }
    const [separate, together] = ["separate", "together"].map(
      (way) => rows.find((row) => row.way === way && row.kind === "first").p50,
    );
    console.log(`\nfirst delivery, together / separate: ${(together / separate).toFixed(2)}`);
  }
}
