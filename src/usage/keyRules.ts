/**
 * The rules of key limits, the same wherever usage is counted: what is refused, and with which error. Pure.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { KeyLimit, KeyRecord } from "../config/keyRecords.ts"
import { promptCost, unpricedTarget } from "../domain/bill.ts"
import { formatDecimal } from "../domain/decimal.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { type Route, targetName } from "../domain/routes.ts"
import { formatTimestamp } from "../domain/time.ts"
import { exceededBy, type KeyState, type Reserved, type Share, type Used, type WindowCount } from "./Admission.ts"
import { exceededMessage, formatCost, type RateLimits } from "./rateLimits.ts"

/** A request for admission. */
export interface AdmissionRequest {
  /** The id of its key. Other callers have no limits. */
  readonly key: string
  /** What its model stands for; `undefined` for a request that costs nothing. */
  readonly model?: Route | undefined
  /** Estimates the tokens of its prompt; called only if the key has a limit of tokens or cost. */
  readonly promptTokens: () => number
  /** Returns what it has used; called once, when its scope closes. */
  readonly used: () => Used
  /** What was reserved when its body began to arrive (`KeyLimits.enter`); admission replaces it. */
  readonly entered?: Reserved | undefined
}

/** The refusal of a request. */
export class Refused {
  readonly error: GatewayError
  /** What remains of the key's limits; `undefined` for a key without limits. */
  readonly rateLimits: RateLimits | undefined
  constructor(error: GatewayError, rateLimits: RateLimits | undefined) {
    this.error = error
    this.rateLimits = rateLimits
  }
}

/** The running requests of a key and what it has used, for operators. */
export interface KeyUsage {
  readonly inFlight: number
  /** `undefined` for no limit. */
  readonly maxInFlight: number | undefined
  /** Milliseconds of Unix time. */
  readonly lastUsedAt: number | undefined
  /** One for each of `windowNames`. */
  readonly windows: ReadonlyArray<Readonly<WindowCount>>
}

/** Only an `active` key may be used. */
type KeyStatus = "active" | "disabled" | "expired"

/** The status of a key with this record at `now`, in milliseconds. */
export const keyStatusOf = (record: KeyRecord | undefined, now: number): KeyStatus =>
  record === undefined
    ? "active"
    : record.disabled
    ? "disabled"
    : record.expires_at !== undefined && record.expires_at <= now
    ? "expired"
    : "active"

/** The error for a key that is not active; `undefined` for an active key. */
export const refuseKey = (record: KeyRecord | undefined, now: number): GatewayError | undefined => {
  const status = keyStatusOf(record, now)
  if (status === "active") return undefined
  const message = status === "disabled"
    ? "This API key is disabled"
    : `This API key expired at ${formatTimestamp(record?.expires_at ?? now)}`
  return gatewayError("authentication_failed", message)
}

/** Seconds; a longer `Retry-After` comes with `x-should-retry: false`, since clients would ignore it or sleep that long. */
const longestRetry = 60

export const noLimits: ReadonlyArray<KeyLimit> = []

/** Whether admission estimates the tokens of prompts: one of the limits is of tokens or cost. */
export const countsTokens = (limits: ReadonlyArray<KeyLimit>): boolean =>
  limits.some(({ cost, tokens }) => tokens !== undefined || cost !== undefined)

const limitsCost = (limits: ReadonlyArray<KeyLimit>): boolean => limits.some(({ cost }) => cost !== undefined)

/** The error of a model without a price for a key whose cost is limited. It names the target without a price. */
export const refuseUnpriced = (
  { prices, route_table }: GatewayConfig,
  limits: ReadonlyArray<KeyLimit>,
  route: Route,
  now: number
): GatewayError | undefined => {
  if (limits.length === 0 || !limitsCost(limits)) return undefined
  const target = unpricedTarget(prices, now, route)
  if (target === undefined) return undefined
  const name = targetName(target)
  const at = route_table.showsUpstreams && name !== route.id ? ` at its target "${name}"` : ""
  return gatewayError(
    "model_not_priced",
    `This API key has a limit of cost, and the model "${route.id}" has no price${at}`,
    { param: "model" }
  )
}

/** The names in `upstream.fields` of an upstream. */
const namedFields = ({ upstreams }: GatewayConfig, upstream: string): ReadonlyArray<string> => {
  const fields = upstreams.get(upstream)?.fields
  return Array.isArray(fields) ? fields : []
}

/**
 * The error of a request whose body chooses another model, or a tier, for a key with `models` or a limit of cost: neither would hold. The
 * operator of an upstream allows a field by its name in `upstream.fields`. `paths` are those of the fields.
 */
export const refuseChoosing = (
  config: GatewayConfig,
  record: KeyRecord | undefined,
  { targets }: Route,
  paths: ReadonlyArray<string>
): GatewayError | undefined => {
  if (record === undefined || (record.models === undefined && !limitsCost(record.limits))) return undefined
  const isAllowed = (path: string) => {
    const name = path.slice(path.lastIndexOf(".") + 1)
    return targets.every(({ enabled, upstream }) => !enabled || namedFields(config, upstream).includes(name))
  }
  const path = paths.find((path) => !isAllowed(path))
  return path === undefined ? undefined : invalidRequest(
    `${path}: this API key is limited to models or to an amount, and the field may choose another model or tier; ` +
      "upstream.fields allows it by its name",
    path
  )
}

/** The share of a request whose key has no such limits. */
export const noShare: Share = { tokens: 0, cost: 0n }

/** What a request reserves. */
export const shareOf = (
  { prices }: GatewayConfig,
  limits: ReadonlyArray<KeyLimit>,
  { model, promptTokens }: AdmissionRequest,
  now: number
): Share => {
  const withCost = limitsCost(limits)
  if (!withCost && !countsTokens(limits)) return noShare
  const tokens = promptTokens()
  return { tokens, cost: withCost && model !== undefined ? promptCost(prices, now, model, tokens) : 0n }
}

/** The limit of requests that a key runs at once; `undefined` without a limit. */
export const maxInFlight = ({ runtime }: GatewayConfig, record: KeyRecord | undefined): number | undefined =>
  record?.max_inflight ?? runtime.key_max_inflight

/** A request with the state of its key. Times are milliseconds of Unix time. */
interface Weighed {
  readonly state: KeyState
  readonly limits: ReadonlyArray<KeyLimit>
  /** The limit of running requests. */
  readonly most: number | undefined
  readonly share: Share
  readonly now: number
  readonly currency: string | undefined
}

/** The error of a request beyond its key's limits; `undefined` within them. */
export const refusalOf = ({ currency, limits, most, now, share, state }: Weighed): GatewayError | undefined => {
  if (most !== undefined && state.inFlight >= most) {
    const message = `This API key has as many requests under way as it may have (${most})`
    return gatewayError("rate_limit_exceeded", message, { retryAfter: 1 })
  }
  const exceeded = limits.length === 0 ? [] : exceededBy(state, limits, share)
  if (exceeded.length === 0) return undefined
  const { cost, tokens } = share
  const tooSmall = limits.find((limit) => limit.tokens !== undefined && tokens > limit.tokens)
  if (tooSmall !== undefined) {
    const message =
      `The prompt has about ${tokens} tokens; this API key is limited to ${tooSmall.tokens} per ${tooSmall.window}`
    return gatewayError("rate_limit_exceeded", message, { retry: false })
  }
  const tooLow = limits.find((limit) => limit.cost !== undefined && cost > limit.cost)
  if (tooLow?.cost !== undefined) {
    const message = `The request costs about ${formatDecimal(cost)}; this API key is limited to ${
      formatCost(tooLow.cost, currency)
    } per ${tooLow.window}`
    return gatewayError("rate_limit_exceeded", message, { retry: false })
  }
  const retryAfter = Math.ceil((Math.max(...exceeded.map(({ resetsAt }) => resetsAt)) - now) / 1000)
  const retry = retryAfter > longestRetry ? { retryAfter, retry: false } : { retryAfter }
  return gatewayError("rate_limit_exceeded", exceededMessage(exceeded, currency), retry)
}
