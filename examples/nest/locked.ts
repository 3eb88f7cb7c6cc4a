// A decorator for the methods of Nest's providers and controllers, and the module that it needs.

import "reflect-metadata";
import { AsyncLocalStorage } from "node:async_hooks";
import { Global, Inject, Module } from "@nestjs/common";
import { type AcquireOptions, endpointsFromEnv, type Lock, Redlock } from "redlock-edge";

const client = Symbol("redlock");
const held = new AsyncLocalStorage<Lock>();

/** The lock of the method that runs: pass its `signal` on, and its `fence` to your database. */
export function heldLock(): Lock {
  const lock = held.getStore();
  if (!lock) throw new Error("heldLock() is for methods with @Locked");
  return lock;
}

/** One call at a time, on all replicas: `@Locked("report")`, or `@Locked((id: string) => ...)` with the method's arguments. */
export function Locked<Args extends unknown[] = never[]>(
  resource: string | ((...args: Args) => string),
  options: AcquireOptions = {},
) {
  return <Method extends (...args: Args) => Promise<unknown>>(
    target: object,
    _name: string | symbol,
    method: TypedPropertyDescriptor<Method>,
  ): void => {
    Inject(Redlock)(target, client);
    const routine = method.value as Method;
    const locked = function (this: { [client]: Redlock }, ...args: Args) {
      const name = typeof resource === "string" ? resource : resource(...args);
      return this[client].using(name, options, (lock) => held.run(lock, () => routine.apply(this, args)));
    };
    // What other decorators, such as @Post and @Cron, have noted on the method.
    for (const key of Reflect.getMetadataKeys(routine))
      Reflect.defineMetadata(key, Reflect.getMetadata(key, routine), locked);
    method.value = locked as unknown as Method;
  };
}

const redlock = () => new Redlock({ endpoints: endpointsFromEnv(process.env) });

@Global()
@Module({ providers: [{ provide: Redlock, useFactory: redlock }], exports: [Redlock] })
export class RedlockModule {}
