import { forgetKey, Idempotency, InProgressError } from "../idempotency/index.ts";
import { QuorumError, type Redlock } from "../index.ts";
import { forceRelease } from "../inspect/index.ts";
import { forceRelease as freeSynchronizer } from "../sync/index.ts";
import { type Call, clientOf } from "./access.ts";
import { type ExitCode, exitCode, type Outcome, UsageError } from "./environment.ts";
import { type Finding, findingText } from "./finding.ts";
import { look } from "./inspect.ts";
import { keyTarget, type Target } from "./target.ts";
import { duration, layout, printable } from "./text.ts";

// The commands that change something, and ask before.

/** A change, and what to say of it. */
interface Change {
  readonly redlock: Redlock;
  /** The change, for `--json`. */
  readonly subject: object;
  readonly target: Target;
  /** Whether nobody can see in a look what would be changed. */
  readonly isHidden?: boolean;
  readonly question: string;
  /** What there is to know before one decides. */
  readonly warning: string;
  act(): Promise<boolean>;
  readonly done: string;
  /** What to say if there was nothing to do, but this. */
  nothing(instead: Finding): string;
  /** What to say if too few endpoints answered. */
  readonly failed: string;
}

/** Asks whether to make a change, unless `--yes` answers that, and makes it. */
async function change(planned: Change, { values: { yes }, environment }: Call): Promise<Outcome> {
  const { redlock, subject, target, act, done, nothing } = planned;
  const outcome = (code: ExitCode, text: string, fields?: object): Outcome => ({
    code,
    fields: { ...subject, done: code === exitCode.done, ...fields },
    text: [text],
  });
  if (!yes) {
    const { ask, warn, width } = environment;
    if (!ask) throw new UsageError("there is no terminal to ask at; to go on without a question: --yes");
    const finding = planned.isHidden ? undefined : await look(redlock, target);
    // Without a question, and without a request: somebody may have acquired it since, or a run have completed.
    if (finding && isNowhere(finding)) return outcome(exitCode.nothing, nothing(finding));
    const known = finding ? findingText(finding) : [];
    for (const line of layout([...known, planned.warning], width)) warn(line);
    const answer = await ask(printable(`${planned.question} [y/N] `));
    if (!/^y(?:es)?$/i.test(answer.trim())) return outcome(exitCode.refused, "nothing was done");
  }
  try {
    if (await act()) return outcome(exitCode.done, done);
    return outcome(exitCode.nothing, nothing(await look(redlock, target)));
  } catch (error) {
    if (error instanceof QuorumError) {
      const causes = error.votes.flatMap(({ cause }) => cause?.message ?? []).join("; ");
      throw new Error(`${planned.failed}: ${causes}. To see what to fix: redlock-edge doctor`, {
        cause: error,
      });
    }
    if (!(error instanceof InProgressError)) throw error;
    const { retryAfter } = error;
    const text = `a run is under way, or its process has died; try again in ${duration(retryAfter)}`;
    return outcome(exitCode.refused, `${error.key}: ${text}`, { retryAfter });
  }
}

function isNowhere({ votes }: Finding): boolean {
  return votes.every(({ state, attempts }) => /^(free|none)$/.test(state) && !attempts);
}

/** `redlock-edge free`: ends a hold, no matter whose it is. */
export async function free(call: Call): Promise<Outcome> {
  const { argument: name, values } = call;
  const { kind } = values;
  const redlock = clientOf(call);
  const planned: Change = {
    redlock,
    subject: { resource: name, kind },
    target: { resource: name },
    isHidden: kind !== undefined,
    question: `Free ${name}?`,
    warning: `This ends ${kind ? `all holds of ${kind} ${name}` : "the hold"}, and stops nobody: a holder relies on it until it extends or checks it.`,
    act: () => (kind === undefined ? forceRelease(redlock, name) : freeSynchronizer(redlock, kind, name)),
    done: `${name} is freed`,
    nothing({ kinds = [], why }) {
      const other = kinds.map((each) => `--kind ${each}`).join(" or ");
      const instead = kind === undefined && other ? `, but a synchronizer: ${other}` : "";
      const rest = kind !== undefined && kinds.includes(kind) ? `: ${why}` : instead;
      return `${name}: there was no ${kind ?? "lock"} to free${rest}`;
    },
    failed: `too few endpoints answered, so ${name} may still be held; free it again when the others are back`,
  };
  return change(planned, call);
}

/** `redlock-edge forget`: lets a key run again. */
export async function forget(call: Call): Promise<Outcome> {
  const redlock = clientOf(call);
  const target = await keyTarget(call);
  const { key, options, elsewhere } = target;
  const planned: Change = {
    redlock,
    subject: { key },
    target,
    question: `Forget ${key}?`,
    warning: "The next call with this key runs its function, and its effect happens again.",
    act: () => forgetKey(new Idempotency(redlock), key, options),
    done: `${key} is forgotten: it can run again`,
    nothing: () => `${key}: there was nothing to forget. ${elsewhere}`,
    failed: `not every endpoint answered, so the next run may find the copy of one; forget ${key} again when all are back`,
  };
  return change(planned, call);
}
