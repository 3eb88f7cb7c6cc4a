import { Contender } from "../world/contender.ts";
import type { Scene } from "./scene.ts";

export const evenSplit: Scene = {
  name: "even-split",
  title: "Three clients ask for one lock at the same moment, and each gets one of three endpoints.",
  clients: ["Ann", "Bob", "Cleo"],
  acts: [
    {
      title: "",
      endpoints: 3,
      async play({ time, distances, endpoints }, clients) {
        // Each is near to another endpoint.
        for (const [index, { name }] of clients.entries()) {
          for (const [other, endpoint] of endpoints.entries()) {
            distances.set(`${name}>${endpoint.name}`, index === other ? 40 : 90);
          }
        }
        const patience = new AbortController();
        const locks = clients
          .map((client) => new Contender(client))
          .map((contender) => contender.acquire({ fencing: true, signal: patience.signal }));
        await time.sleep(200);
        distances.clear();
        const first = await Promise.race(locks);
        await time.sleep(600);
        // The others give up.
        patience.abort();
        await first!.release();
      },
    },
  ],
};
