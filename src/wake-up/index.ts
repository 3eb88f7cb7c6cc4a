/** @module redlock-edge/wake-up */
export { pubSub } from "./pub-sub.ts";
