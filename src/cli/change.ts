import { forgetKey, Idempotency, InProgressError } from "../idempotency/index.ts";
import { QuorumError, type Redlock } from "../index.ts";
import { forceRelease } from "../inspect/index.ts";
import { forceRelease as freeSynchronizer, Mailbox } from "../sync/index.ts";
import { type Call, clientOf } from "./access.ts";
import { type ExitCode, exitCode, type Outcome, UsageError, untilStopped } from "./environment.ts";
import { type Finding, findingLines, waitingText } from "./finding.ts";
import { look } from "./inspect.ts";
import { keyTarget, type Target } from "./target.ts";
import { duration, layout, printable } from "./text.ts";

// The commands that change something, and ask before.

/** A change, and what to say of it. */
interface Change {
  readonly redlock: Redlock;
  /** The change, for `--json`. */
  readonly subject: object;
  /** The target of a look before the question. Undefined: it cannot be. */
  readonly target: Target | undefined;
  readonly verb: "Free" | "Forget";
  readonly name: string;
  /** What there is to know before one decides. */
  readonly warning: string;
  act(): Promise<boolean>;
  /** What to say if it is done, if there was nothing to do, and if too few endpoints answered. */
  readonly done: string;
  readonly nothing: string;
  readonly failed: string;
  /** Looks what there is instead, if there was nothing to do. Undefined: nothing is. */
  whyNothing?(): Promise<string | undefined>;
}

/** Asks whether to make a change, unless `--yes` answers that, and makes it. */
async function change(
  { redlock, subject, target, verb, name, warning, act, done, nothing, failed, whyNothing }: Change,
  { values: { yes }, environment }: Call,
): Promise<Outcome> {
  const { ask, warn, width } = environment;
  const outcome = (code: ExitCode, text: string, fields?: object): Outcome => ({
    code,
    fields: { ...subject, done: code === exitCode.done, ...fields },
    lines: (columns) => layout([[text]], columns),
  });
  if (!yes) {
    if (!ask) throw new UsageError("there is no terminal to ask at; to go on without a question: --yes");
    const finding = target && (await look(redlock, target, environment));
    // Without a question, and without a request: somebody may have acquired it since, or a run have completed.
    if (finding && isNowhere(finding)) {
      const kinds = finding.kinds?.map((kind) => `--kind ${kind}`).join(" or ");
      return outcome(
        exitCode.nothing,
        kinds ? `${name}: there was no lock to free, but a synchronizer: ${kinds}` : nothing,
      );
    }
    const known = finding ? findingLines(finding, width) : [];
    for (const line of [...known, ...layout([[warning]], width)]) warn(line);
    const answer = await ask(printable(`${verb} ${name}? [y/N] `));
    if (!/^y(?:es)?$/i.test(answer.trim())) return outcome(exitCode.refused, "nothing was done");
  }
  try {
    const isDone = await untilStopped(environment, act());
    if (isDone) return outcome(exitCode.done, done);
    const why = whyNothing && (await untilStopped(environment, whyNothing()));
    return outcome(exitCode.nothing, why ?? nothing);
  } catch (error) {
    if (error instanceof InProgressError) {
      const { retryAfter } = error;
      const text = `${name}: a run is under way, or its process has died; try again in ${duration(retryAfter)}`;
      return outcome(exitCode.refused, text, { retryAfter });
    }
    if (!(error instanceof QuorumError)) throw error;
    const causes = error.votes.flatMap(({ cause }) => cause?.message ?? []).join("; ");
    const hasAnswer = error.votes.some(({ cause }) => !cause);
    const what = hasAnswer
      ? `${failed}: ${causes}`
      : `no endpoint has answered: ${causes}. To see what to fix: redlock-edge doctor`;
    throw new Error(what, { cause: error });
  }
}

function isNowhere({ votes }: Finding): boolean {
  return votes.every(({ state, attempts }) => /^(free|none)$/.test(state) && !attempts);
}

/** `redlock-edge free`: ends a hold, no matter whose it is. */
export async function free(call: Call): Promise<Outcome> {
  const { argument: name, values, access } = call;
  const { kind } = values;
  const redlock = clientOf(access, values);
  const planned: Change = {
    redlock,
    subject: { resource: name, kind },
    target: kind === undefined ? { resource: name } : undefined,
    verb: "Free",
    name,
    warning: `This ends ${kind ? `all holds of ${kind} ${name}` : "the hold"}, and stops nobody: a holder relies on it until it extends or checks it.`,
    act: () => (kind === undefined ? forceRelease(redlock, name) : freeSynchronizer(redlock, kind, name)),
    done: `${name} is freed`,
    nothing: kind
      ? `${name}: there was no ${kind} to free`
      : `${name}: there was no lock to free. To free a synchronizer of this name: --kind`,
    ...(kind === "Mailbox" && { whyNothing: () => messagesIn(redlock, name) }),
    failed: `${name} is freed at the endpoints that answered, but too few did; free it again when the others are back`,
  };
  return change(planned, call);
}

/** The messages of a mailbox whose turn nobody has. Undefined: there are none, or that is not known. */
async function messagesIn(redlock: Redlock, name: string): Promise<string | undefined> {
  const state = await new Mailbox(redlock, name).inspect().catch(() => undefined);
  return state && !state.isHeld && state.waiting > 0 ? `${name}: ${waitingText(state.waiting)}` : undefined;
}

/** `redlock-edge forget`: lets a key run again. */
export async function forget(call: Call): Promise<Outcome> {
  const { values, access, environment } = call;
  const redlock = clientOf(access, values);
  const finding = keyTarget(values.key!, values, access.variables, redlock);
  const target = await untilStopped(environment, finding);
  const { key, options, elsewhere } = target;
  const planned: Change = {
    redlock,
    subject: { key },
    target,
    verb: "Forget",
    name: key,
    warning: "The next call with this key runs its function, and its effect happens again.",
    act: () => forgetKey(new Idempotency(redlock), key, options),
    done: `${key} is forgotten: it can run again`,
    nothing: `${key}: there was nothing to forget. ${elsewhere}`,
    failed: `${key} is not forgotten everywhere: the next run would find the copy of an endpoint; forget it again when all are back`,
  };
  return change(planned, call);
}
