import type { LocalEndpoint } from "../../local/src/rest/endpoint.ts";
import {
  lockServerBackend,
  openEndpoint,
  startWorkerd as startAny,
  type Workerd,
} from "../../tools/lock-servers.ts";

export { token, type Workerd } from "../../tools/lock-servers.ts";

/** Starts a workerd with lock servers, and with the cases that run inside it. */
export function startWorkerd(options: { readonly persist?: string } = {}): Promise<Workerd> {
  return startAny({ entry: "test/support/lock-servers-worker.ts", ...options });
}

/** The one that the tests of a process share. It ends with the process. */
let shared: Promise<Workerd> | undefined;
let opened = 0;

/** Local endpoints, with their faults and logs, in front of new lock servers. */
export async function openLockServers(
  count: number,
): Promise<{ readonly endpoints: readonly LocalEndpoint[]; close(): Promise<void> }> {
  shared ??= startWorkerd();
  const { url } = await shared;
  opened += 1;
  const endpoints = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      openEndpoint(
        index + 1,
        lockServerBackend(`server-${opened}-${index}`, () => url),
      ),
    ),
  );
  return {
    endpoints,
    async close() {
      await Promise.all(endpoints.map((endpoint) => endpoint.close()));
    },
  };
}
