import type { Invariant } from "../world/invariants.ts";
import type { Theme } from "../world/themes.ts";

/** A known defect that is put into the library while it is bundled for the simulator. */
export interface Mutant {
  readonly name: string;
  /** What it breaks, and which library has it. */
  readonly breaks: string;
  readonly patches: readonly Patch[];
  /** The invariants that may notice it. Any other violation would be a coincidence. */
  readonly noticedBy: readonly Invariant[];
  /** The only theme that uses the code. Default: by the file. */
  readonly theme?: Theme;
}

/** Replaces a text that must occur exactly once in a function of src/, or in the twin of a Lua script. */
export interface Patch {
  readonly file: string;
  /** The name of a function, method, class or constant. Undefined: the whole file. */
  readonly within?: string | undefined;
  readonly find: string;
  readonly replace: string;
}

/**
 * A list of one patch, which most mutants have. Others join several: `[...patch(), ...patch()]`.
 *
 * @param place a file of src/, or of twins/, and what it declares: `lock/lock.ts #extendOnQuorum`
 */
export function patch(place: string, find: string, replace: string): readonly [Patch] {
  const [file, within] = place.split(" ");
  return [{ file: file!, within, find, replace }];
}

/** Two holders at once, or one that a quorum no longer keeps the others from. */
export const twoHolders: readonly Invariant[] = [
  "mutual exclusion",
  "what is held stands",
  "one holder per slot",
  "permits within the limit",
  "one run per interval",
  "one run per tick",
];

/** Files that only one theme uses. */
const themes: readonly (readonly [RegExp, Theme])[] = [
  [/\/(internal\/)?mailbox/, "mailbox"],
  [/^sync\/debounce\./, "debounce"],
  [/^sync\/singleton\./, "singleton"],
  [/^sync\/refresh-once\./, "refresh"],
  [/^wake-up\//, "wake-ups"],
];

/** Whether a simulation of this theme may use the code that the mutant changes. */
export function concerns({ patches, theme }: Mutant, played: Theme): boolean {
  const only = theme ?? themes.find(([form]) => patches.some(({ file }) => form.test(file)))?.[1];
  return only === undefined || only === played;
}

/** Two holders, or two runs, at once. */
export const twoAtOnce: readonly Invariant[] = [...twoHolders, "one handler at a time"];
