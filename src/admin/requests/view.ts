/**
 * Records as the admin API shows them: facts in lists; bodies and frames of both sides, without credentials, for one record.
 */
import * as Struct from "effect/Struct"
import { faultOfRequest, nameOfTarget } from "../../completion/RequestStats.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { costOf, linesOf } from "../../domain/bill.ts"
import { formatDecimal } from "../../domain/decimal.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { PromptCache } from "../../domain/warmth.ts"
import { showConversation } from "../../recordings/conversation.ts"
import { cutFrames } from "../../recordings/frames.ts"
import type { RecordedBytes } from "../../recordings/RecordedBytes.ts"
import { type AssembledReply, assembleReply, assembleRounds } from "../../recordings/recordedReply.ts"
import { redactBytes, redactText } from "../../recordings/redactRound.ts"
import type { RequestFacts, TryFacts } from "../../recordings/RequestFacts.ts"
import type { RequestRecord } from "../../recordings/RequestRecord.ts"
import { type RequestDetail, RequestItem } from "./Api.ts"

/** What views know beside the record. */
export interface ViewContext {
  /** The id of this node if several share a store. */
  readonly node: string | undefined
  /** The name of a key by its id. */
  readonly keyName: (id: string) => string | undefined
}

/** The names of keys in a configuration, by the ids of the keys. */
export const keyNameIn = ({ key_records }: GatewayConfig) => (id: string): string | undefined =>
  key_records.get(id)?.name

/** The id of a record, which is also the cursor to older ones. */
export const idOf = (number: number): string => `rec_${number.toString(36)}`

/** The number of a record by its id or cursor; `undefined` for another form of id. */
export const numberOf = (id: string): number | undefined => {
  const digits = /^rec_([0-9a-z]{1,10})$/.exec(id)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 36)
}

const tenths = (millis: number | undefined): number | null =>
  millis === undefined ? null : Math.round(10 * Math.max(0, millis)) / 10

/** The cost of a try with all its turns; `null` without one. */
const costOfTry = (tried: TryFacts, { billed = [] }: RequestFacts): string | null => {
  const bills = billed.filter(({ recorded }) => recorded === tried).map(({ bill }) => bill)
  const costs = bills.map((bill) => bill?.cost)
  return costs.includes(undefined) ? null : formatDecimal(costs.reduce<bigint>((sum, cost = 0n) => sum + cost, 0n))
}

const decimalOf = (amount: bigint | undefined): string | null => amount === undefined ? null : formatDecimal(amount)

const viewBill = ({ billed }: RequestFacts): typeof RequestDetail.Type["bill"] => {
  const { bill, usage } = billed?.at(-1) ?? {}
  if (bill === undefined || usage === undefined) return null
  const { cost, price, source, unpriced } = bill
  return {
    cost: decimalOf(cost),
    source,
    listed: price?.listed ?? null,
    by_prices: decimalOf(price && costOf(price, usage)),
    by_server: decimalOf(usage.details?.serverCost),
    lines: price === undefined ? [] : linesOf(price, usage),
    unpriced: unpriced.map(([unit, amount]) => ({ unit, amount }))
  }
}

const viewTry = (facts: TryFacts, request: RequestFacts) => ({
  upstream: facts.upstream,
  model: facts.model,
  account: facts.account,
  cause: facts.cause ?? null,
  status: facts.status ?? null,
  queued_ms: tenths(facts.queued) ?? 0,
  began_ms: tenths(facts.began) ?? 0,
  took_ms: tenths(facts.took),
  cost: request.billed?.at(-1)?.bill === undefined ? null : costOfTry(facts, request)
})

const viewCache = ({ age, at, because, reason, ...counts }: PromptCache) => ({
  ...counts,
  reason: reason ?? null,
  at: at ?? null,
  because: because ?? null,
  age_s: age ?? null
})

/** A record in lists. */
export const viewItem = (record: RequestRecord, { keyName, node }: ViewContext): typeof RequestItem.Type => {
  const { facts } = record
  return {
    id: node === undefined ? idOf(record.number) : `${node}:${idOf(record.number)}`,
    request_id: facts.id,
    started_at: record.startedAt,
    style: facts.style ?? "",
    model: facts.requestedModel ?? null,
    native_model: facts.model ?? null,
    stream: facts.stream,
    key: record.key,
    key_name: keyName(record.key) ?? null,
    ...(facts.client === undefined ? {} : { client: facts.client }),
    ...facts.identity?.shown,
    account: record.account,
    ...(facts.target === undefined ? {} : { target: nameOfTarget(facts.target) }),
    state: record.state,
    outcome: record.outcome,
    status: facts.status ?? null,
    error: facts.error ?? null,
    finish: facts.finish ?? null,
    attempts: facts.attempts,
    failovers: facts.failovers,
    ...(facts.rehearsed === undefined ? {} : { rehearsal: true as const }),
    calls: facts.calls,
    queued_ms: record.state === "queued" ? null : tenths(facts.queued),
    first_event_ms: tenths(facts.firstEventAt === undefined ? undefined : facts.firstEventAt - facts.startedAt),
    duration_ms: tenths(record.endedAt === undefined ? undefined : record.endedAt - facts.startedAt),
    usage: facts.usage === undefined ? null : {
      prompt_tokens: facts.usage.promptTokens,
      completion_tokens: facts.usage.completionTokens,
      reasoning_tokens: facts.usage.reasoningTokens
    },
    cost: decimalOf(facts.cost ?? undefined),
    ...(facts.promptCache === undefined ? {} : { prompt_cache: viewCache(facts.promptCache) }),
    bodies_kept: record.bodiesKept,
    ...(node === undefined ? {} : { node })
  }
}

const viewReply = ({ calls, finish, reasoning, text }: AssembledReply, blot: (text: string) => string) => ({
  text: blot(text),
  reasoning: reasoning === "" ? null : blot(reasoning),
  calls: calls.map((call) => ({ id: call.id, name: call.name, arguments: blot(call.arguments) })),
  finish: finish ?? null
})

/** The reply of a style that is no conversation. */
const noReply = { text: null, reasoning: null, calls: [], finish: null }

/** A whole record. `secrets` are texts to redact beside the record's own credentials; `bodies` are the bodies to show. */
export function* viewDetail(
  record: RequestRecord,
  context: ViewContext & { readonly secrets: ReadonlyArray<string> },
  bodies: RequestRecord["withoutBodies"] = record
): Cooperative<typeof RequestDetail.Type> {
  const { node } = context
  const secrets = [...record.secrets, ...context.secrets]
  const blot = (text: string) => redactText(text, secrets)
  const blotAll = (fields: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, blot(value)]))
  const framesOf = (recorded: RecordedBytes) =>
    cutFrames({ ...recorded, bytes: redactBytes(recorded.bytes, secrets) }, record.facts.startedAt)
  const { facts, head } = record
  const { body, conversation, reply, rounds } = bodies
  const replyFrames = reply === undefined ? [] : framesOf(reply.body)
  const assembled = yield* assembleReply(facts.style ?? "", replyFrames, reply?.body.contentType)
  const lastRounds = rounds.filter(({ attempt, reply }) => attempt === rounds.at(-1)?.attempt && reply.bytes.length > 0)
  const upstreamReply = assembled === undefined || lastRounds.length === 0
    ? undefined
    : yield* assembleRounds(lastRounds.map(({ protocol, reply }) => ({ protocol, ...reply })))
  return {
    ...viewItem(record, context),
    request: {
      method: head.method,
      path: blot(head.path),
      headers: blotAll(head.headers),
      body: blot(body.text),
      truncated: body.truncated
    },
    conversation: conversation === undefined ? null : showConversation(conversation).map((turn) => ({
      ...turn,
      text: blot(turn.text),
      calls: turn.calls.map((call) => ({ ...call, arguments: blot(call.arguments) }))
    })),
    tries: (facts.tries ?? []).map((tried) => viewTry(tried, facts)),
    excluded: facts.excluded ?? [],
    bill: viewBill(facts),
    fallback: facts.fallback ?? null,
    error_message: facts.errorMessage === undefined ? null : blot(facts.errorMessage),
    fault: faultOfRequest({ ...facts, key: record.key }) ?? null,
    upstream: rounds.map((round) => ({
      capture_id: node === undefined || round.captureId === "" ? round.captureId : `${node}:${round.captureId}`,
      label: round.label,
      protocol: round.protocol,
      attempt: round.attempt,
      url: blot(round.url),
      account: round.account,
      status: round.status,
      request_body: blot(round.requestBody),
      frames: framesOf(round.reply),
      truncated: round.reply.truncated
    })),
    reply: reply === undefined ? null : {
      status: reply.status,
      headers: blotAll(reply.headers),
      frames: replyFrames,
      truncated: reply.body.truncated,
      ...(assembled === undefined ? noReply : viewReply(assembled, blot))
    },
    upstream_reply: upstreamReply === undefined ? null : viewReply(upstreamReply, blot),
    tool_calls: (assembled?.calls ?? []).map((call) => ({ ...call, arguments: blot(call.arguments) })),
    server_timing: reply?.headers["server-timing"] ?? null,
    ignored: facts.ignored ?? [],
    ignored_more: facts.ignoredMore
  }
}

const itemFields = Object.keys(RequestItem.fields) as ReadonlyArray<keyof typeof RequestItem.Type>

/**
 * A record without bodies, frames and the words of the upstream, for an operator who may not read them. A field that is not named here is
 * left out.
 */
export const withoutBodies = (detail: typeof RequestDetail.Type): typeof RequestDetail.Type => ({
  ...Struct.pick(detail, itemFields),
  bodies_kept: false,
  request: { ...detail.request, body: "" },
  conversation: null,
  tries: detail.tries,
  excluded: detail.excluded,
  bill: detail.bill,
  fallback: detail.fallback,
  fault: detail.fault,
  // The upstream's words may quote the prompt.
  error_message: null,
  upstream: detail.upstream.map((round) => ({ ...round, request_body: "", frames: [] })),
  reply: detail.reply === null ? null : { ...detail.reply, ...noReply, frames: [] },
  upstream_reply: null,
  tool_calls: [],
  server_timing: detail.server_timing,
  ignored: detail.ignored,
  ignored_more: detail.ignored_more
})
