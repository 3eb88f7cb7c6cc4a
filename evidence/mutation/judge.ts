// What lua.mjs needs of the sources, as one module.
export { findRedisServer, startRedis } from "../../local/src/rest/redis/process.ts";
export { playScript } from "../twins/play.ts";
export { randomScripts } from "../twins/random-calls.ts";
export { SteppedRedis } from "../twins/stepped-redis.ts";
