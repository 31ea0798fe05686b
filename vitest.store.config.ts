// The long faults of many nodes: `npm run test:store`.
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/cluster/long/*.ts"],
    setupFiles: ["test/setup.ts"],
    pool: "forks",
    testTimeout: 180_000,
    hookTimeout: 120_000
  }
})
