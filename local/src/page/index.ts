// Endpoints and their page together, for scripts that load this project's sources: a bundle for each would have classes of
// its own.
export { start } from "../rest/start.ts";
export { type DevPage, openPage, type PageOptions } from "./server.ts";
