import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/console/build.ts"],
    setupFiles: ["test/setup.ts"],
    // Importing Effect is most of a small test file's time: the files of a worker share one module graph.
    isolate: false,
    pool: "forks",
    testTimeout: 20_000
  }
})
