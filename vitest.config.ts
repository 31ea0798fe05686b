import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/console/build.ts"],
    setupFiles: ["test/setup.ts"],
    // Importing Effect is most of a small test file's time: the files of a worker share one module graph.
    isolate: false,
    pool: "forks",
    // All cores: what a test waits for is mostly another process or a socket.
    maxWorkers: availableParallelism(),
    // For what never ends. No test depends on how fast the machine is, or on what else runs on it.
    testTimeout: 120_000,
    hookTimeout: 120_000
  }
})
