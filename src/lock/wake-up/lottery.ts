/** How many of all waiters ask after a message, on average. */
const askers = 4;

/**
 * The turns of one stream's waiters after a message. Without a lottery all would ask at once: a herd, of which one is
 * granted. Together, the turns of all streams are spread evenly, about one a slot.
 *
 * @param waiters how many wait on this stream
 * @param distance from one turn of this stream to the next, in slots: how many others there are for each of its turns
 * @param random a number in [0, 1)
 * @returns a turn for each, in slots
 */
export function drawTurns(waiters: number, distance: number, random: () => number): number[] {
  return Array.from({ length: waiters }, (_, position) => (position + random()) * distance);
}

/**
 * When a waiter asks after a message, in ms from then, unless the next message comes before; Infinity: it does not. About
 * four of all waiters ask, the first of them mostly alone. In one of e⁴ cases nobody's turn comes: about four others ask
 * where the next message takes twice as long as usual.
 *
 * @param turn its turn, in slots
 * @param slot ms
 * @param interval ms between two messages, as a rule; Infinity: not known
 */
export function asksIn(turn: number, slot: number, interval: number): number {
  if (turn < askers) return turn * slot;
  return turn < 2 * askers ? 2 * interval + turn * slot : Infinity;
}

/** ms without a message after which somebody asks whether the one that was called has come. */
const patience = 750;

/**
 * When a waiter asks after a message that has called another one, in ms from then, unless the next message comes before:
 * about four of all waiters at first, and more the longer nobody does, because the streams of the dead may be counted.
 *
 * @param watch its turn among those that were not called, in slots
 * @param slot ms
 */
export function watchesIn(watch: number, slot: number): number {
  const later = Math.max(0, Math.log2(watch / askers)) / 2;
  return patience * (1 + later) + Math.min(watch, askers) * slot;
}

/** The same list in random order: Fisher and Yates. */
export function shuffled<Item>(items: Iterable<Item>, random: () => number): Item[] {
  const list = [...items];
  for (let last = list.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [list[last], list[other]] = [list[other]!, list[last]!];
  }
  return list;
}
