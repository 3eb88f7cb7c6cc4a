import type { Call } from "./access.ts";
import { forget, free } from "./change.ts";
import { doctor } from "./doctor/doctor.ts";
import type { Outcome } from "./environment.ts";
import { inspectOnce } from "./inspect.ts";
import { list } from "./list.ts";
import { keyOptions, type OptionName } from "./options.ts";

/** One command. */
export interface Command {
  /** For the list of commands. */
  readonly summary: string;
  /** What must follow its name. */
  readonly usage: string;
  /** One sentence about the command. */
  readonly text: string;
  /** Its own options, without the options that all commands share. */
  readonly options: readonly OptionName[];
  readonly run: (call: Call) => Promise<Outcome>;
}

/** All commands. */
export const commands: Readonly<Record<string, Command>> = {
  doctor: {
    summary: "checks each endpoint, and says what is wrong and how to fix it",
    usage: "",
    text: "Checks whether each endpoint can be reached, whether the token or password is right and may write, whether two endpoints are the same database, whether the dialect is right and scripts are allowed, how far the clocks differ, and how long a request takes. It writes a few keys below <prefix>:doctor, which expire within 2 minutes.",
    options: ["conformance"],
    run: doctor,
  },
  list: {
    summary: "shows what is held now, by whom, and for how long",
    usage: "",
    text: "Lists locks, permits, holders of the other synchronizers, and idempotent runs that are under way, with their notes. It finds them by SCAN, never by KEYS, so the database serves other requests in between. But SCAN walks over all keys of a database, including those of other programs, so this costs about one command per 1 000 keys, and two more for each key below the prefix.",
    options: ["limit"],
    run: list,
  },
  inspect: {
    summary: "shows who holds a lock, or what is stored for an idempotency key, and why",
    usage: "<resource>|--key <key>",
    text: "Reads one name at every endpoint and changes nothing. You see the holder, the remaining time and the fence, and why the lock is held, free or undecided. With --key you see the record of an idempotent run, its age, and the number of attempts.",
    options: keyOptions,
    run: inspectOnce,
  },
  free: {
    summary: "frees a lock, no matter who holds it; asks first",
    usage: "<resource>",
    text: "Frees a lock, or with --kind a synchronizer, no matter who holds it. This does not stop the holder, which relies on the lock until it extends or checks it. So stop the holder first: only a fence protects what it still writes.",
    options: ["kind", "yes"],
    run: free,
  },
  forget: {
    summary: "removes what is stored for an idempotency key, so that it runs again; asks first",
    usage: "--key <key>",
    text: "Removes the stored result, the count of attempts, and a damaged record: the next call with this key runs your handler, and its effect happens again. A run that is under way is not removed, so wait until its lease has ended. Every endpoint must answer.",
    options: [...keyOptions, "yes"],
    run: forget,
  },
};
