/**
 * Imported first: prints at the end whether the Redis client was loaded.
 */
import { registerHooks } from "node:module"

let redis = false
registerHooks({
  load(url, context, next) {
    if (/node_modules\/(@redis|redis)\//.test(url)) redis = true
    return next(url, context)
  }
})
process.on("exit", () => {
  if (redis) process.stdout.write("loaded redis\n")
})
