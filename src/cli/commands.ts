import type { Call } from "./access.ts";
import { forget, free } from "./change.ts";
import { doctor } from "./doctor/doctor.ts";
import type { Outcome } from "./environment.ts";
import { inspectOnce } from "./inspect.ts";
import { list } from "./list.ts";
import { keyOptions, type OptionName } from "./options.ts";

/** One command. */
export interface Command {
  readonly name: string;
  /** What other programs call it. */
  readonly foreign: string;
  /** For the list of commands. */
  readonly summary: string;
  /** What must follow its name: one of these; `""`: nothing. */
  readonly usage: readonly string[];
  /** One sentence about the command. */
  readonly text: string;
  readonly examples: readonly string[];
  /** Its own options, without the options that all commands share. */
  readonly options: readonly OptionName[];
  readonly run: (call: Call) => Promise<Outcome>;
}

/** How the delivery of a webhook is named. */
const delivery = "--key evt_1 --webhook stripe --secret-env SECRET";

/** All commands. */
export const commands: readonly Command[] = [
  {
    name: "doctor",
    foreign: "check diagnose health ping status test verify",
    summary: "checks each endpoint, and says what is wrong and how to fix it",
    usage: [""],
    text: "Checks whether each endpoint can be reached, whether the token or password is right and may write, whether two endpoints are the same database, whether the dialect is right and scripts are allowed, how far the clocks differ, and how long a request takes. It writes a few keys below <prefix>:doctor and deletes them; after Ctrl-C, they expire within 2 minutes. About 50 requests per endpoint.",
    examples: ["doctor --read-env .dev.vars"],
    options: ["conformance"],
    run: doctor,
  },
  {
    name: "list",
    foreign: "held keys locks ls ps",
    summary: "shows what is held now, by whom, and for how long",
    usage: [""],
    text: "Lists locks, permits, holders of the other synchronizers, and idempotent runs that are under way, with their notes. It finds them by SCAN, never by KEYS, so the database serves other requests in between. But SCAN walks over all keys of a database, including those of other programs, so this costs about one command per 1 000 keys, and two more for each key below the prefix.",
    examples: ["list", "list --prefix myapp --limit 10000"],
    options: ["limit"],
    run: list,
  },
  {
    name: "inspect",
    foreign: "describe get info read show who",
    summary: "shows who holds a lock, or what is stored for an idempotency key, and why",
    usage: ["<resource>", "--key <key> [--scope <name>]…"],
    text: "Reads one name at every endpoint and changes nothing. You see the holder, the remaining time and the fence, and why the lock is held, free or undecided. With --key you see the record of an idempotent run, its age, and the number of attempts.",
    examples: ["inspect invoice:42", `inspect ${delivery}`],
    options: keyOptions,
    run: inspectOnce,
  },
  {
    name: "free",
    foreign: "break del delete kill release remove rm unlock",
    summary: "frees a lock, no matter who holds it; asks first",
    usage: ["<resource>", "<name> --kind <kind>"],
    text: "Frees a lock, or with --kind a synchronizer, no matter who holds it. This does not stop the holder, which relies on the lock until it extends or checks it. So stop the holder first: only a fence protects what it still writes.",
    examples: ["free invoice:42", "free partner-api --kind semaphore --yes"],
    options: ["kind", "yes"],
    run: free,
  },
  {
    name: "forget",
    foreign: "clear purge reset",
    summary: "removes what is stored for an idempotency key, so that it runs again; asks first",
    usage: ["--key <key> [--scope <name>]…"],
    text: "Removes the stored result, the count of attempts, and a damaged record: the next call with this key runs your handler, and its effect happens again. A run that is under way is not removed, so wait until its lease has ended. Every endpoint must answer.",
    examples: [`forget ${delivery}`],
    options: [...keyOptions, "yes"],
    run: forget,
  },
];
