import { cases, type Stage } from "./cases.ts";

// The cases as a Worker: GET / describes the runtime, POST / runs one case.

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}

export default {
  async fetch(request: Request, _env: unknown, context: Context): Promise<Response> {
    if (request.method === "GET") {
      return Response.json({
        userAgent: navigator.userAgent,
        hasProcess: "process" in globalThis,
        titles: Object.keys(cases),
      });
    }
    const { title, stage } = (await request.json()) as { title: string; stage: Omit<Stage, "context"> };
    try {
      await cases[title]!({ ...stage, context });
      return new Response("passed");
    } catch (error) {
      return new Response((error as Error).stack ?? String(error), { status: 500 });
    }
  },
};
