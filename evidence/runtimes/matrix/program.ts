import type { Stage } from "../cases.ts";
import { runCases } from "./run-cases.ts";

// For runtimes with a command: prints the report as its last line.

declare const STAGE: Omit<Stage, "context">;

console.log(JSON.stringify(await runCases(STAGE)));
