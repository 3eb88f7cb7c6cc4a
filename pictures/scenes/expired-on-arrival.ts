import { Contender } from "../world/contender.ts";
import type { Scene } from "./scene.ts";

export const expiredOnArrival: Scene = {
  name: "expired-on-arrival",
  title: "The endpoints grant a lock, but their answers travel longer than it lasts.",
  clients: ["Ann"],
  acts: [
    {
      title: "",
      endpoints: 3,
      async play({ distances, endpoints }, [ann]) {
        for (const { name } of endpoints) distances.set(`Ann>${name}`, 190);
        await new Contender(ann!).acquire({ ttl: 300, wait: 0 });
      },
    },
  ],
};
