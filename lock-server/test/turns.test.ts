import { expect, test } from "vitest";
import type { CommandResult } from "../src/lock-server.ts";
import { inTurns } from "../src/turns.ts";

// Commands of one turn share a request, and each waits only as long as its own signal says.

type Commands = readonly (readonly (string | number)[])[];

/** What was sent, with the signal of each request, and requests that the test answers. */
function requests() {
  const sent: { commands: Commands; signal: AbortSignal; answer: () => void }[] = [];
  const send = inTurns(
    (commands, signal) =>
      new Promise<readonly CommandResult[]>((resolve) => {
        const results = commands.map(([, key]) => ({ result: String(key) }));
        sent.push({ commands, signal, answer: () => resolve(results) });
      }),
  );
  return { sent, send };
}

const signalOf = () => new AbortController().signal;
const turn = () => new Promise((resolve) => setTimeout(resolve));

test("one request carries the commands of a turn", async () => {
  const { sent, send } = requests();
  const answers = Array.from({ length: 30 }, (_, index) => send(["GET", `k${index}`], signalOf()));
  await turn();
  expect(sent.map(({ commands }) => commands.length)).toEqual([30]);
  sent[0]!.answer();
  expect((await Promise.all(answers)).map((one) => "result" in one && one.result)).toEqual(
    answers.map((_, index) => `k${index}`),
  );
});

test("what nobody waits for any more is not sent, and a request ends with the last who waits", async () => {
  const { sent, send } = requests();
  const [gone, first, second] = [1, 2, 3].map(() => new AbortController()) as [
    AbortController,
    AbortController,
    AbortController,
  ];
  const answers = [gone, first, second].map((one, index) =>
    send(["GET", index], one.signal).catch((cause) => cause),
  );
  gone.abort("gone");
  await turn();
  expect(await answers[0]).toBe("gone");
  expect(sent.map(({ commands }) => commands)).toEqual([
    [
      ["GET", 1],
      ["GET", 2],
    ],
  ]);
  first.abort("first");
  expect(await answers[1]).toBe("first");
  expect(sent[0]!.signal.aborted).toBe(false);
  second.abort("second");
  expect(await answers[2]).toBe("second");
  expect(sent[0]!.signal.aborted).toBe(true);
});
