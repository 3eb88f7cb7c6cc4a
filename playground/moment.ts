/** A scene, and a moment of it: what a link opens. */
export interface Moment {
  readonly scene: string;
  /** ms of the world; undefined: the scene plays from its beginning. */
  readonly time?: number | undefined;
  /** Whether the ledger gets fences; undefined: as the scene has it. */
  readonly fencing?: boolean | undefined;
}

/** Reads the part of an address after `#`. @returns undefined if it names none of the scenes, or no time */
export function readMoment(hash: string, scenes: readonly string[]): Moment | undefined {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const scene = values.get("scene") ?? "";
  const time = values.get("t");
  // At most nine digits: anything else is no time of a scene.
  if (!scenes.includes(scene) || (time !== null && !/^\d{1,9}$/.test(time))) return undefined;
  const word = values.get("fencing");
  const fencing = word === "on" || (word === "off" ? false : undefined);
  return { scene, time: time === null ? undefined : Number(time), fencing };
}

/** Writes what {@link readMoment} reads. */
export function writeMoment({ scene, time, fencing }: Moment): string {
  const moment = time === undefined ? "" : `&t=${time}`;
  return `#scene=${scene}${moment}${fencing === undefined ? "" : `&fencing=${fencing ? "on" : "off"}`}`;
}
