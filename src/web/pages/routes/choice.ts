/**
 * Which target of a route a request would take now, and why: from the states of the upstreams.
 */
import type { Entry, FormField } from "../../forms/fields.ts"
import type { Reply } from "../../state/client.ts"
import { defaultUpstream } from "../../state/names.ts"
import { standingOf } from "../../state/standing.ts"
import type { Route, Routes, UpstreamItem } from "../../state/upstreams.ts"

/** A route as a form has it. */
export type WrittenRoute = Entry & Pick<Route, "targets">

/** A target as a route has it. */
export type WrittenTarget = Route["targets"][number]

/** What a target is written as, without its weight. */
export const targetText = (target: WrittenTarget): string => typeof target === "string" ? target : target.target

export const weightOf = (target: WrittenTarget): number => typeof target === "string" ? 1 : target.weight

/** A target with another weight. */
export const weighted = (target: WrittenTarget, weight: number): WrittenTarget =>
  weight === 1 ? targetText(target) : { target: targetText(target), weight }

/** Why a target takes no request now. `probe`: its cooling time is over, so that one request tries it. */
export type Hindrance = "unknown" | "noModel" | "disabled" | "cooled" | "probe" | "noAccount" | "full"

/** A target with what its upstream does now. */
export interface TargetNow {
  readonly text: string
  /** Its weight; `undefined` where weights do not count. */
  readonly weight: number | undefined
  readonly upstream: UpstreamItem | undefined
  readonly hindrance: Hindrance | undefined
}

/**
 * `first`: it is the first with a free slot. `even`: it has the largest share of free slots. `weighted`: each in its turn. `probe`: it is chosen so, and its cooling
 * time is over. `cooled`: it is cooled, and the others
 * cannot serve either. `holds`: requests wait at it alone at first. `waits`: requests wait at all that are full. `none`: no target
 * can serve.
 */
export type Reason = "first" | "even" | "weighted" | "probe" | "cooled" | "holds" | "waits" | "none"

export interface RouteNow {
  readonly targets: ReadonlyArray<TargetNow>
  /** The index of the target that the reason names. */
  readonly taken: number | undefined
  readonly reason: Reason
}

/** The parts of a target; a short one names the model with the route's name. */
export const partsOf = (target: string, route: string): { readonly upstream: string; readonly model: string } => {
  const slash = target.indexOf("/")
  const parts = slash === -1 ? [target, route] : [target.slice(0, slash), target.slice(slash + 1)]
  return { upstream: parts[0]!.trim().toLowerCase(), model: parts[1]!.trim().toLowerCase() }
}

/** A route without targets, with the defaults. */
export const plainRoute: Route = {
  targets: [],
  wait: 0,
  also_on: [],
  spread: "order",
  schemas: "preferred",
  sticky: "auto"
}

const isFull = (upstream: UpstreamItem): boolean => upstream.in_use >= upstream.max_inflight

const hindranceOf = (
  upstream: UpstreamItem | undefined,
  model: string,
  time: number
): Hindrance | undefined => {
  if (upstream === undefined) return "unknown"
  // The models that the server of `default` lists itself may be targets too.
  if (upstream.name !== defaultUpstream && !upstream.models.some((each) => each.toLowerCase() === model)) {
    return "noModel"
  }
  const standing = standingOf(upstream, time)
  if (standing === "probe") return isFull(upstream) ? "full" : standing
  if (standing !== "ready" && standing !== "found" && standing !== "away") return standing
  return isFull(upstream) ? "full" : undefined
}

const freeShare = ({ upstream }: TargetNow): number =>
  upstream === undefined ? 0 : 1 - upstream.in_use / upstream.max_inflight

/** The index of the first of the targets that suit with the largest share of free slots; -1 where none suits. */
const freest = (targets: ReadonlyArray<TargetNow>, suits: (target: TargetNow) => boolean): number =>
  targets.reduce(
    (best, target, index) =>
      suits(target) && (best === -1 || freeShare(target) > freeShare(targets[best]!)) ? index : best,
    -1
  )

/** What a request for the route would do now. */
export const routeNow = (
  name: string,
  { spread, targets: written, wait }: Pick<Route, "spread" | "targets" | "wait">,
  upstreams: ReadonlyArray<UpstreamItem>,
  /** Unix time in milliseconds. */
  time: number = Date.now()
): RouteNow => {
  const targets = written.map((target): TargetNow => {
    const text = targetText(target)
    const { model, upstream } = partsOf(text, name)
    const found = upstreams.find((each) => each.name === upstream)
    const weight = spread === "weighted" ? weightOf(target) : undefined
    return { text, weight, upstream: found, hindrance: hindranceOf(found, model, time) }
  })
  const first = (...those: ReadonlyArray<Hindrance | undefined>) => {
    const index = targets.findIndex(({ hindrance }) => those.includes(hindrance))
    return index === -1 ? undefined : index
  }
  const [free, full] = [first(undefined, "probe"), first("full")]
  const enabled = targets.findIndex(({ hindrance }) => hindrance !== "disabled")
  if (wait > 0 && full !== undefined && full === enabled) return { targets, taken: full, reason: "holds" }
  if (free !== undefined) {
    if (spread === "weighted") return { targets, taken: undefined, reason: "weighted" }
    const isFree = ({ hindrance }: TargetNow) => hindrance === undefined || hindrance === "probe"
    const taken = spread === "order" ? free : freest(targets, isFree)
    const isProbe = targets[taken]!.hindrance === "probe"
    return { targets, taken, reason: isProbe ? "probe" : spread === "order" ? "first" : "even" }
  }
  if (full !== undefined) return { targets, taken: undefined, reason: "waits" }
  if (first("cooled") === undefined) return { targets, taken: undefined, reason: "none" }
  const isTried = ({ hindrance, upstream }: TargetNow) => hindrance === "cooled" && !isFull(upstream!)
  const tried = spread === "even" ? freest(targets, isTried) : targets.findIndex(isTried)
  return tried === -1
    ? { targets, taken: undefined, reason: "waits" }
    : { targets, taken: tried, reason: "cooled" }
}

/** The requests of a model or route by target. */
type Answered = Reply<"admin-minutes", "list">["answered"]

/** The requests of a route that each of its targets answered, in the order of the targets, and all of the route. */
export const answersOf = (name: string, targets: ReadonlyArray<string>, answered: Answered) => {
  const own = answered.filter(({ model }) => model.toLowerCase() === name.toLowerCase())
  const sumOf = (rows: Answered) => rows.reduce((sum, { requests }) => sum + requests, 0)
  return {
    all: sumOf(own),
    counts: targets.map((target) => {
      const { model, upstream } = partsOf(target, name)
      return sumOf(own.filter((each) => each.target.toLowerCase() === `${upstream}/${model}`))
    })
  }
}

/** The models without a route that several upstreams list, each as the route that serves it now. */
export const impliedRoutes = (
  upstreams: ReadonlyArray<UpstreamItem>,
  routes: Routes
): ReadonlyArray<readonly [name: string, route: Route]> => {
  const named = new Set(Object.keys(routes).map((name) => name.toLowerCase()))
  const targets = new Map<string, Array<string>>()
  for (const { models, name } of upstreams) {
    for (const model of models) {
      const id = model.toLowerCase()
      if (!named.has(id)) targets.set(id, [...targets.get(id) ?? [], `${name}/${model}`])
    }
  }
  return [...targets].flatMap(([id, each]) => each.length < 2 ? [] : [[id, { ...plainRoute, targets: each }] as const])
}

/** The list with the entry at `from` moved to `to`. */
export const moved = <A>(list: ReadonlyArray<A>, from: number, to: number): ReadonlyArray<A> =>
  to < 0 || to >= list.length || from === to ? list : list.toSpliced(from, 1).toSpliced(to, 0, list[from]!)

/** Whether a value says what holds without it. A flag without a default is off. */
const isDefault = (field: FormField | undefined, value: unknown): boolean =>
  value === null ||
  (field !== undefined &&
    JSON.stringify(value) === JSON.stringify(field.default ?? (field.type === "boolean" ? false : null)))

/** The fields of a route that differ from their defaults; the targets alone if all others are. */
export const compact = (
  fields: ReadonlyArray<FormField>,
  { targets, ...rest }: WrittenRoute
): Route["targets"] | WrittenRoute => {
  const kept = Object.entries(rest).filter(([path, value]) =>
    !isDefault(fields.find((field) => field.path === path), value)
  )
  return kept.length === 0 ? targets : { targets, ...Object.fromEntries(kept) }
}
