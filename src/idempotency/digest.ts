import { checkName, checkType, wrongType } from "../check/check.ts";
import { sha256Hex } from "../runtime/bytes.ts";
import { noFingerprint } from "./record.ts";

/** Equal keys of two kinds are two keys. */
export type KeyKind = "run" | "http" | "flight";

/** As JSON, so that no delimiter in a name can make two keys equal. */
export function hashKey(
  scope: string | readonly string[],
  key: string,
  kind: KeyKind = "run",
  handler?: string,
): Promise<string> {
  const name = kind === "run" ? [scope, key] : [kind, handler ?? null, scope, key];
  return sha256Hex(new TextEncoder().encode(JSON.stringify(name)));
}

/** An empty part would let unrelated callers share keys. */
export function checkScope(name: string, scope: string | readonly string[]): string | readonly string[] {
  const parts: unknown = typeof scope === "string" ? [scope] : scope;
  if (!Array.isArray(parts) || parts.length === 0) {
    // A missing tenant must not share the keys of all others.
    const hint = scope === undefined ? "; leave the option out where all may share their keys" : "";
    throw wrongType(name, scope, `a string, or an array of at least one${hint}`);
  }
  for (const part of parts) {
    if (!checkType(`a part of ${name}`, part as unknown, "string"))
      throw new RangeError(`${name} must have no empty part`);
    checkName(`a part of ${name}`, part as string, Infinity);
  }
  return scope;
}

export function fingerprintOf(content: string | Uint8Array | undefined): Promise<string> | string {
  if (content === undefined) return noFingerprint;
  // Not by class, because the bytes may come from another realm.
  if (typeof content !== "string" && Object(content).byteLength === undefined) {
    throw wrongType(
      "fingerprint",
      content,
      "a string or a Uint8Array, for example JSON.stringify(…) of an object",
    );
  }
  return sha256Hex(typeof content === "string" ? new TextEncoder().encode(content) : content);
}
