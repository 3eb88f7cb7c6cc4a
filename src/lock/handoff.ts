import { checkInteger, checkType } from "../check.ts";
import type { Settings } from "./options.ts";

/** A lock as plain JSON, to be handed to another process. It holds the lock's token: treat it as a secret. */
export interface LockJSON {
  readonly resources: readonly string[];
  readonly prefix: string;
  readonly nonce: string;
  readonly owner: string;
  readonly ttl: number;
  /** Wall-clock time in ms since 1970 at which the validity ends. */
  readonly validUntil: number;
  readonly fence?: number;
  /** The endpoints, by name: the receiver's client must have the same. */
  readonly endpoints: readonly string[];
  /** Those at which a request that takes the lock may yet be executed. */
  readonly unsettled: readonly string[];
  /** By endpoint: the least ttl of an extension that may yet be executed there. */
  readonly unanswered: Readonly<Record<string, number>>;
}

/** What of the giver's requests may yet be executed, checked: of endpoints that the receiver has, too. */
export function openRequests(
  json: LockJSON,
  { endpoints }: Settings,
): Pick<LockJSON, "unsettled" | "unanswered"> {
  const { endpoints: given, unsettled, unanswered } = json;
  const names = endpoints.map(({ name }) => name);
  if (!Array.isArray(given) || [...given].sort().join("\n") !== [...names].sort().join("\n")) {
    throw new RangeError(
      `resume needs the endpoints that the lock was taken on: ${String(given)}; here they are ${names}`,
    );
  }
  const isKnown = (name: unknown) => names.includes(name as string);
  if (!Array.isArray(unsettled) || !unsettled.every(isKnown)) {
    throw new TypeError("unsettled must be an array of names of endpoints");
  }
  for (const [name, least] of Object.entries(checkType("unanswered", unanswered, "object"))) {
    if (!isKnown(name)) throw new RangeError("unanswered must name endpoints");
    checkInteger(`unanswered of ${name}`, least, 10, 2_147_483_647);
  }
  return { unsettled, unanswered };
}
