import { probeTtl, type Question, type Seen, type Session } from "./session.ts";

// What doctor asks in any case: whether there is a database at all, and how far away it is.

/** How many times the clock is read. */
const samples = 5;

/** These questions, in their order. */
export const questions: Readonly<Record<string, Question>> = {
  rest: { ask: askRest, after: null },
  token: { ask: askToken, after: "rest" },
  database: { ask: askDatabase },
  clock: { ask: askClock, after: "rest" },
};

async function askRest(session: Session): Promise<Seen> {
  if ((await session.ask(["PING"])) === "PONG") return { works: true };
  return { failure: { kind: "malformed", message: "PING has another reply than PONG" } };
}

async function askToken(session: Session): Promise<Seen> {
  await session.ask(["SET", session.key("token"), "v", "PX", probeTtl]);
  return { works: true };
}

/** Every endpoint writes the same key: two that are one database meet there. */
async function askDatabase(session: Session): Promise<Seen> {
  const { number } = session.place;
  const key = session.key("database", "all");
  const reply = await session.ask(["SET", key, number, "NX", "PX", probeTtl]);
  if (reply === "OK") return { works: true };
  const first = Number(await session.ask(["GET", key]));
  if (first === 0 || first === number) return { works: true };
  return { failure: { kind: "config", message: `it is the same database as endpoint ${first}` } };
}

/** The round trip, and the clock from the fastest of the replies. */
export async function askClock(session: Session): Promise<Seen> {
  const readings: { readonly took: number; readonly ahead: number }[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const sentAt = session.settings.runtime.now();
    const { result, at } = await session.timed(() => session.ask(["TIME"]));
    const took = at.to - at.from;
    const [seconds = Number.NaN, micros = Number.NaN] = Array.isArray(result) ? result.map(Number) : [];
    const time = seconds * 1_000 + micros / 1_000;
    if (!Number.isFinite(time)) return {};
    readings.push({ took, ahead: time - (sentAt + took / 2) });
  }
  readings.sort((a, b) => a.took - b.took);
  const { took, ahead } = readings[0]!;
  const roundTrip = Math.round(readings[samples >> 1]!.took * 10) / 10;
  // The way there and back account for the rest. The wall clock counts whole milliseconds.
  const distance = Math.max(0, Math.abs(ahead) - took / 2 - 1);
  return { works: true, roundTrip, clock: Math.round(Math.sign(ahead) * distance) };
}
