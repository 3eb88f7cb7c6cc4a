import { decodePosition, distanceOf, isOnMap, type Position } from "./geohash.ts";
import { formatFixed, integer, parseFloatStrict } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";
import { inOrder } from "./sorted-set.ts";

/** The members of a sorted set whose scores are positions. */
export type Positions = ReadonlyMap<string, number>;

/** The area around a centre, with all lengths in m. */
type Area =
  | { readonly shape: "circle"; readonly radius: number }
  | { readonly shape: "box"; readonly width: number; readonly height: number };

/** What a search looks for, and what it answers with. */
export interface Search {
  /** Undefined if the key is missing. */
  readonly positions: Positions | undefined;
  /** What the centre was given by. */
  from?: "member" | "position";
  centre: Position;
  area?: Area;
  /** How many m are one of the unit of the area, and of the distances in the reply. */
  unit: number;
  order?: "ASC" | "DESC";
  count?: number;
  /** Whether any members will do that are in the area, not only the nearest. */
  any: boolean;
  withDistance: boolean;
  withHash: boolean;
  withCoordinates: boolean;
  /** The key in which the members are stored. */
  storeIn?: string;
  /** Whether they are stored with their distance as score. */
  storesDistance: boolean;
}

/** A member that a search has found. */
export interface Found {
  readonly member: string;
  readonly score: number;
  readonly position: Position;
  /** In m. */
  readonly distance: number;
}

/**
 * Reads the arguments of one option into a search, and returns how many words they were; undefined if the option cannot
 * stand here.
 */
type ReadOption = (search: Search, words: readonly string[]) => number | undefined;

/** Options by name, in upper case. */
export type SearchOptions = Readonly<Record<string, ReadOption>>;

/** The options that all searches have; GEORADIUS_RO and GEORADIUSBYMEMBER_RO have no others. */
export const commonOptions: SearchOptions = {
  WITHDIST: flag((search) => {
    search.withDistance = true;
  }),
  WITHHASH: flag((search) => {
    search.withHash = true;
  }),
  WITHCOORD: flag((search) => {
    search.withCoordinates = true;
  }),
  ANY: flag((search) => {
    search.any = true;
  }),
  ASC: flag((search) => {
    search.order = "ASC";
  }),
  DESC: flag((search) => {
    search.order = "DESC";
  }),
  COUNT(search, [count]) {
    if (count === undefined) return undefined;
    search.count = Number(integer(count));
    if (search.count <= 0) throw new ReplyError("ERR COUNT must be > 0");
    return 1;
  },
};

/** The options of GEORADIUS and GEORADIUSBYMEMBER. */
export const radiusOptions: SearchOptions = {
  ...commonOptions,
  STORE: storeIn(false),
  STOREDIST: storeIn(true),
};

/** The options of GEOSEARCH. */
export const searchOptions: SearchOptions = {
  ...commonOptions,
  FROMMEMBER(search, [member]) {
    if (member === undefined || search.from === "position") return undefined;
    readMember(search, member);
    return 1;
  },
  FROMLONLAT(search, [longitude, latitude]) {
    if (latitude === undefined || search.from === "member") return undefined;
    search.centre = readPosition(longitude!, latitude);
    search.from = "position";
    return 2;
  },
  BYRADIUS(search, [radius, unit]) {
    if (unit === undefined || search.area?.shape === "box") return undefined;
    readCircle(search, radius!, unit);
    return 2;
  },
  BYBOX(search, [width, height, unit]) {
    if (unit === undefined || search.area?.shape === "circle") return undefined;
    const [across, along] = [readLength("width", width!), readLength("height", height!)];
    if (across < 0 || along < 0) throw new ReplyError("ERR height or width cannot be negative");
    search.unit = unitOf(unit);
    search.area = { shape: "box", width: across * search.unit, height: along * search.unit };
    return 3;
  },
};

/** The options of GEOSEARCHSTORE. */
export const searchStoreOptions: SearchOptions = {
  ...searchOptions,
  STOREDIST: flag((search) => {
    search.storesDistance = true;
  }),
};

function flag(set: (search: Search) => void): ReadOption {
  return (search) => {
    set(search);
    return 0;
  };
}

function storeIn(distances: boolean): ReadOption {
  return (search, [key]) => {
    if (key === undefined) return undefined;
    search.storeIn = key;
    search.storesDistance = distances;
    return 1;
  };
}

/** A search of which nothing is known but its set. */
export function newSearch(positions: Positions | undefined): Search {
  return {
    positions,
    centre: { longitude: 0, latitude: 0 },
    unit: 1,
    any: false,
    withDistance: false,
    withHash: false,
    withCoordinates: false,
    storesDistance: false,
  };
}

/** Reads options into a search. Throws a `ReplyError` for a wrong one. */
export function readOptions(search: Search, words: readonly string[], options: SearchOptions): void {
  for (let position = 0; position < words.length; position++) {
    const read = options[words[position]!.toUpperCase()];
    const used = read?.(search, words.slice(position + 1));
    if (used === undefined) throw syntaxError();
    position += used;
  }
}

/** Sets the centre to a member. A missing key has none, which is not an error. */
export function readMember(search: Search, member: string): void {
  const score = search.positions?.get(member);
  if (score !== undefined) search.centre = decodePosition(score);
  else if (search.positions) throw new ReplyError("ERR could not decode requested zset member");
  search.from = "member";
}

/** Sets the area to a circle. */
export function readCircle(search: Search, radius: string, unit: string): void {
  const length = readLength("radius", radius);
  if (length < 0) throw new ReplyError("ERR radius cannot be negative");
  search.unit = unitOf(unit);
  search.area = { shape: "circle", radius: length * search.unit };
}

/** Parses a position. Throws a `ReplyError` if it is too near to a pole. */
export function readPosition(longitude: string, latitude: string): Position {
  const position = { longitude: readDegrees(longitude), latitude: readDegrees(latitude) };
  if (isOnMap(position)) return position;
  const [x, y] = [formatFixed(position.longitude, 6), formatFixed(position.latitude, 6)];
  throw new ReplyError(`ERR invalid longitude,latitude pair ${x},${y}`);
}

/** How many m a unit has. */
export function unitOf(word: string): number {
  const meters = { m: 1, km: 1000, ft: 0.3048, mi: 1609.34 }[word.toLowerCase()];
  if (meters === undefined) {
    throw new ReplyError("ERR unsupported unit provided. please use M, KM, FT, MI");
  }
  return meters;
}

function readDegrees(word: string): number {
  const degrees = parseFloatStrict(word);
  if (degrees === undefined) throw new ReplyError("ERR value is not a valid float");
  return degrees;
}

function readLength(name: string, word: string): number {
  const length = parseFloatStrict(word);
  if (length === undefined) throw new ReplyError(`ERR need numeric ${name}`);
  return length;
}

/** The members inside the area, in the order of the search; without one, in the order of their scores. */
export function find({ positions = new Map(), centre, area, order, count, any }: Search): Found[] {
  const found: Found[] = [];
  for (const [member, score] of inOrder(positions)) {
    if (any && found.length === count) break;
    const position = decodePosition(score);
    if (!area || !isInside(area, centre, position)) continue;
    found.push({ member, score, position, distance: distanceOf(centre, position) });
  }
  // Without an order, the nearest count.
  if (order !== undefined || (count !== undefined && !any)) {
    const sign = order === "DESC" ? -1 : 1;
    found.sort((left, right) => sign * (left.distance - right.distance));
  }
  return found.slice(0, count);
}

function isInside(area: Area, centre: Position, position: Position): boolean {
  if (area.shape === "circle") return distanceOf(centre, position) <= area.radius;
  // The width is measured where the position is: away from the equator, the box is wider in degrees.
  const across = distanceOf(position, { ...position, longitude: centre.longitude });
  const along = distanceOf(position, { ...position, latitude: centre.latitude });
  return across <= area.width / 2 && along <= area.height / 2;
}
