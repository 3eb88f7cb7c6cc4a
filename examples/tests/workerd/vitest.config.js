// Vitest in workerd. The databases run here, in Node, because Workers can open no port.

import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { start } from "redis-rest-local";
import { defineConfig } from "vitest/config";

const local = await start({ count: 3 });

export default defineConfig({
  plugins: [
    cloudflareTest({
      main: "./worker.js",
      miniflare: {
        compatibilityDate: "2026-04-01",
        bindings: { ...local.env(), STRIPE_WEBHOOK_SECRET: "whsec_test" },
      },
    }),
  ],
});
