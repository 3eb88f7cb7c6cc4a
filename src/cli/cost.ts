import { counted, duration } from "./text.ts";

/** What an answer has cost. */
export interface Cost {
  /** HTTP requests. */
  readonly requests: number;
  readonly ms: number;
}

/** The cost as text. */
export function costText({ requests, ms }: Cost): string {
  return `${counted(requests, "request")}, ${duration(ms)}`;
}
