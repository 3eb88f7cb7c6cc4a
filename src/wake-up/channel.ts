import { keyOf } from "../redis/keys.ts";

export function channelOf(prefix: string, kind: string, resource: string): string {
  // Upstash's streams separate by commas and line breaks. Two resources that share a channel only wake each other.
  return keyOf(prefix, `wake-${kind}`, resource).replaceAll(/[,\r\n]/g, ".");
}
