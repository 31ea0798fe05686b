/**
 * The entry of the single executable. The service is one of its assets, loaded where a health check is not all that is
 * asked for.
 */
import { createRequire, registerHooks } from "node:module"
import { getAsset } from "node:sea"
import { checkHealth } from "./server/cli/health.ts"

/** An address that stands for the asset: no file is looked for. */
const service = "file:///model-gateway/service.js"

if (!await checkHealth(process.argv.slice(2), process.env)) {
  // An executable imports nothing but Node's own modules; what it requires goes through these hooks.
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
  // Where nothing tells the executable's own path (no /proc), its module's address is none to require from.
  createRequire(service)(service)
  hooks.deregister()
}
