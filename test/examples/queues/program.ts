import { onTestFinished } from "vitest";
import type { LocalEndpoint } from "../../../local/src/index.ts";
import { startRawServer } from "../../support/raw-server.ts";
import { type NodeProcess, startNode } from "../node-process.ts";
import { forward, openWire, type Wire } from "./wire.ts";

/** A bundled example in a process of its own, which is killed where its wire is cut. */
export interface Program {
  /** Where the platform listens: after a kill, requests wait there for the next process. */
  readonly url: string;
  readonly wire: Wire;
  /** Starts it with these variables, beside those of its wire. */
  start(env: Readonly<Record<string, string>>): void;
}

type Running = NodeProcess & { readonly url: string };

/** @param file as `bundleForNode` returns it */
export async function program(file: string, endpoint: LocalEndpoint): Promise<Program> {
  let running: Promise<Running>;
  let variables: Readonly<Record<string, string>> = {};

  async function start(): Promise<Running> {
    const env = { ...wire.env, ...variables };
    const started = startNode(["test/examples/queues/host.mjs", file], env);
    const [, port] = await started.printed(/listening on (\d+)/);
    return { ...started, url: `http://127.0.0.1:${port}` };
  }

  const wire = await openWire(endpoint, async () => {
    const dying = await running;
    running = dying.ended.then(start);
    dying.kill("SIGKILL");
    await dying.ended;
    return "reset";
  });
  const platform = await startRawServer(async (request) => {
    const { url } = await running;
    return forward(request, url);
  });
  onTestFinished(() => platform.close());
  return {
    url: platform.url,
    wire,
    start(env) {
      variables = env;
      running = start();
    },
  };
}
