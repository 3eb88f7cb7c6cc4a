import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { askAt } from "../../../src/cli/environment.ts";

/** Asks, types something once the question is there, and returns the answer. */
async function answerTo(type: (input: PassThrough) => void): Promise<string> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let shown = "";
  output.on("data", (bytes: Buffer) => {
    shown += bytes;
  });
  const answer = askAt({ stdin: input, stderr: output } as never, "Go on? [y/N] ");
  await expect.poll(() => shown).toContain("Go on? [y/N] ");
  type(input);
  return answer;
}

test.each([
  ["an answer", "yes", (input: PassThrough) => input.write("yes\n")],
  ["nothing", "", (input: PassThrough) => input.write("\n")],
  ["the end of the input", "", (input: PassThrough) => input.end()],
])("%s is the answer %j", async (_, expected, type) => {
  expect(await answerTo((input) => void type(input))).toBe(expected);
});
