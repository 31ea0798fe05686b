import { playwright } from "@vitest/browser-playwright"
import { hash } from "node:crypto"
import { availableParallelism } from "node:os"
import path from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** What takes longest, and would otherwise be waited for at the end: processes, browsers, builds, the corpora. */
const long =
  /\/test\/(?:package|cluster\/nodes|scripts\/bundle|web|limits|soak|release|server\/cli|sieve\/corpus|styles\/corpus)/

/** Names another order of the files, which is the same for the same text (`./scripts/test --order N`). */
const order = process.env["TEST_ORDER"]

class LongFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    if (order !== undefined) {
      const place = ({ moduleId }: TestSpecification) =>
        hash("sha256", `${order} ${path.relative(import.meta.dirname, moduleId)}`)
      return files.toSorted((a, b) => place(a) < place(b) ? -1 : 1)
    }
    const rank = ({ moduleId }: TestSpecification) => long.test(moduleId) ? 0 : 1
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/**
 * For what never ends: a wait ends earlier, and says what was there. No test depends on how fast the machine is, or on what else runs on it,
 * and the longest have minutes of work on a busy one.
 */
const testTimeout = 240_000

/** A first run may have to bring a browser, and builds the package. */
const hookTimeout = 300_000

const chromium = playwright({
  launchOptions: {
    /** Known once the project's global setup has run, which brings a browser where there is none. */
    get executablePath() {
      return process.env["CHROME_PATH"] ?? ""
    },
    // Containers have no sandbox for it, and little shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
  }
})

/** More than the cores: what a test waits for is mostly another process or a socket. Each loads the sources, which is seconds of work. */
const maxWorkers = Math.ceil(availableParallelism() * 1.5)

export default defineConfig({
  test: {
    maxWorkers,
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          name: "node",
          include: ["test/**/*.test.ts"],
          globalSetup: ["test/web/build.ts"],
          setupFiles: ["test/setup.ts"],
          // Importing Effect is most of a small test file's time: the files of a worker share one module graph.
          isolate: false,
          pool: "forks",
          // Node runs the sources as they are: Vite's transform of each import costs a fifth of the run. What replaces modules is in
          // test/support/replaced.ts.
          experimental: { viteModuleRunner: false, nodeLoader: false },
          maxWorkers,
          testTimeout,
          hookTimeout
        }
      },
      {
        // The console's components, which run in Chromium themselves.
        oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
        test: {
          name: "components",
          include: ["test/web/components/*.test.tsx"],
          globalSetup: ["test/web/components/setup.ts"],
          isolate: false,
          maxWorkers,
          testTimeout,
          hookTimeout,
          expect: { poll: { timeout: 15_000 } },
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            viewport: { width: 1280, height: 800 },
            provider: chromium,
            instances: [{ browser: "chromium" }]
          }
        }
      }
    ]
  }
})
