import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { githubExamples } from "../../../tools/deliveries.mjs";

// By the body's hash, two events with equal bodies are one. The page names GitHub's kinds for which that can happen.

const page = readFileSync(new URL("../../../docs/senders.md", import.meta.url), "utf8");

/** Parts of a body that say nothing about the occurrence: they are the same in the next event. */
const lasting = /^(repository|organization|sender|installation|enterprise)$/;

/** Kinds that happen once to their object, or that change the times of the repository or installation in the body. */
const once =
  /^(create|delete|gollum|installation|public|push|repository|repository_import|label (created|deleted)|team (created|deleted))$/;

function hasTime(value: unknown): boolean {
  if (typeof value === "string") return /^\d{4}-\d\d-\d\dT/.test(value);
  return Object.values(Object(value)).some(hasTime);
}

test("every kind of GitHub's events that has no time of its own is on the page", () => {
  const timeless = githubExamples().flatMap(({ name, examples }) =>
    examples
      .filter((body) => !Object.entries(body).some(([part, value]) => !lasting.test(part) && hasTime(value)))
      .filter(({ action }) => !once.test(name) && !once.test(`${name} ${action}`))
      .map(() => name),
  );
  expect(new Set(timeless).size).toBeGreaterThan(10);
  expect([...new Set(timeless)].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
