// What a command of a mailbox does, and what its reply means. Its script names its operation first, and replies a state.

/** The operations of the script, but for `step` and `post`, which say more in their arguments. */
const operations: Readonly<Record<string, string>> = { look: "look", keep: "extend", end: "release" };

/**
 * What a script does to a mailbox: `post` a message, `drain` without one, `step` to the next message, `close` if none waits, …
 *
 * @param words the script's arguments, from the operation on
 */
export function mailboxOperation(words: readonly string[]): string | undefined {
  const [operation = ""] = words;
  if (operation === "post") return words[9] === undefined ? "drain" : "post";
  if (operation === "step") return words[6] === "1" ? "close" : "step";
  return operations[operation];
}

/** What the reply says, in the words of users. */
export function mailboxResult(operation: string, reply: unknown): string {
  const [token, state, holder] = Array.isArray(reply) ? reply.map(String) : [];
  if (state === "handled") return "duplicate";
  if (state === "full") return "full";
  if (state === "stored" && holder === token) return "turn taken";
  if (state === "stored") return operation === "drain" ? "held by another" : "queued";
  if (state === "lost") return "gone";
  if (operation === "close") return state === "closed" ? "turn ended" : "more messages";
  return { extend: "extended", release: "released" }[operation] ?? "ok";
}
