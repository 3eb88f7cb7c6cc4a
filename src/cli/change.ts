import { forgetKey, Idempotency, InProgressError } from "../idempotency/index.ts";
import { forceRelease } from "../inspect/index.ts";
import { forceRelease as freeSynchronizer } from "../sync/index.ts";
import { type Call, clientOf } from "./access.ts";
import { type ExitCode, exitCode, type Outcome, UsageError } from "./environment.ts";
import { elsewhere, type Finding, findingText, look } from "./inspect.ts";
import { keyTarget } from "./target.ts";
import { duration, layout } from "./text.ts";

// The commands that change something, and ask before.

/** A change, and what to say of it. */
interface Change {
  /** The change, for `--json`. */
  readonly subject: object;
  /** What is there now. Undefined: nobody can see that in a look. */
  readonly look: (() => Promise<Finding>) | undefined;
  /** What there is to know before one decides. */
  readonly warning: string;
  readonly act: () => Promise<boolean>;
  readonly done: string;
  readonly nothing: string;
}

/** Asks whether to make a change, unless `--yes` answers that, and makes it. */
async function change(planned: Change, call: Call): Promise<Outcome> {
  const { subject, act, done, nothing } = planned;
  const outcome = (code: ExitCode, text: string, fields?: object): Outcome => ({
    code,
    fields: { ...subject, done: code === exitCode.done, ...fields },
    text: [text],
  });
  const answer = call.values.yes ? "yes" : await answerTo(planned, call);
  if (answer === "nothing") return outcome(exitCode.nothing, nothing);
  if (answer === "no") return outcome(exitCode.refused, "nothing was done");
  try {
    return (await act()) ? outcome(exitCode.done, done) : outcome(exitCode.nothing, nothing);
  } catch (error) {
    if (!(error instanceof InProgressError)) throw error;
    const { key, retryAfter } = error;
    const text = `${key}: a run is under way, or its process has died; try again in ${duration(retryAfter)}`;
    return outcome(exitCode.refused, text, { retryAfter });
  }
}

/** Whether the person at the terminal wants a change. `nothing`: there is nothing to change, so nobody is asked. */
async function answerTo(planned: Change, { environment }: Call): Promise<"yes" | "no" | "nothing"> {
  const { ask, warn, width } = environment;
  if (!ask) throw new UsageError("there is no terminal to ask at; to go on without a question: --yes");
  const finding = await planned.look?.();
  const isThere = finding?.votes.some(({ state = "", attempts }) => !/^(free|none)$/.test(state) || attempts);
  if (finding && !isThere) return "nothing";
  const known = finding ? findingText(finding) : [];
  for (const line of layout([...known, planned.warning], width)) warn(line);
  const answer = await ask("Go on? [y/N] ");
  return /^y(?:es)?$/i.test(answer.trim()) ? "yes" : "no";
}

/** `redlock-edge free`: ends a hold, no matter whose it is. */
export async function free(call: Call): Promise<Outcome> {
  const { argument: name, values } = call;
  const { kind } = values;
  const redlock = clientOf(call);
  const held = kind ? `all holds of ${kind} ${name}` : `the hold of ${name}`;
  const planned: Change = {
    subject: { resource: name, kind },
    look: kind === undefined ? () => look(redlock, { resource: name }) : undefined,
    warning: `This ends ${held}, and stops nobody: a holder relies on it until it extends or checks it.`,
    act: () => (kind === undefined ? forceRelease(redlock, name) : freeSynchronizer(redlock, kind, name)),
    done: `${name} is freed`,
    nothing: `${name}: there was no ${kind ?? "lock"} to free${kind ? "" : "; for a synchronizer: --kind <kind>"}`,
  };
  return change(planned, call);
}

/** `redlock-edge forget`: lets a key run again. */
export async function forget(call: Call): Promise<Outcome> {
  const redlock = clientOf(call);
  const target = await keyTarget(call);
  const { key, options } = target;
  const planned: Change = {
    subject: { key },
    look: () => look(redlock, target),
    warning: `The next call with ${key} runs its function, and its effect happens again.`,
    act: () => forgetKey(new Idempotency(redlock), key, options),
    done: `${key} is forgotten: it can run again`,
    nothing: `${key}: there was nothing to forget. ${elsewhere}`,
  };
  return change(planned, call);
}
