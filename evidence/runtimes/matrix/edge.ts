import type { Stage } from "../cases.ts";
import { runCases } from "./run-cases.ts";

// For edge-runtime, which runs a script and no module: leaves a promise of the report.

declare const STAGE: Omit<Stage, "context">;

(globalThis as { report?: Promise<string> }).report = runCases(STAGE).then((report) =>
  JSON.stringify(report),
);
