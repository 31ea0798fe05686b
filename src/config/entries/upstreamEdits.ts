/**
 * Edits of upstreams in a raw configuration. The configuration store checks the values.
 */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { type GatewayError, gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { upstreamOfTarget } from "../../domain/routes.ts"
import { isUnnamed } from "../../domain/upstreamNames.ts"
import type { GatewayConfig } from "../GatewayConfig.ts"
import { keepHidden } from "../hidden.ts"
import { forEachCooperatively, isJsonObject, type RawConfig } from "../json.ts"
import { accountsOf, setField } from "../rawConfig.ts"

/** Where the entry of an upstream is. */
const pathOf = (name: string): readonly [string, ...Array<string>] =>
  isUnnamed(name) ? ["upstream"] : ["upstreams", name]

const groupOf = (raw: RawConfig, name: string): RawConfig => {
  const group = Object.hasOwn(raw, name) ? raw[name] : undefined
  return isJsonObject(group) ? group : {}
}

/** The entry of an upstream as it is written. */
export const entryOf = (raw: RawConfig, name: string): RawConfig =>
  isUnnamed(name) ? groupOf(raw, "upstream") : groupOf(groupOf(raw, "upstreams"), name)

export const unknownUpstream = gatewayError("not_found", "No upstream of this name is configured")

/** Fields that are changed field by field. Others are replaced as a whole. */
const groups: ReadonlySet<string> = new Set(["timeouts", "tls"])

const withoutNulls = (value: Schema.Json): Schema.Json =>
  isJsonObject(value) ? Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null)) : value

const patchEntry = (entry: RawConfig, patch: RawConfig): RawConfig => {
  const kept = keepHidden(entry, patch)
  return Object.entries(kept).reduce((next, [field, value]) => {
    if (value === null) return setField(next, [field], undefined)
    const before = next[field]
    const merged = groups.has(field) && isJsonObject(before) && isJsonObject(value) ? { ...before, ...value } : value
    const given = withoutNulls(merged)
    const isEmpty = groups.has(field) && isJsonObject(given) && Object.keys(given).length === 0
    return setField(next, [field], isEmpty ? undefined : given)
  }, entry)
}

/** Adds the upstream of a body; a name that is configured is a conflict. A default upstream with accounts stays. */
export const addUpstream = (
  raw: RawConfig,
  config: GatewayConfig,
  { name, ...entry }: RawConfig
): Result.Result<RawConfig, GatewayError> => {
  if (typeof name !== "string" || name.trim() === "") return Result.fail(invalidRequest("name is required", "name"))
  const isTaken = isUnnamed(name) || config.upstreams.has(name)
  if (isTaken) return Result.fail(gatewayError("conflict", `the upstream ${name} already exists`))
  // Named upstreams alone leave no default one, which keeps its accounts here.
  const isUsed = config.accounts.some(({ upstream }) => isUnnamed(upstream))
  const kept = isUsed && !Object.hasOwn(raw, "upstream") ? setField(raw, ["upstream"], {}) : raw
  return Result.succeed(setField(kept, pathOf(name), patchEntry({}, entry)))
}

/**
 * Changes the entry of an upstream: an absent field stays, `null` unsets it, a secret as it is shown stays. `from` makes the entry that is
 * changed.
 */
export const changeUpstream = (
  raw: RawConfig,
  config: GatewayConfig,
  upstream: string,
  { name, ...patch }: RawConfig,
  from: (entry: RawConfig) => RawConfig = identity
): Result.Result<RawConfig, GatewayError> => {
  if (!config.upstreams.has(upstream)) return Result.fail(unknownUpstream)
  if (name !== undefined && name !== upstream) {
    return Result.fail(invalidRequest("name cannot be changed; add another upstream and remove this one", "name"))
  }
  return Result.succeed(setField(raw, pathOf(upstream), patchEntry(from(entryOf(raw, upstream)), patch)))
}

/** What names an upstream: accounts, targets (`route: target`), and routes that have no other target. */
export interface Naming {
  readonly accounts: ReadonlyArray<string>
  readonly targets: ReadonlyArray<string>
  readonly routes: ReadonlyArray<string>
}

/** An upstream and what names it, removed. */
export interface Removal {
  readonly raw: RawConfig
  readonly named: Naming
}

const targetsOf = (route: Schema.Json): ReadonlyArray<Schema.Json> | undefined => {
  const targets = isJsonObject(route) ? route["targets"] : route
  return Array.isArray(targets) ? targets : undefined
}

/** The text of a target of the file; empty for what is no target. */
const textOf = (target: Schema.Json): string => {
  const text = isJsonObject(target) ? target["target"] : target
  return typeof text === "string" ? text : ""
}

/** Removes the targets of an upstream from the routes; `left` is `undefined` where no route is left. */
const withoutTargets = (routes: RawConfig, upstream: string) => {
  const targets: Array<string> = []
  const gone: Array<string> = []
  const left: Array<[string, Schema.Json]> = []
  for (const [name, route] of Object.entries(routes)) {
    const all = targetsOf(route) ?? []
    const kept = all.filter((target) => upstreamOfTarget(textOf(target)) !== upstream)
    targets.push(...all.filter((target) => !kept.includes(target)).map((target) => `${name}: ${textOf(target)}`))
    if (kept.length === all.length) left.push([name, route])
    else if (kept.length === 0) gone.push(name)
    else left.push([name, isJsonObject(route) ? { ...route, targets: kept } : kept])
  }
  return { targets, routes: gone, left: left.length === 0 ? undefined : Object.fromEntries(left) }
}

const counted = (count: number, thing: string): ReadonlyArray<string> =>
  count === 0 ? [] : [`${count} ${thing}${count === 1 ? "" : "s"}`]

/** Removes an upstream. What names it goes along with `force`; without, it is a conflict. */
export const removeUpstream = Effect.fnUntraced(function*(
  raw: RawConfig,
  config: GatewayConfig,
  upstream: string,
  force: boolean
): Effect.fn.Return<Removal, GatewayError> {
  if (isUnnamed(upstream)) {
    return yield* invalidRequest("The upstream default cannot be removed: it is the group upstream", "name")
  }
  if (!config.upstreams.has(upstream)) return yield* unknownUpstream
  const entries = accountsOf(raw)
  const accounts: Array<string> = []
  const kept: Array<RawConfig> = []
  yield* forEachCooperatively(config.accounts, (account, place) => {
    if (account.upstream === upstream) accounts.push(account.name)
    else kept.push(entries[place]!)
  })
  const { left, routes, targets } = withoutTargets(groupOf(raw, "routes"), upstream)
  if (!force && accounts.length + targets.length > 0) {
    const what = [...counted(accounts.length, "account"), ...counted(targets.length, "target")].join(" and ")
    return yield* gatewayError(
      "conflict",
      `the upstream ${upstream} has ${what}: remove them first, or all together with force=true`
    )
  }
  const others = setField(raw, pathOf(upstream), undefined)
  const isLast = Object.keys(groupOf(others, "upstreams")).length === 0
  const without = isLast ? setField(others, ["upstreams"], undefined) : others
  return {
    raw: {
      ...(targets.length === 0 ? without : setField(without, ["routes"], left)),
      ...(accounts.length === 0 ? {} : { accounts: kept })
    },
    named: { accounts, targets, routes }
  }
})

/** A name for an upstream that is tested and not saved. */
export const draftName = ({ upstreams }: GatewayConfig): string => {
  let draft = "draft"
  for (let count = 2; upstreams.has(draft); count++) draft = `draft-${count}`
  return draft
}
