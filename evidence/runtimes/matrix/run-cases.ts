import { cases, type Stage } from "../cases.ts";

/** What a runtime answers. */
export interface RuntimeReport {
  readonly passed: readonly string[];
  /** The error of each case that failed, by title. */
  readonly failed: Readonly<Record<string, string>>;
  /** `native`: the runtime parses it; `compiled`: it has the symbol that compilers need; otherwise `no`. */
  readonly awaitUsing: "native" | "compiled" | "no";
}

/** Runs every case, one after another. */
export async function runCases(stage: Omit<Stage, "context">): Promise<RuntimeReport> {
  const passed: string[] = [];
  const failed: Record<string, string> = {};
  for (const [title, run] of Object.entries(cases)) {
    const work: Promise<unknown>[] = [];
    const context = { waitUntil: (promise: Promise<unknown>) => void work.push(promise) };
    try {
      await run({ ...stage, context });
      await Promise.all(work);
      passed.push(title);
    } catch (error) {
      failed[title] = (error as Error).stack ?? String(error);
    }
  }
  return { passed, failed, awaitUsing: awaitUsing() };
}

function awaitUsing(): RuntimeReport["awaitUsing"] {
  try {
    new Function("return async () => { await using nothing = null; }");
    return "native";
  } catch {
    // Not parsed, or the platform does not compile text.
    return typeof Symbol.asyncDispose === "symbol" ? "compiled" : "no";
  }
}
