import { doctor } from "./doctor/doctor.ts";
import type { Environment, Outcome } from "./environment.ts";
import { forget, free } from "./free-and-forget.ts";
import { inspectOnce } from "./inspect.ts";
import { keyOptions, type OptionName, type Values } from "./options.ts";
import { watch } from "./watch.ts";

/** One command. */
export interface Command {
  readonly name: string;
  /** For the list of commands. */
  readonly summary: string;
  /** What must follow its name: one of these; `""`: nothing. */
  readonly usage: readonly string[];
  /** What it does. */
  readonly text: string;
  readonly examples: readonly string[];
  /** Its options, without those of all commands. */
  readonly options: readonly OptionName[];
  /** Resolves with undefined where it has said all. */
  readonly run: (argument: string, values: Values, environment: Environment) => Promise<Outcome | undefined>;
}

/** All commands. */
export const commands: readonly Command[] = [
  {
    name: "doctor",
    summary: "checks each endpoint, and says what is wrong and what to fix",
    usage: [""],
    text: "Checks each endpoint: whether it is reachable, the token right and not read-only, two of them the same database, the dialect right, scripts allowed; how far its clock is from this machine's, and how long a request takes. It writes a few keys below the prefix, which it deletes or which expire soon. About 50 requests per endpoint.",
    examples: ["doctor --read-env .dev.vars"],
    options: ["conformance"],
    run: doctor,
  },
  {
    name: "inspect",
    summary: "shows who holds a lock, or what is stored for an idempotency key, and why",
    usage: ["<resource>", "--key <key> [--scope <name>]…"],
    text: "Reads the state at every endpoint and changes nothing: votes, holder, remaining time, fence, and why it is held, free or undecided, or which synchronizer has keys of this name. With --key: the record of idempotent runs, its age, and the number of attempts.",
    examples: ["inspect invoice:42", "inspect --key evt_1 --scope stripe --json"],
    options: ["key", ...keyOptions],
    run: inspectOnce,
  },
  {
    name: "watch",
    summary: "looks again and again, and prints a line for each change",
    usage: ["<resource>", "--key <key> [--scope <name>]…"],
    text: "Inspects again and again until Ctrl-C, and prints a line whenever the state, the holder, the fence or the answer of an endpoint has changed, or the lock or lease was extended. It sees a change at most one interval late, and none that was undone in between. Each look costs one request per endpoint, and one more where the lock is free.",
    examples: ["watch invoice:42 --interval 500"],
    options: ["interval", "key", ...keyOptions],
    run: watch,
  },
  {
    name: "free",
    summary: "frees a lock, no matter who holds it; asks first",
    usage: ["<resource>", "<name> --kind <kind>"],
    text: "Frees a lock, or with --kind a synchronizer, no matter who holds it. Its holder is not stopped: it learns of it at its next extension or check only, and relies on its lock until then. So stop the holder first; only a fence protects what it still writes.",
    examples: ["free invoice:42", "free partner-api --kind semaphore --yes"],
    options: ["kind", "yes"],
    run: free,
  },
  {
    name: "forget",
    summary: "removes what is stored for an idempotency key, so that it runs again; asks first",
    usage: ["--key <key> [--scope <name>]…"],
    text: "Removes the result, the count of attempts, and any value that is not a record: the next call with this key runs the handler, and its effect happens again. A run under way is not removed: wait until its lease has ended. All endpoints must answer.",
    examples: ["forget --key evt_1 --webhook stripe --secret-env STRIPE_SECRET --handler /webhooks/stripe"],
    options: ["key", ...keyOptions, "yes"],
    run: forget,
  },
];
