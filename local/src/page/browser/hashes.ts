import { shownDigits } from "../key.ts";

/**
 * The beginnings of the hashes under which a typed key may be stored: of a run, a `singleFlight` and a request. In front of the
 * key there may be its scope: `shop order-17`. A signed webhook's scope has a tag of its secret, which nobody can type.
 */
export async function hashesOf(typed: string): Promise<readonly string[]> {
  if (typed === "") return [];
  const [scope, key] = [typed.replace(/\s.*/s, ""), typed.replace(/^\S+\s*/, "")];
  const scoped = [
    [scope, key],
    [[scope], key],
  ];
  const names = [[[], typed], ...(key === "" ? [] : scoped)].flatMap((name) => [
    name,
    ["http", null, ...name],
    ["flight", null, ...name],
  ]);
  return Promise.all(names.map(digestOf));
}

async function digestOf(name: unknown): Promise<string> {
  const text = new TextEncoder().encode(JSON.stringify(name));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", text));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .slice(0, shownDigits);
}
