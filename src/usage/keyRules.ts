/**
 * The rules of key limits, the same wherever usage is counted: what is refused, and with which error. Pure.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { KeyRecord } from "../config/keyRecords.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { dearestCost, type MostUsed, promptCost, tokensAlone, unpricedTarget } from "../domain/bill.ts"
import { formatDecimal } from "../domain/decimal.ts"
import { withMargin } from "../domain/estimateTokens.ts"
import { GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { priceOf } from "../domain/prices.ts"
import { resolveRoute, type Route, type Target, targetName } from "../domain/routes.ts"
import { formatTimestamp } from "../domain/time.ts"
import { windowNames } from "../domain/windowNames.ts"
import {
  exceededBy,
  type Fallback,
  type KeyState,
  type Reserved,
  type Share,
  type Used,
  type WindowCount
} from "./Admission.ts"
import { exceededMessage, formatCost, type RateLimits } from "./rateLimits.ts"

/** The most that a request uses at a target. */
export interface Bound {
  readonly target: Target
  readonly most: MostUsed
  /** The tries that the target may charge: strict requests are not sent again after one that is charged. */
  readonly tries: number
}

/** A request for admission. */
export interface AdmissionRequest {
  /** The id of its key. Other callers have no limits. */
  readonly key: string
  /** What its model stands for; `undefined` for a request that costs nothing. */
  readonly model: Route | undefined
  /** Estimates the tokens of its prompt; called only if the key has a limit of tokens or cost. */
  readonly promptTokens: () => number
  /**
   * The most that it uses at each target of a model, or the error of a request without a bound; called only if a limit of tokens or cost is
   * strict. Without it, a request has no output.
   */
  readonly bounds: ((model: Route) => ReadonlyArray<Bound> | GatewayError) | undefined
  /** The fallback of a limit may serve it. */
  readonly takesFallback: boolean
  /** Returns what it has used; called once, when its scope closes. */
  readonly used: () => Used
  /** What was reserved when its body began to arrive (`KeyLimits.enter`); admission replaces it. */
  readonly entered: Reserved | undefined
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

/** Whether one of the limits is of cost. */
export const limitsCost = (limits: ReadonlyArray<KeyLimit>): boolean => limits.some(({ cost }) => cost !== undefined)

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
    `This API key has a cost limit, and the model "${route.id}" has no price${at}. Ask the gateway's operator to add one.`,
    { param: "model" }
  )
}

/** The names in `upstream.fields` of an upstream. */
const namedFields = ({ upstreams }: GatewayConfig, upstream: string): ReadonlyArray<string> => {
  const fields = upstreams.get(upstream)?.fields
  return Array.isArray(fields) ? fields : []
}

/**
 * The error of a request whose body chooses another model, or a tier, for a key with `models` or a cost limit: neither would hold. The
 * operator of an upstream allows a field by its name in `upstream.fields`. `paths` come from the fields.
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
    `${path}: this API key has a list of models or a cost limit, and the field may choose another model or tier. Leave it out, or ask ` +
      "the gateway's operator.",
    path
  )
}

/** The share of a request whose key has no such limits. */
export const noShare: Share = { tokens: 0, cost: 0n, strict: undefined }

/** Whether requests have to be bounded: a limit of tokens or cost is strict. */
const isStrict = ({ cost, strict, tokens }: KeyLimit): boolean =>
  strict === true && (tokens !== undefined || cost !== undefined)

/** A request without output. */
const promptAlone = ({ targets }: Route, tokens: number): ReadonlyArray<Bound> =>
  targets.map((target) => ({
    target,
    most: { ...tokensAlone, promptTokens: withMargin(tokens), completionTokens: 0 },
    tries: 1
  }))

/** What a request reserves, or the error of one that strict limits cannot bound. */
export const shareOf = (
  { prices }: GatewayConfig,
  limits: ReadonlyArray<KeyLimit>,
  { bounds, model, promptTokens }: Pick<AdmissionRequest, "bounds" | "model" | "promptTokens">,
  now: number
): Share | GatewayError => {
  const withCost = limitsCost(limits)
  if (!withCost && !countsTokens(limits)) return noShare
  const promised = promptTokens()
  const share = {
    tokens: promised,
    cost: withCost && model !== undefined ? promptCost(prices, now, model, promised) : 0n,
    strict: undefined
  }
  if (model === undefined || !limits.some(isStrict)) return share
  const found = bounds === undefined ? promptAlone(model, promised) : bounds(model)
  if (found instanceof GatewayError) return found
  let tokens = 0
  let cost = 0n
  for (const { most, target: { enabled, model: { id }, upstream }, tries } of found) {
    if (!enabled) continue
    tokens = Math.max(tokens, tries * (most.promptTokens + most.completionTokens))
    const price = priceOf(prices, now, upstream, id, model.id)
    const dearest = price === undefined ? 0n : BigInt(tries) * dearestCost(price, most)
    if (dearest > cost) cost = dearest
  }
  const windows = limits.filter((limit) => isStrict(limit)).map(({ window }) => window)
  return { ...share, strict: { tokens, cost, windows } }
}

/** The limit of requests that a key runs concurrently; `undefined` without a limit. */
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
  /** The fallback of a limit may serve it. */
  readonly takesFallback: boolean | undefined
}

/** The error of a request beyond its key's limits, by those that no fallback serves beyond, if there are any; `undefined` within all limits. */
export const refusalOf = (
  { currency, limits: all, most, now, share, state, takesFallback }: Weighed
): GatewayError | undefined => {
  if (most !== undefined && state.inFlight >= most) {
    const message = `This API key already has ${most} ${
      most === 1 ? "request" : "requests"
    } in progress, its limit. Retry when one has finished.`
    return gatewayError("rate_limit_exceeded", message, { retryAfter: 1 })
  }
  const ends = takesFallback === true ? all.filter(({ fallback }) => fallback === undefined) : all
  const ending = ends.length === 0 ? [] : exceededBy(state, ends, share)
  const limits = ending.length > 0 ? ends : all
  const exceeded = ending.length > 0 || limits.length === 0 ? ending : exceededBy(state, limits, share)
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

/** What a request is to reserve, and the limits that it is checked by. */
export interface Stage {
  readonly share: Share
  readonly checked: ReadonlyArray<KeyLimit>
  /** What serves it, if not the model that was asked for. */
  readonly fallback: Fallback | undefined
}

/** The first stage of a request: for the model that was asked for, by all limits. */
export const firstStage = (
  config: GatewayConfig,
  limits: ReadonlyArray<KeyLimit>,
  request: AdmissionRequest,
  now: number
): Stage | GatewayError => {
  const share = shareOf(config, limits, request, now)
  return share instanceof GatewayError ? share : { share, checked: limits, fallback: undefined }
}

/**
 * The stage of a request after a refusal: that of the fallback of the limit with the longest window of those that it exceeds, as far as all of
 * them have one; else the refusal. The fallback is checked by the limits without one and by those of longer windows, so that a request has at
 * most one stage for each window.
 */
export const nextStage = (
  config: GatewayConfig,
  limits: ReadonlyArray<KeyLimit>,
  request: AdmissionRequest,
  { checked, share }: Stage,
  refusal: GatewayError,
  { most, now, state }: Pick<Weighed, "most" | "now" | "state">
): Stage | GatewayError => {
  if (request.takesFallback !== true || (most !== undefined && state.inFlight >= most)) return refusal
  const place = ({ window }: Pick<KeyLimit, "window">) => windowNames.indexOf(window)
  const fallbackOf = ({ window }: Pick<KeyLimit, "window">) =>
    checked.find((limit) => limit.window === window)?.fallback
  const exceeded = exceededBy(state, checked, share)
  if (exceeded.length === 0 || exceeded.some((each) => fallbackOf(each) === undefined)) return refusal
  const limit = exceeded.reduce((one, other) => place(other) > place(one) ? other : one)
  const model = resolveRoute(config.route_table, "usual", fallbackOf(limit) ?? "")
  if (model === undefined || refuseUnpriced(config, limits, model, now) !== undefined) return refusal
  const own = shareOf(config, limits, { ...request, model }, now)
  if (own instanceof GatewayError) return refusal
  return {
    share: own,
    checked: checked.filter((each) => each.fallback === undefined || place(each) > place(limit)),
    fallback: { model, limit, refusal }
  }
}
