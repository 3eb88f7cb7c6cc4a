import type { Endpoint } from "../../src/index.ts";
import { canDelete } from "../../src/redis/cell.ts";

/** The endpoint, as if it had released a lock before: else the first calls cost more. */
export function trusted<Some extends Endpoint>(endpoint: Some): Some {
  canDelete.set(endpoint, true);
  return endpoint;
}
