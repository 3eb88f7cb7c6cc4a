import { type LocalEndpoints, start } from "../../local/src/index.ts";
import type { Address, Stage } from "./cases.ts";

/** The endpoints of the cases, over real HTTP on loopback. */
export interface OpenStage {
  readonly stage: Omit<Stage, "context">;
  close(): Promise<void>;
}

/** Starts three endpoints that work, one that is broken and one that is silent. */
export async function openStage(): Promise<OpenStage> {
  const local: LocalEndpoints = await start({ count: 5, engine: "embedded" });
  const [broken, silent] = [local.endpoints[3]!, local.endpoints[4]!];
  broken.faults.add({ fault: "status", status: 502, html: true });
  silent.faults.add({ fault: "drop-request" });
  const address = ({ url, token }: Address): Address => ({ url, token });
  return {
    stage: {
      healthy: local.endpoints.slice(0, 3).map(address),
      broken: address(broken),
      silent: address(silent),
    },
    close: local.close,
  };
}
