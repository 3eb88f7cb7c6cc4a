import { storageName } from "./names.ts";
import type { TimelineEvent } from "./picture/timeline.ts";

/** What an event means, in a sentence; undefined for what only the picture shows. */
export function sentenceOf(event: TimelineEvent): string | undefined {
  const { phase, client = "", endpoint, fence, name = "", detail = "", outcome, operation = "" } = event;
  const withFence = fence === undefined ? "" : ` with fence ${fence}`;
  if (phase === "called")
    return operation === "delivery" ? `${detail} is delivered to ${client}.` : `${client} asks for it.`;
  if (phase === "returned") return returned(event);
  if (phase === "ended")
    return detail === "released" ? `${client} released it.` : `${client} lost it: ${detail}.`;
  if (phase === "executed" && endpoint === storageName) {
    if (outcome !== "granted")
      return `The ledger refuses what ${client} writes: ${detail.replace("refused: ", "")}.`;
    return `${client} writes to the ledger${withFence}.`;
  }
  if (phase === "violated") return `Broken: ${detail}.`;
  if (phase === "fault") return faultSentence(name, client, endpoint);
  if (phase === "healed" && !name.startsWith("clock")) {
    if (name === "frozen") return `${client} runs again.`;
    return name === "killed" ? `${endpoint} runs again.` : `${client} reaches ${endpoint} again.`;
  }
  return undefined;
}

function returned({ client = "", operation, outcome, fence, detail = "" }: TimelineEvent): string {
  if (operation === "delivery") return `${client} answered ${detail}.`;
  if (operation === "round") return `${client} is refused, and keeps trying.`;
  if (outcome === "granted") return `${client} has it${fence === undefined ? "" : `, with fence ${fence}`}.`;
  return `${client} did not get it: ${detail}.`;
}

function faultSentence(name: string, client: string, endpoint: string | undefined): string {
  if (name === "frozen") return `${client} is frozen: its process stands still.`;
  if (name === "killed") return `${endpoint} was killed.`;
  if (name === "partition") return `Nothing passes between ${client} and ${endpoint} any more.`;
  return `The wall clock of ${client || endpoint} jumped: ${name}.`;
}
