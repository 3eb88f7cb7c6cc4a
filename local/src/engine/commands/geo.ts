import { type Command, type Commands, reads, writes } from "./command.ts";
import {
  commonOptions,
  find,
  newSearch,
  radiusOptions,
  readCircle,
  readMember,
  readOptions,
  readPosition,
  type Search,
  type SearchOptions,
  searchOptions,
  searchStoreOptions,
  unitOf,
} from "./geo-search.ts";
import { decodePosition, distanceOf, encodePosition, geohash, type Position } from "./geohash.ts";
import type { Keyspace } from "./keyspace.ts";
import { formatFixed } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";
import { addMembers } from "./sorted-set.ts";

/** Commands on positions, which are scores of sorted sets. */
export const geoCommands: Commands = {
  GEOADD: writes(-5, addPositions),
  GEOPOS: reads(-2, (space, words) => ofEach(space, words, coordinates)),
  GEOHASH: reads(-2, (space, words) => ofEach(space, words, geohash)),
  GEODIST: reads(-4, distance),
  GEORADIUS: radiusCommand(-6, aroundPosition, radiusOptions),
  GEORADIUS_RO: reads(-6, radiusCommand(-6, aroundPosition, commonOptions).run),
  GEORADIUSBYMEMBER: radiusCommand(-5, aroundMember, radiusOptions),
  GEORADIUSBYMEMBER_RO: reads(-5, radiusCommand(-5, aroundMember, commonOptions).run),
  GEOSEARCH: reads(-7, (space, [key, ...words]) => {
    const search = newSearch(space.value(key!, "zset"));
    readOptions(search, words, searchOptions);
    checkComplete(search, "GEOSEARCH");
    return answer(space, search);
  }),
  GEOSEARCHSTORE: {
    arity: -8,
    keys: [0, 1, 1],
    write: true,
    run(space, [to, key, ...words]) {
      const search = newSearch(space.value(key!, "zset"));
      search.storeIn = to!;
      readOptions(search, words, searchStoreOptions);
      checkStorable(search, "GEOSEARCHSTORE");
      checkComplete(search, "GEOSEARCHSTORE");
      return answer(space, search);
    },
  },
};

/** GEOADD key [NX | XX] [CH] longitude latitude member … */
function addPositions(space: Keyspace, [key, ...words]: readonly string[]): ByteReply {
  const options = new Set<string>();
  let start = 0;
  while (/^(?:nx|xx|ch)$/i.test(words[start] ?? "")) options.add(words[start++]!.toUpperCase());
  const given = words.slice(start);
  if (given.length % 3 !== 0 || (options.has("NX") && options.has("XX"))) throw syntaxError();
  const members: string[] = [];
  for (let position = 0; position < given.length; position += 3) {
    const [longitude, latitude, member] = given.slice(position, position + 3);
    members.push(encodePosition(readPosition(longitude!, latitude!)).toString(), member!);
  }
  return addMembers(space, key!, options, members);
}

/** What a command says of each member; null for one that does not exist. */
function ofEach(
  space: Keyspace,
  [key, ...members]: readonly string[],
  say: (position: Position) => ByteReply,
): ByteReply {
  const zset = space.value(key!, "zset");
  return members.map((member) => {
    const score = zset?.get(member);
    return score === undefined ? null : say(decodePosition(score));
  });
}

function coordinates({ longitude, latitude }: Position): ByteReply {
  return [longitude, latitude].map((value) => formatFixed(value, 17).replace(/\.?0+$/, ""));
}

/** GEODIST key member member [M | KM | FT | MI] */
function distance(space: Keyspace, [key, from, to, unit, ...more]: readonly string[]): ByteReply {
  if (more.length > 0) throw syntaxError();
  const meters = unitOf(unit ?? "m");
  const zset = space.value(key!, "zset");
  const [start, end] = [zset?.get(from!), zset?.get(to!)];
  if (start === undefined || end === undefined) return null;
  return length(distanceOf(decodePosition(start), decodePosition(end)) / meters);
}

/** A distance as Redis prints it. */
function length(value: number): string {
  return formatFixed(value, 4);
}

/** Reads the first words of a search around something, and returns the others. */
type ReadCentre = (search: Search, words: readonly string[]) => readonly string[];

/** longitude latitude radius unit */
function aroundPosition(search: Search, [longitude, latitude, radius, unit, ...rest]: readonly string[]) {
  search.centre = readPosition(longitude!, latitude!);
  readCircle(search, radius!, unit!);
  return rest;
}

/** member radius unit */
function aroundMember(search: Search, [member, radius, unit, ...rest]: readonly string[]) {
  readMember(search, member!);
  // Redis does not look at the radius around a member of nothing.
  if (search.positions) readCircle(search, radius!, unit!);
  return rest;
}

/** GEORADIUS and GEORADIUSBYMEMBER */
function radiusCommand(arity: number, readCentre: ReadCentre, options: SearchOptions): Command {
  return {
    arity,
    keys: keysOfRadius,
    write: true,
    run(space, [key, ...words]) {
      const search = newSearch(space.value(key!, "zset"));
      readOptions(search, readCentre(search, words), options);
      checkStorable(search, "STORE option in GEORADIUS");
      checkAny(search);
      return answer(space, search);
    },
  };
}

/** The key that is searched, and the one of STORE or STOREDIST. */
function keysOfRadius([key, ...words]: readonly string[]): readonly string[] {
  // After the radius, so that no member is taken for an option.
  const options = words.slice(3);
  const names = options.map((word) => word.toUpperCase());
  const at = Math.max(names.lastIndexOf("STORE"), names.lastIndexOf("STOREDIST"));
  const to = at < 0 ? undefined : options[at + 1];
  return to === undefined ? [key!] : [key!, to];
}

function checkStorable({ storeIn, withDistance, withHash, withCoordinates }: Search, what: string): void {
  if (storeIn === undefined || !(withDistance || withHash || withCoordinates)) return;
  throw new ReplyError(`ERR ${what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options`);
}

function checkComplete(search: Search, command: string): void {
  if (!search.from) {
    throw new ReplyError(`ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ${command}`);
  }
  if (!search.area) {
    throw new ReplyError(`ERR exactly one of BYRADIUS and BYBOX can be specified for ${command}`);
  }
  checkAny(search);
}

function checkAny({ any, count }: Search): void {
  if (any && count === undefined) throw new ReplyError("ERR the ANY argument requires COUNT argument");
}

/** Searches, and replies with the members that were found, or stores them and replies with their number. */
function answer(space: Keyspace, search: Search): ByteReply {
  const found = find(search);
  const { storeIn, storesDistance, unit, withDistance, withHash, withCoordinates } = search;
  if (storeIn !== undefined) {
    const scores = found.map(({ member, score, distance }): [string, number] => [
      member,
      storesDistance ? distance / unit : score,
    ]);
    return space.store(storeIn, "zset", new Map(scores));
  }
  if (!withDistance && !withHash && !withCoordinates) return found.map(({ member }) => member);
  return found.map(({ member, score, position, distance }) => [
    member,
    ...(withDistance ? [length(distance / unit)] : []),
    ...(withHash ? [Math.trunc(score)] : []),
    ...(withCoordinates ? [coordinates(position)] : []),
  ]);
}
