import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** What takes longest, and would otherwise be waited for at the end: processes, browsers, builds, the corpora. */
const long =
  /\/test\/(?:package|store\/nodes|scripts\/bundle|console|limits|soak|release|cli|tools\/corpus|styles\/corpus)/

class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rank = ({ moduleId }: TestSpecification) => long.test(moduleId) ? 0 : 1
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

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
    sequence: { sequencer: LongFirst },
    // For what never ends. No test depends on how fast the machine is, or on what else runs on it.
    testTimeout: 120_000,
    // A first run may have to bring a browser.
    hookTimeout: 300_000
  }
})
