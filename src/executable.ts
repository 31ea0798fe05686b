/**
 * The entry of the single executable. The service is an asset, loaded for every command except a health check.
 */
import { createRequire, registerHooks } from "node:module"
import { getAsset } from "node:sea"
import { checkHealth } from "./server/cli/health.ts"

/** Stands for the asset; no such file exists. */
const service = "file:///model-gateway/service.js"

if (!await checkHealth(process.argv.slice(2), process.env)) {
  // An executable can import only Node's own modules; these hooks serve the asset to `require`.
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === service
        ? { url: service, format: "module", shortCircuit: true }
        : next(specifier, context),
    load: (url, context, next) =>
      url === service
        ? { format: "module", source: getAsset("service", "utf8"), shortCircuit: true }
        : next(url, context)
  })
  // Without `/proc` the executable's own module address is not a valid base for `require`.
  createRequire(service)(service)
  hooks.deregister()
}
