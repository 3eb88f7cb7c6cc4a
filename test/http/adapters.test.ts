import { testAdapters } from "./adapters-suite.ts";

// Every thirteenth: each handler, and each stack with each phase, because 13 divides neither the phases nor the stacks.
testAdapters((index) => index % 13 === 0);
