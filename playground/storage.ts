import type { Client } from "./client.ts";
import type { World } from "./world.ts";

/** What a process sends to the place that all of them write to. */
export interface Writing {
  readonly operation: string;
  readonly fence?: number | undefined;
  /** Writes it when it arrives. @returns why it is refused, or undefined */
  readonly arrive: () => string | undefined;
}

/** Carries a writing to the storage, and the answer back. @returns whether it was taken */
export async function write(
  world: World,
  client: Client,
  { operation, fence, arrive }: Writing,
): Promise<boolean> {
  const { time, storage: endpoint } = world;
  const about = { client: client.name, endpoint, request: world.newRequest(), operation };
  world.record({ phase: "sent", ...about, ...(fence === undefined ? {} : { fence }) });
  await time.sleep(world.travelTime(client.name, endpoint));
  const detail = arrive();
  const answer = { outcome: detail === undefined ? "granted" : "held", ...(detail && { detail }) } as const;
  world.record({ phase: "executed", ...about, ...answer });
  await time.sleep(world.travelTime(client.name, endpoint));
  await new Promise<void>((resolve) => client.whenRunning(resolve));
  world.record({ phase: "answered", ...about, ...answer });
  return detail === undefined;
}
