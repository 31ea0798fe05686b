/** What is wrong with the routes of a configuration. */
import { normalizeModelName } from "./models.ts"
import { makeRouteTable, type RouteConfig, splitTarget, targetText } from "./routes.ts"

/** A fault of a configured route, with the place of the target that has it. */
export interface RouteFault {
  readonly route: string
  readonly target: number | undefined
  readonly message: string
}

/** The faults of the configured routes. */
export const routeFaults = (config: RouteConfig): ReadonlyArray<RouteFault> => {
  const { upstreams } = makeRouteTable({ ...config, routes: [] })
  const faults: Array<RouteFault> = []
  const names = new Set<string>()
  for (const { name: route, targets } of config.routes) {
    const report = (message: string, target?: number) => faults.push({ route, target, message })
    const key = normalizeModelName(route)
    if (key === "") report("must have a name")
    if (names.has(key)) report("is named twice, but for case and blanks")
    names.add(key)
    if (key.includes("/") && upstreams.has(splitTarget(key).upstream)) report("must not begin with an upstream's name")
    const seen = new Set<string>()
    targets.forEach((written, place) => {
      const { model = key, upstream } = splitTarget(targetText(written))
      const id = `${upstream}/${model}`
      if (!upstreams.has(upstream)) report("must be upstream/model or an upstream of the configuration", place)
      else if (upstreams.get(upstream)?.has(model) !== true) report(`names no model of the upstream ${upstream}`, place)
      else if (seen.has(id)) report("is the same target twice", place)
      seen.add(id)
    })
  }
  return faults
}
