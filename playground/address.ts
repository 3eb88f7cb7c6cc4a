/** What the reader has done to a part of the world, and when. */
export interface Click {
  /** ms of the world, whole. */
  readonly time: number;
  /** The part's name. */
  readonly part: string;
  /** The label of a deed, or a number that was chosen. */
  readonly deed: string;
}

/** The whole world, or a moment of it: what a link opens. */
export interface Moment {
  readonly scene: string;
  /** The number of the act, from 0. */
  readonly act: number;
  readonly seed: number;
  /** In the order of their times. */
  readonly clicks: readonly Click[];
  /** ms of the world; undefined: the act plays from its beginning. */
  readonly time?: number | undefined;
}

/** The seed of worlds whose links do not name one. */
export const usualSeed = 3;

/**
 * Reads the part of an address after `#`.
 *
 * @returns undefined if it names no act of a scene, or something else that {@link writeMoment} does not write
 */
export function readMoment(
  hash: string,
  scenes: readonly { readonly id: string; readonly acts: readonly unknown[] }[],
): Moment | undefined {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const scene = scenes.find(({ id }) => id === values.get("scene"));
  const act = Number(values.get("act") ?? 1) - 1;
  const seed = numberIn(values.get("seed") ?? `${usualSeed}`);
  const text = values.get("t");
  const time = text === null ? undefined : numberIn(text);
  const clicks = readClicks(values.get("do") ?? "");
  if (!scene || !(act in scene.acts) || seed === undefined || !clicks) return undefined;
  if (text !== null && time === undefined) return undefined;
  return { scene: scene.id, act, seed, clicks, time };
}

/** A time or a seed: at most six digits, so that no link keeps a browser busy. */
function numberIn(text: string): number | undefined {
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

function readClicks(text: string): readonly Click[] | undefined {
  const clicks: Click[] = [];
  for (const word of text === "" ? [] : text.split("~")) {
    const [at = "", part = "", deed = "", ...others] = word.split(".");
    const time = numberIn(at);
    if (time === undefined || time < (clicks.at(-1)?.time ?? 0) || others.length > 0) return undefined;
    clicks.push({ time, part, deed });
  }
  return clicks.length > 500 ? undefined : clicks;
}

/** Writes what {@link readMoment} reads. */
export function writeMoment({ scene, act, seed, clicks, time }: Moment): string {
  const done = clicks.map(({ time: at, part, deed }) => `${at}.${word(part)}.${word(deed)}`).join("~");
  return [
    `#scene=${scene}`,
    act > 0 && `act=${act + 1}`,
    seed !== usualSeed && `seed=${seed}`,
    done && `do=${done}`,
    time !== undefined && `t=${time}`,
  ]
    .filter(Boolean)
    .join("&");
}

const word = (text: string): string => encodeURIComponent(text).replaceAll("%20", "+");
