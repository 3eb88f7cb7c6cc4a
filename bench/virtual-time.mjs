// A world in virtual time for benchmarks: clients and in-process endpoints with a given round trip between them. The same
// seed gives the same figures on any machine.
import { memoryEndpoint } from "../local/dist/memory/index.js";

const epoch = 1_700_000_000_000;

/** One world. Its time is independent of the machine's. */
export class VirtualWorld {
  now = 0;
  /** Requests that all clients have sent. */
  requests = 0;
  /** Streams that all clients have opened. */
  streams = 0;
  #queue = [];
  #state;
  #servers;

  /**
   * @param seed an integer
   * @param roundTrips ms to each endpoint and back, on average; `Infinity` for one that never answers
   */
  constructor(seed, roundTrips) {
    this.#state = seed >>> 0;
    const runtime = { ...this.runtime(), random: () => this.random() };
    this.#servers = roundTrips.map((roundTrip, index) => ({
      roundTrip,
      memory: memoryEndpoint({ name: `e${index}`, runtime }),
    }));
  }

  /** A number in [0, 1) (mulberry32). */
  random() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** The runtime of a client in this world. */
  runtime() {
    return {
      now: () => epoch + Math.floor(this.now),
      monotonic: () => this.now,
      timer: (ms, callback) => this.#at(this.now + Math.max(0, ms), callback),
      random: () => this.random(),
      randomBytes: (bytes) => {
        for (let index = 0; index < bytes.length; index += 1) bytes[index] = Math.floor(this.random() * 256);
      },
    };
  }

  /** The endpoints for one client. Each direction takes half of the round trip ± 10 %. */
  endpoints() {
    return this.#servers.map(({ roundTrip, memory }) => {
      const { name, dialect, exactReplies } = memory;
      const travel = (then) => {
        if (roundTrip < Infinity) this.#at(this.now + (roundTrip / 2) * (0.9 + 0.2 * this.random()), then);
      };
      const send = (command, signal) => {
        this.requests += 1;
        return new Promise((resolve, reject) => {
          const giveUp = () => reject(new Error("no answer in time"));
          if (signal.aborted) return giveUp();
          signal.addEventListener("abort", giveUp, { once: true });
          // Executed even if the client has given up by then.
          travel(() => {
            const reply = memory.send(command, new AbortController().signal);
            travel(() => {
              signal.removeEventListener("abort", giveUp);
              reply.then(resolve, reject);
            });
          });
        });
      };
      const subscribe = async (channel, signal) => {
        this.streams += 1;
        await new Promise((resolve) => travel(resolve));
        const events = (await memory.subscribe(channel, signal)).getReader();
        // Messages are read as they come, and each is on its way for as long as any reply.
        return new ReadableStream({
          async pull(controller) {
            const { value } = await events.read();
            if (value) await new Promise((resolve) => travel(resolve));
            if (value) controller.enqueue(value);
            else controller.close();
          },
          cancel: () => events.cancel(),
        });
      };
      return { name, dialect, exactReplies, send, subscribe };
    });
  }

  sleep(ms) {
    return new Promise((resolve) => this.#at(this.now + ms, resolve));
  }

  /** Advances time to `until`, or until `isOver` returns true. */
  async run(until, isOver = () => false) {
    await settle();
    while (!isOver()) {
      let next;
      for (const event of this.#queue) if (!next || event.time < next.time) next = event;
      if (!next || next.time > until) break;
      this.#queue.splice(this.#queue.indexOf(next), 1);
      this.now = next.time;
      next.happen();
      await settle();
    }
    if (!isOver()) this.now = until;
  }

  #at(time, happen) {
    const event = { time, happen };
    this.#queue.push(event);
    return () => {
      const index = this.#queue.indexOf(event);
      if (index >= 0) this.#queue.splice(index, 1);
    };
  }
}

/** Resolves when all promises that do not wait for a timer have settled. */
function settle() {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}
