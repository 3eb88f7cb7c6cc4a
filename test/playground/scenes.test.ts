import { expect, test } from "vitest";
import { usualSeed } from "../../playground/address.ts";
import type { TimelineEvent } from "../../playground/picture/timeline.ts";
import { type Recording, record } from "../../playground/recording.ts";
import { Replay } from "../../playground/replay.ts";
import { type Scene, scenes } from "../../playground/scenes/index.ts";

// The playground's scenes, without its page: what they are to show happens, and their captions say what does.

const [twice, lateWriter, mailbox, evenSplit, expired] = scenes as [Scene, Scene, Scene, Scene, Scene];

test.each<[id: string, act: number, sentence: RegExp]>([
  ["twice", 0, /charged twice/],
  ["twice", 1, /charged once/],
  ["late-writer", 0, /overwrote/],
  ["late-writer", 1, /was refused/],
  ["mailbox", 0, /is stuck/],
  ["mailbox", 1, /are answered, in one turn/],
  ["expired-on-arrival", 0, /^Three endpoints granted it/],
])("%s, act %i, ends with a sentence", async (id, act, sentence) => {
  const scene = scenes.find((each) => each.id === id)!;
  expect((await record(scene, act)).stage.outcome()).toMatch(sentence);
});

const acts = scenes.flatMap((scene) => scene.acts.map((_, act) => [scene.id, act, scene] as const));

test.each(acts)("%s, act %i, happens as it was recorded, however its time passes", async (_, act, scene) => {
  const { events, end } = await record(scene, act);
  const again: TimelineEvent[] = [];
  const replay = new Replay(scene, { act, seed: usualSeed, clicks: [] }, (event) => again.push(event));
  void replay.stage.play();
  // The frames of a display.
  while (replay.elapsed < end) await replay.advance(replay.elapsed + 17);
  // Calls are numbered in the process.
  const shown = (all: readonly TimelineEvent[]) => all.map(({ call, ...event }) => event);
  expect(shown(again)).toEqual(shown(events));
});

/** Members that an event has, or has not. */
type Members = { readonly [Name in keyof TimelineEvent]?: TimelineEvent[Name] | undefined };

/** What has happened until a step, to be compared with its words. */
class Past {
  readonly #events: readonly TimelineEvent[];
  readonly #time: number;

  constructor({ events }: Recording, time: number) {
    this.#events = events;
    this.#time = time;
  }

  /** Whether it happened in the ms before the step: a moment later its link would be too late. */
  now(wanted: Members): boolean {
    return this.all(wanted).some(({ time }) => time > this.#time - 1);
  }

  all(wanted: Members): TimelineEvent[] {
    const fits = (event: TimelineEvent) =>
      Object.entries(wanted).every(([name, value]) => Reflect.get(event, name) === value);
    return this.#events.filter((event) => event.time <= this.#time && fits(event));
  }

  /** Who holds a value at how many endpoints. */
  holders(): Record<string, number> {
    const byEndpoint = new Map<string, string>();
    for (const { phase, endpoint = "", holder = "", until = 0 } of this.all({})) {
      if (phase === "stored" && until > this.#time) byEndpoint.set(endpoint, holder);
      if (phase === "removed") byEndpoint.delete(endpoint);
    }
    const counts: Record<string, number> = {};
    for (const holder of byEndpoint.values()) counts[holder] = (counts[holder] ?? 0) + 1;
    return counts;
  }
}

const granted = { phase: "returned", operation: "acquire", outcome: "granted" } as const;
const refused = { phase: "returned", operation: "round", outcome: "held" } as const;
const write = { phase: "executed", endpoint: lateWriter.storage } as const;
const stored = { phase: "stored" } as const;

type Claims = readonly [Scene, act: number, readonly Claim[]];
type Claim = readonly [RegExp, isTrue: (past: Past, ...words: string[]) => boolean];

/** Each caption, with what its numbers and names are compared with: groups of the expression are its words. */
const claims: readonly Claims[] = [
  [
    twice,
    0,
    [
      [/delivers (\w+),/, (past, key) => past.now({ phase: "called", client: "delivery 1", key: key! })],
      [/delivers (\w+) again/, (past, key) => past.now({ phase: "called", client: "delivery 2", key: key! })],
      [
        /has charged (\S+), and the second one charges it again/,
        (past, key) =>
          past.now({ phase: "violated" }) &&
          past
            .all({ ...stored, key: key! })
            .map(({ holder }) => holder)
            .join() === "delivery 1,delivery 2",
      ],
    ],
  ],
  [
    twice,
    1,
    [
      [/handler begins/, (past) => past.now({ phase: "called", client: "delivery 1" })],
      [/delivers evt_1 again/, (past) => past.now({ phase: "called", client: "delivery 2" })],
      [/charges (\S+)\./, (past, key) => past.now({ ...stored, holder: "delivery 1", key: key! })],
      [
        /waits for its result/,
        (past) => past.now({ phase: "executed", client: "delivery 2", endpoint: "redis", outcome: "held" }),
      ],
      [
        /its answer is stored/,
        (past) =>
          past.now({ phase: "returned", client: "delivery 1" }) &&
          past.all({ ...stored, key: "evt_1 is done" }).length === 1,
      ],
      [
        /Its handler has not run/,
        (past) =>
          past.now({ phase: "returned", client: "delivery 2", name: "replayed" }) &&
          past.now({ phase: "upheld" }) &&
          past.all({ phase: "sent", endpoint: twice.storage }).length === 1,
      ],
    ],
  ],
  [
    mailbox,
    0,
    [
      [/the lock of the conversation/, (past) => past.holders().Ann === 1 && past.now(stored)],
      [/answers message 1/, (past) => past.now({ phase: "executed", endpoint: mailbox.storage })],
      [
        /is refused the lock/,
        (past) => past.now({ phase: "executed", client: "Bob", operation: "acquire", outcome: "held" }),
      ],
      [
        /It is empty/,
        (past) =>
          past.now({ phase: "executed", client: "Ann", operation: "look" }) &&
          past.all({ ...stored, key: "message 2" }).length === 0,
      ],
      [/message 2 is on the list/, (past) => past.now({ ...stored, key: "message 2", holder: "Bob" })],
      [
        /between her last look and her release/,
        (past) =>
          past.now({ phase: "executed", client: "Ann", operation: "release" }) &&
          past.now({ phase: "removed", key: "thread:7" }) &&
          past.all({ ...stored, key: "message 2" }).length === 1,
      ],
      [
        /message 2 waits/,
        (past) =>
          past.now({ phase: "violated" }) &&
          past.all({ phase: "sent", endpoint: mailbox.storage }).length === 1,
      ],
    ],
  ],
  [
    mailbox,
    1,
    [
      [/the turn of the conversation/, (past) => past.now({ ...stored, key: "the turn", holder: "Ann" })],
      [/answers message 1/, (past) => past.now({ phase: "executed", endpoint: mailbox.storage })],
      [
        /on their way when message 2 arrives/,
        (past) =>
          past.now({ ...stored, key: "message 2", holder: "Bob" }) &&
          past.all({ phase: "sent", client: "Ann", operation: "close" }).length === 1 &&
          past.all({ phase: "executed", client: "Ann", operation: "close" }).length === 0,
      ],
      [
        /finds message 2/,
        (past) =>
          past.now({ phase: "executed", client: "Ann", operation: "close", outcome: "held" }) &&
          past.all({ phase: "removed", key: "the turn" }).length === 0,
      ],
      [
        /answers message 2/,
        (past) => past.now({ phase: "executed", client: "Ann", operation: "answer message 2" }),
      ],
      [/ends the turn/, (past) => past.now({ phase: "removed", key: "the turn" })],
    ],
  ],
  [
    evenSplit,
    0,
    [
      [/ask all three/, (past) => past.all({ phase: "sent", operation: "acquire" }).length === 9],
      [
        /redis-1 is (\w+)'s, redis-2 is (\w+)'s. Nobody has two/,
        (past, one = "", two = "") =>
          past.now({ ...stored, endpoint: "redis-1", holder: one }) &&
          past.now({ ...stored, endpoint: "redis-2", holder: two }) &&
          Object.values(past.holders()).join() === "1,1,1",
      ],
      [
        /two endpoints have refused each of them. All roll back/,
        (past) =>
          past.all({ phase: "answered", operation: "acquire", outcome: "held" }).length === 6 &&
          past.all({ phase: "sent", operation: "release" }).length === 3,
      ],
      [
        /(\w+) waited least.* fence (\d+)\./,
        (past, client = "", fence) =>
          past.all({ phase: "sent", operation: "acquire" })[9]?.client === client &&
          past.now({ ...granted, client, fence: Number(fence) }) &&
          past.holders()[client] === 3,
      ],
      [
        /(\w+) comes later and is refused/,
        (past, client = "") => past.now({ ...refused, client }) && Object.keys(past.holders()).length === 1,
      ],
      [
        /(\w+) has released/,
        (past, client = "") =>
          past.now({ phase: "ended", client }) && Object.keys(past.holders()).length === 0,
      ],
    ],
  ],
  [
    expired,
    0,
    [
      [/only 300 ms/, (past) => past.all({ phase: "sent", operation: "acquire" }).length === 3],
      [
        /All three endpoints grant it, until (\d+) ms.*on their way/,
        (past, until) =>
          past.all({ ...stored, until: Number(until) }).length === 3 &&
          past.now(stored) &&
          Number(until) - past.all(stored)[0]!.time === 300 &&
          past.all({ phase: "answered" }).length === 0,
      ],
      [
        /No answer for 300 ms.* rolls back/,
        (past) =>
          past.all({ phase: "answered" }).length === 0 &&
          past.all({ phase: "sent", operation: "release", time: 300 }).length === 3,
      ],
      [
        /"granted" only now.* until (\d+) ms. It ends at (\d+) ms/,
        (past, believed, until) =>
          past.now({ phase: "answered", operation: "acquire", outcome: "granted" }) &&
          past.all({ phase: "answered" })[1]!.time + 300 === Number(believed) &&
          past.all({ ...stored, until: Number(until) }).length === 3,
      ],
      [
        /acquire\(\) throws/,
        (past) =>
          past.now({ phase: "returned", outcome: "error" }) &&
          past.all({ phase: "executed", operation: "release" }).length === 3,
      ],
    ],
  ],
  [
    lateWriter,
    1,
    [
      [
        /quorum has granted Ann the lock with fence (\d+)/,
        (past, fence) =>
          past.now({ ...granted, client: "Ann", fence: Number(fence) }) && past.holders().Ann! > 1,
      ],
      [
        /freezes here. Her lock ends at (\d+) ms/,
        (past, until) =>
          past.now({ phase: "fault", client: "Ann", name: "frozen" }) &&
          Math.round(past.all({ phase: "valid", client: "Ann" }).at(-1)!.until!) === Number(until),
      ],
      [
        /Bob is refused: the endpoints still hold Ann's/,
        (past) => past.now({ ...refused, client: "Bob" }) && past.holders().Ann === 3,
      ],
      [
        /Ann's lock has expired, so Bob gets it with fence (\d+)/,
        (past, fence) =>
          past.now({ ...granted, client: "Bob", fence: Number(fence) }) && !("Ann" in past.holders()),
      ],
      [
        /Bob writes.* his fence, (\d+)/,
        (past, fence) =>
          past.now({ ...write, client: "Bob", outcome: "granted" }) &&
          past.all({ phase: "sent", client: "Bob", fence: Number(fence) }).length === 1,
      ],
      [
        /Ann runs again.*refuses it: fence (\d+) is lower than (\d+)/,
        (past, hers, his) =>
          past.now({ ...write, client: "Ann", outcome: "held" }) &&
          past.now({ phase: "upheld", name: `REFUSED ${hers} < ${his}` }) &&
          past.all({ phase: "healed", client: "Ann" }).length === 1 &&
          past.all({ ...granted, client: "Ann", fence: Number(hers) }).length === 1 &&
          past.all({ ...granted, client: "Bob", fence: Number(his) }).length === 1,
      ],
    ],
  ],
  [
    lateWriter,
    0,
    [
      [/granted Ann the lock\.$/, (past) => past.now({ ...granted, client: "Ann", fence: undefined })],
      [/freezes/, (past) => past.now({ phase: "fault", client: "Ann" })],
      [/Bob is refused/, (past) => past.now({ ...refused, client: "Bob" })],
      [/Bob gets it\.$/, (past) => past.now({ ...granted, client: "Bob", fence: undefined })],
      [/Bob writes to the ledger\.$/, (past) => past.now({ ...write, client: "Bob", outcome: "granted" })],
      [
        /Ann runs again, and writes over/,
        (past) =>
          past.now({ ...write, client: "Ann", outcome: "granted" }) && past.now({ phase: "violated" }),
      ],
    ],
  ],
];

for (const [scene, act, wanted] of claims) {
  test(`${scene.id}, act ${act}: each caption is true`, async () => {
    const recording = await record(scene, act);
    expect(recording.steps).toHaveLength(wanted.length);
    for (const [index, { time, text }] of recording.steps.entries()) {
      const [words, isTrue] = wanted[index]!;
      expect(text).toMatch(words);
      expect([text, isTrue(new Past(recording, time), ...words.exec(text)!.slice(1))]).toEqual([text, true]);
    }
  });
}
