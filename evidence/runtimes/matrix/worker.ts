import type { Stage } from "../cases.ts";
import { runCases } from "./run-cases.ts";

// For workerd: answers with the report.

declare const STAGE: Omit<Stage, "context">;

export default { fetch: async () => Response.json(await runCases(STAGE)) };
