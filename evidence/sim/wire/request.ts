import type { Reply } from "../../../local/src/memory/index.ts";
import type { Command } from "../../../src/index.ts";
import type { Mail } from "./mailboxes.ts";

/** What a command of the library does. Simulations check the library by what it sends, not by its internal state. */
export interface Request {
  /**
   * `claim`: writes values where there are none; `restore`: the same, for a holder that knows that the server has lost them;
   * `keep`: changes the ttl of values, replaces them, or only looks whether they are there; `end`: removes them, or replaces
   * them by what is no claim; `free`: removes whatever is there; `peek`: reads; `announce`: says that a call was made; `mail`: is about a mailbox; `tell`: publishes.
   */
  readonly operation: "claim" | "restore" | "keep" | "end" | "free" | "peek" | "announce" | "mail" | "tell";
  readonly keys: readonly string[];
  /** The whole value, or the pending record. Of a run with locks the value of its locks. */
  readonly value: string;
  /** By key: what is claimed, or expected there. Only the record of a run with locks differs from `value`. */
  readonly own: readonly string[];
  /** By key, of values at keys of their own: what a `keep` or an `end` writes there; "": it is deleted. */
  readonly next?: readonly string[];
  readonly tombstone: string | undefined;
  /** The fence counters that it writes. */
  readonly counters?: readonly string[];
  /** Only raises the fence counters; the value is left as it is. */
  readonly raises: boolean;
  /** ms for which the value is to stand; of values at keys of their own and announcements only. 0: it does not change. */
  readonly ttl?: number;
  /** The value is a member of a set. */
  readonly isMember?: boolean;
  /** The key and name under which a waiting writer is announced, if this announces one. */
  readonly announces?: { readonly key: string; readonly id: string } | undefined;
  /** The counter that is read beside the first key. */
  readonly counter?: string | undefined;
  /** What it says to a mailbox. */
  readonly mail?: Mail;
  /** A further key that the request depends on. */
  readonly about?: string;
  /** Whether a server's reply says that it was done. */
  readonly isDone: (reply: Reply) => boolean;
}

/** A request about one value at all its keys. */
export function requestOf(
  operation: Request["operation"],
  keys: readonly string[],
  value: string,
  more: Partial<Request> & Pick<Request, "isDone">,
): Request {
  const own = keys.map(() => value);
  return { operation, keys, value, own, tombstone: undefined, raises: false, ...more };
}

/** A command's keys and its other words. */
export function partsOf([name, second = "", ...rest]: readonly string[]): {
  readonly keys: readonly string[];
  readonly words: readonly string[];
} {
  if (name !== "EVALSHA" && name !== "EVAL") return { keys: [second], words: rest };
  const [count, ...names] = rest;
  return { keys: names.slice(0, Number(count)), words: names.slice(Number(count)) };
}

/** What a lock that is handed over has from now on, where a request puts it in the place of its nonce. */
export function successorOf({ next, ...request }: Request): Request | undefined {
  const value = next?.[0];
  if (request.operation !== "keep" || !value || nonceOf(value) === nonceOf(request.value)) return undefined;
  return { ...request, value, own: request.keys.map(() => value) };
}

/** Whether a request claims nothing that has a trail: it is about the count of a key's runs or a mailbox, or publishes. */
export function isCount({ operation, value }: Request): boolean {
  return operation === "tell" || operation === "mail" || value.startsWith("A1 ");
}

/** Whether a request is about the tombstone of a message that hands a lock over, which a process claims that resumes the lock. */
export function isMessage({ keys: [key = ""] }: Request): boolean {
  return /^[^{]*:void:/.test(key);
}

/** The part of a value that differs in every round: a lock's nonce, or a run's token. */
export function nonceOf(value: string): string {
  const record = /^[PCN]1 (\S+) /.exec(value);
  return record ? record[1]! : value.slice(0, 33);
}

/** Whether a command stores the record of an idempotent run that has ended. Called for every request. */
export function isCompletion(command: Command): boolean {
  return command.some((word) => typeof word === "string" && /^[CN]1 /.test(word));
}
