/** A moment of an act: what a link opens. */
export interface Moment {
  readonly scene: string;
  /** The number of the act, from 0. */
  readonly act: number;
  /** ms of the world; undefined: the act plays from its beginning. */
  readonly time?: number | undefined;
}

/** Reads the part of an address after `#`. @returns undefined if it names no act of a scene, or no time */
export function readMoment(
  hash: string,
  scenes: readonly { readonly id: string; readonly acts: readonly unknown[] }[],
): Moment | undefined {
  const values = new URLSearchParams(hash.replace(/^#/, ""));
  const scene = scenes.find(({ id }) => id === values.get("scene"));
  const act = Number(values.get("act") ?? 1) - 1;
  const time = values.get("t");
  // At most nine digits: anything else is no time of a scene.
  if (!scene || !(act in scene.acts) || (time !== null && !/^\d{1,9}$/.test(time))) return undefined;
  return { scene: scene.id, act, time: time === null ? undefined : Number(time) };
}

/** Writes what {@link readMoment} reads. */
export function writeMoment({ scene, act, time }: Moment): string {
  return `#scene=${scene}${act === 0 ? "" : `&act=${act + 1}`}${time === undefined ? "" : `&t=${time}`}`;
}
