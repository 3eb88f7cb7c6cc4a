import type { Outcome as Vote } from "../../playground/picture/timeline.ts";
import { parseKey } from "../../src/stored/parse.ts";
import { nonceOf, type Request } from "./request.ts";

/** A call, and how the endpoints voted in its last round. */
interface CallRecord {
  readonly call: string;
  readonly client: string;
  readonly operation: string;
  key: string | undefined;
  /** The nonce of the last round. */
  nonce: string;
  readonly votes: Map<string, Vote>;
  isOpen: boolean;
}

/** Finds the call that a request belongs to: the library's requests do not name it. */
export class CallRecords {
  readonly #calls = new Map<string, CallRecord>();
  /** By nonce: the call whose round it is. */
  readonly #rounds = new Map<string, CallRecord>();

  began(client: string, what: string): CallRecord {
    const { operation, key } = readWhat(what);
    const call = `c${this.#calls.size + 1}`;
    const record = { call, client, operation, key, nonce: "", votes: new Map(), isOpen: true };
    this.#calls.set(call, record);
    return record;
  }

  ended(call: string): Pick<CallRecord, "operation" | "key"> & { votes: Record<string, Vote> | undefined } {
    const record = this.#calls.get(call)!;
    record.isOpen = false;
    const { operation, key, votes } = record;
    return { operation, key, votes: votes.size === 0 ? undefined : Object.fromEntries(votes) };
  }

  /** @returns the call for which a client sends a request, where that is known */
  sent(client: string, request: Request): string | undefined {
    const { operation, value, keys } = request;
    const nonce = nonceOf(value);
    const open = [...this.#calls.values()].filter((one) => one.isOpen && one.client === client).reverse();
    const kind = kindOf(request);
    let record = kind === "claim" ? undefined : open.find((one) => mainKind(one.operation) === kind);
    record ??= this.#rounds.get(nonce) ?? open.find((one) => mainKind(one.operation) === "claim");
    if (!record) return undefined;
    if (operation === "claim") this.#rounds.set(nonce, record);
    record.key ??= keys[0] === undefined ? undefined : resourceOf(keys[0]);
    if (kind === mainKind(record.operation) && record.nonce !== nonce) {
      record.nonce = nonce;
      record.votes.clear();
    }
    return record.call;
  }

  answered(
    call: string,
    {
      endpoint,
      operation,
      outcome,
    }: { readonly endpoint: string; readonly operation: string; readonly outcome: Vote },
  ): void {
    const record = this.#calls.get(call)!;
    if (operation === mainKind(record.operation)) record.votes.set(endpoint, outcome);
  }

  keyOf(call: string | undefined): string | undefined {
    return this.#calls.get(call ?? "")?.key;
  }
}

const kindOf = ({ operation, raises }: Request): string => (raises ? "raise fence" : operation);

/** The operation of the requests by which a call is decided. */
function mainKind(operation: string): string {
  if (operation === "release") return "end";
  return operation === "extend" || operation === "verify" ? "keep" : "claim";
}

/** `acquire a`: the operation, and the resource where it names one. */
function readWhat(what: string): { readonly operation: string; readonly key: string | undefined } {
  const [operation = what, key] = what.split(" ");
  return { operation, key };
}

/** `redlock:lock:{a}` → `a`, as calls and holds name it; what no key looks like stays as it is. */
export const resourceOf = (key: string): string => parseKey(key)?.resource ?? key;
