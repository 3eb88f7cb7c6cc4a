import { keyOf } from "../redis/keys.ts";

/** The channel of a resource's releases. `kind`: `lock`, or a synchronizer's. */
export function channelOf(prefix: string, kind: string, resource: string): string {
  // Upstash's streams separate the parts of a message by commas, and messages by line breaks. Two resources that share a
  // channel only wake each other.
  return keyOf(prefix, `wake-${kind}`, resource).replaceAll(/[,\r\n]/g, ".");
}
