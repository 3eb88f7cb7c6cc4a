import { CallSignal } from "../../src/endpoints/call-signal.ts";
import { newCall } from "../../src/endpoints/endpoint-call.ts";
import type { Endpoint } from "../../src/index.ts";
import { claimOrRead } from "../../src/redis/cell.ts";

/** The endpoint, as if it had returned a value in the way before: else the first `null` of each client costs a request more. */
export function trusted<Some extends Endpoint>(endpoint: Some): Some {
  const { send, exactReplies } = endpoint;
  // It gets scripts only.
  if (!exactReplies) return endpoint;
  Object.assign(endpoint, { send: async () => "a value in the way" });
  void claimOrRead(newCall(endpoint, new CallSignal()), { keys: ["k"], value: "tv" }, 1);
  return Object.assign(endpoint, { send });
}
