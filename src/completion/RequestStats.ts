/**
 * What happens to a request, for its log line, headers, metrics, usage and record. One mutable object per request: it is written on the
 * way, and no decision reads it (`scripts/statsRules.ts`). Decisions depend on the `Request`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Tracer from "effect/Tracer"
import type { Bill } from "../domain/bill.ts"
import type { ShownIdentity } from "../domain/clientIdentity.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { FailureCause } from "../domain/FailureCause.ts"
import { type Fault, faultOf } from "../domain/fault.ts"
import type { FinishReason, Usage } from "../domain/ReplyEvent.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
import { directKey, none } from "../domain/usageNames.ts"
import type { PromptCache } from "../domain/warmth.ts"
import type { ExclusionReason } from "../placement/reasons.ts"
import type { Amounts } from "../usage/Admission.ts"
import type { RateLimits } from "../usage/rateLimits.ts"

/** A model of an upstream that a request was sent to. */
export interface AnsweringTarget {
  /** The upstream's name. */
  readonly upstream: string
  /** The model's id within the upstream. */
  readonly model: string
}

/** The tokens of a request in progress. */
export interface TokensSoFar {
  /** `undefined` while the upstream has not got the request. */
  readonly usage: () => Usage | undefined
  /** True if a figure is an estimate. */
  readonly estimated: () => boolean
  /** True if the upstream has reported the prompt's tokens. */
  readonly promptReported: () => boolean
  /** True if they come from a try that `billed` has. */
  readonly isBilled: boolean
}

/** What a try used, which the upstream charges. */
export interface BilledTry extends AnsweringTarget {
  /** The hash of the account; `undefined` without one. */
  readonly account: string | undefined
  /** Gets the pictures of its prompt when the request is settled, if its price counts them. */
  usage: Usage
  /** The caller saw nothing of it. */
  readonly isWasted: boolean
  /** The try as it is recorded. */
  readonly recorded: RecordedTry | undefined
  /** Set when the request is settled. */
  bill: Bill | undefined
}

/** Why a try failed, with its target as `upstream/model` where there are several. */
export type FailedTryCause = FailureCause & { readonly target?: string }

/** An attempt at a target. */
export interface RecordedTry extends AnsweringTarget {
  /** The account as operators know it; empty for a caller's own token. */
  readonly account: string
  /** The target failed in a rehearsal, without a call. */
  readonly isRehearsed: boolean
  /** The code of the failure; `undefined` for a try that answered or still runs. */
  cause: string | undefined
  /** The HTTP status of the upstream, if it failed with one. */
  status: number | undefined
  /** Milliseconds in the queue before it. */
  readonly queued: number
  /** Milliseconds from the start of the request, and of the try up to its first event or failure. */
  readonly began: number
  took: number | undefined
}

/** A target of the route that a request did not go to, and why. */
export interface ExcludedTarget {
  readonly target: string
  readonly reason: ExclusionReason
}

/** Times are monotonic milliseconds unless stated otherwise; counts start at 0. */
export interface RequestStats {
  readonly id: string
  readonly startedAt: number
  /** The client's address as `privacy.client_address` allows; `undefined` if nothing of it is kept. */
  client: string | undefined
  style: string | undefined
  /** Who calls, as the client says. Readers take what it shows. */
  identity: { readonly shown: ShownIdentity } | undefined
  /** The model as requested, and the id that it resolved to. */
  requestedModel: string | undefined
  model: string | undefined
  stream: boolean
  /** Id of the caller's key, or a fixed id for callers without one; `none` before authentication. */
  key: string
  /** When the key's limits admitted the request, in Unix milliseconds. */
  admittedAt: number | undefined
  /** What the strict limits of the key reserve; `undefined` without such limits. */
  reserved: Amounts | undefined
  /** The model that serves in place of the one that was asked for, and the limit: its window and what it counts. */
  fallback: { readonly model: string; readonly limit: string } | undefined
  /** The remaining limits of the key, if it has limits. */
  rateLimits: RateLimits | undefined
  /** The rate-limit headers of the server that the caller gets. */
  serverLimits: Readonly<Record<string, string>> | undefined
  accountHash: string | undefined
  /** An account was leased and the upstream was called. */
  upstreamCalled: boolean
  attempts: number
  /** Those of the attempts that a rehearsal made fail, without a call; `undefined` for a request that rehearses nothing. */
  rehearsed: number | undefined
  /** Attempts on another account or target after a failure; `retries` counts those on the same one. */
  failovers: number
  retries: number
  /** Milliseconds in the queue, over all attempts. */
  queued: number
  /** Milliseconds of upstream time, over all attempts: up to the first reply event, or the last one of a whole reply. */
  upstream: number
  /** The current wait and its start; added to `queued` or `upstream` when it ends. */
  waiting: { readonly for: "queued" | "upstream"; readonly since: number } | undefined
  /** The target of the current or last attempt, where the configuration has several upstreams or routes. */
  target: AnsweringTarget | undefined
  /** The attempts with their targets, in order; `undefined` before the first one, and where nothing reads them. */
  tries: Array<RecordedTry> | undefined
  /** The targets of its route that were left out before its attempts, as they were then; `undefined` without any, and where nothing reads them. */
  excluded: Array<ExcludedTarget> | undefined
  /** The driver of the current or last attempt. */
  driver: string | undefined
  /** The path of a request that matches no route. */
  path: string | undefined
  firstEventAt: number | undefined
  /** What the last try has sent, until the request is over; `undefined` for a request that is no conversation. */
  sent: Pick<Conversation, "turns"> | undefined
  usage: Usage | undefined
  /** What the cache of its server was to the reply; `undefined` until its usage is known, and where no cache is watched. */
  promptCache: PromptCache | undefined
  /** The usage of an earlier reply of the same request; added to `usage` at its end. */
  usageBefore: Usage | undefined
  /** The last try has begun its reply. */
  answered: boolean
  /** The tries that are charged, in order; the last one is added when the request is settled. */
  billed: Array<BilledTry> | undefined
  /** The cost of all tries as an amount of 10^-9, from the first time that it is asked for; `null` without a price. */
  cost: bigint | null | undefined
  /** The tokens that count unless `usage` becomes known. */
  soFar: TokensSoFar | undefined
  finish: FinishReason | undefined
  /** HTTP status of the response; `undefined` if the client disconnected before it. */
  status: number | undefined
  /** Code of the error that was sent, in the stream too. */
  error: string | undefined
  /** The sentence of that error. */
  errorMessage: string | undefined
  /** The class of the failure of the last attempt, or the code with which the gateway refused it; `undefined` if it has not failed. */
  failureClass: string | undefined
  /** Cause of the upstream failure behind `error`. */
  cause: FailureCause | undefined
  /** The causes of the failed tries in order, as many as there are tries; `undefined` without any. */
  failures: Array<FailedTryCause> | undefined
  /** Upstream rounds that continued or resumed the reply. */
  continues: number
  calls: number
  /** Calls that were cut off or could not be repaired. */
  brokenCalls: number
  /** Progress of a request whose reply is no conversation: embeddings, relayed requests; `undefined` for others. */
  progress: "begun" | "done" | undefined
  /** Paths of what had no effect or no place (`ignored.ts`), as far as they are named, and the number of the others. */
  ignored: Array<string> | undefined
  ignoredMore: number
}

/**
 * Notes that the upstream charges a try. A request has as many as it has tries, and one more for each turn that is asked again. `target` and
 * `account` come from the last try unless given.
 */
export const addBilled = (
  stats: RequestStats,
  usage: Usage,
  isWasted: boolean,
  target: AnsweringTarget = stats.target ?? { upstream: upstreamNamed(undefined), model: stats.model ?? none }
): void => {
  const { upstream, model } = target
  const billed = stats.billed ??= []
  const recorded = stats.tries?.at(-1)
  billed.push({ upstream, model, account: stats.accountHash, usage, isWasted, recorded, bill: undefined })
}

/** A whole reply is over, and another one of the same request follows. */
export const startsNextReply = (stats: RequestStats): void => {
  if (stats.usage !== undefined) addBilled(stats, stats.usage, false)
  stats.usageBefore = stats.usage
  stats.usage = undefined
  stats.soFar = undefined
  stats.finish = undefined
}

/** Stats of a request that starts now. */
export const makeRequestStats = (id: string, startedAt: number): RequestStats => ({
  id,
  startedAt,
  client: undefined,
  style: undefined,
  identity: undefined,
  requestedModel: undefined,
  model: undefined,
  stream: false,
  key: none,
  admittedAt: undefined,
  reserved: undefined,
  fallback: undefined,
  rateLimits: undefined,
  serverLimits: undefined,
  accountHash: undefined,
  upstreamCalled: false,
  attempts: 0,
  rehearsed: undefined,
  failovers: 0,
  retries: 0,
  queued: 0,
  upstream: 0,
  waiting: undefined,
  target: undefined,
  tries: undefined,
  excluded: undefined,
  driver: undefined,
  path: undefined,
  firstEventAt: undefined,
  sent: undefined,
  usage: undefined,
  promptCache: undefined,
  usageBefore: undefined,
  answered: false,
  billed: undefined,
  cost: undefined,
  soFar: undefined,
  finish: undefined,
  status: undefined,
  error: undefined,
  errorMessage: undefined,
  failureClass: undefined,
  cause: undefined,
  failures: undefined,
  continues: 0,
  calls: 0,
  brokenCalls: 0,
  progress: undefined,
  ignored: undefined,
  ignoredMore: 0
})

/** What decides who has to act on the error of a request. */
type FaultFacts = Pick<RequestStats, "attempts" | "error" | "failureClass" | "key">

/** Who has to act on the error of a request; `undefined` without an error. */
export const faultOfRequest = ({ attempts, error, failureClass, key }: Readonly<FaultFacts>): Fault | undefined =>
  error === undefined
    ? undefined
    : faultOf({ error, cause: failureClass, direct: key === directKey, admitted: attempts > 0 })

/** A target as `upstream/model`. */
export const nameOfTarget = ({ model, upstream }: AnsweringTarget): string => `${upstream}/${model}`

/** Notes why a try failed. */
export const noteFailure = (stats: RequestStats, cause: FailureCause | undefined): void => {
  const target = targetOf(stats)
  const failures = stats.failures ??= []
  failures.push({ ...target === undefined ? {} : { target }, ...cause })
}

/** The target of the current or last attempt, as `upstream/model`; `undefined` in a configuration of one upstream. */
export const targetOf = ({ target }: Pick<RequestStats, "target">): string | undefined =>
  target === undefined ? undefined : nameOfTarget(target)

/** True if a finished request used more than its key's strict limits had reserved for it. A reservation of 0 has no cost in it. */
export const overran = ({ cost, reserved, usage }: RequestStats): boolean => {
  if (reserved === undefined) return false
  const tokens = usage === undefined ? 0 : usage.promptTokens + usage.completionTokens
  return tokens > reserved.tokens || (reserved.cost > 0n && (cost ?? 0n) > reserved.cost)
}

/** True if the reply started and did not finish. */
const isCutShort = ({ attempts, finish, progress }: RequestStats): boolean =>
  progress === undefined ? attempts > 0 && finish === undefined : progress === "begun"

/** How a request ended: its error code, `client_left`, the reply's finish reason, or `ok`. */
export const outcomeOf = (stats: RequestStats): string =>
  stats.error !== undefined
    ? stats.error
    : stats.status === undefined || (stats.status === 200 && isCutShort(stats))
    ? "client_left"
    : stats.finish ?? "ok"

/** Observes requests for logs, metrics and traces. The default does nothing. */
export interface RequestWatch {
  /** Called once when a request is over, its response body included. Must not fail. */
  readonly ended: (stats: RequestStats, span: Tracer.Span | undefined) => Effect.Effect<void>
  /** True if requests are spans of a trace. */
  readonly traced: boolean
}

/** The watch that learns of each request that ends; by default none does. */
export const CurrentRequestWatch = Context.Reference<RequestWatch>("model-gateway/completion/RequestWatch", {
  defaultValue: (): RequestWatch => ({ ended: () => Effect.void, traced: false })
})
