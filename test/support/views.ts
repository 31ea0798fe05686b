/** Lets Node load the console's views: it reads TypeScript, but no JSX. */
import { readFileSync } from "node:fs"
import { createRequire, registerHooks } from "node:module"
import { fileURLToPath } from "node:url"
import type * as Rolldown from "rolldown/utils"

const jsx = { runtime: "automatic", importSource: "preact" } as const

registerHooks({
  load(url, context, next) {
    if (!url.endsWith(".tsx")) return next(url, context)
    const file = fileURLToPath(url)
    // Few files load views, and the others need no compiler.
    const { transformSync } = createRequire(import.meta.url)("rolldown/utils") as typeof Rolldown
    return {
      format: "module",
      shortCircuit: true,
      source: transformSync(file, readFileSync(file, "utf8"), { jsx }).code
    }
  }
})
