/**
 * Records as the admin API shows them: facts in lists; bodies and frames of both sides, without credentials, for one record.
 */
import { nameOfTarget } from "../../completion/RequestStats.ts"
import { showConversation } from "../../recordings/conversation.ts"
import { cutFrames } from "../../recordings/frames.ts"
import type { RecordedBytes } from "../../recordings/RecordedBytes.ts"
import { redactBytes, redactText } from "../../recordings/redactRound.ts"
import type { RequestRecord, TryFacts } from "../../recordings/RequestRecord.ts"
import { toolCallsOf } from "../../recordings/toolCalls.ts"
import type { RequestDetail, RequestItem } from "./Api.ts"

/** The id of a record, which is also the cursor to older ones. */
export const idOf = (number: number): string => `rec_${number.toString(36)}`

/** The number of a record by its id or cursor; `undefined` for another form of id. */
export const numberOf = (id: string): number | undefined => {
  const digits = /^rec_([0-9a-z]{1,10})$/.exec(id)?.[1]
  return digits === undefined ? undefined : Number.parseInt(digits, 36)
}

const tenths = (millis: number | undefined): number | null =>
  millis === undefined ? null : Math.round(10 * Math.max(0, millis)) / 10

const viewTry = (facts: TryFacts) => ({
  upstream: facts.upstream,
  model: facts.model,
  account: facts.account,
  cause: facts.cause ?? null,
  status: facts.status ?? null,
  began_ms: tenths(facts.began) ?? 0,
  took_ms: tenths(facts.took)
})

/** A record in lists; `node` is the id of this node if several share a store. */
export const viewItem = (record: RequestRecord, node: string | undefined): typeof RequestItem.Type => {
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
    ...(facts.client === undefined ? {} : { client: facts.client }),
    account: record.account,
    ...(facts.target === undefined ? {} : { target: nameOfTarget(facts.target) }),
    state: record.state,
    outcome: record.outcome,
    status: facts.status ?? null,
    error: facts.error ?? null,
    finish: facts.finish ?? null,
    attempts: facts.attempts,
    failovers: facts.failovers,
    calls: facts.calls,
    queued_ms: record.state === "queued" ? null : tenths(facts.queued),
    first_event_ms: tenths(facts.firstEventAt === undefined ? undefined : facts.firstEventAt - facts.startedAt),
    duration_ms: tenths(record.endedAt === undefined ? undefined : record.endedAt - facts.startedAt),
    usage: facts.usage === undefined ? null : {
      prompt_tokens: facts.usage.promptTokens,
      completion_tokens: facts.usage.completionTokens,
      reasoning_tokens: facts.usage.reasoningTokens
    },
    bodies_kept: record.bodiesKept,
    ...(node === undefined ? {} : { node })
  }
}

/** A whole record. `alwaysSecret` are texts to redact beside the record's own credentials. */
export const viewDetail = (
  record: RequestRecord,
  node: string | undefined,
  alwaysSecret: ReadonlyArray<string>
): typeof RequestDetail.Type => {
  const secrets = [...record.secrets, ...alwaysSecret]
  const blot = (text: string) => redactText(text, secrets)
  const blotAll = (fields: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, blot(value)]))
  const framesOf = (recorded: RecordedBytes) =>
    cutFrames({ ...recorded, bytes: redactBytes(recorded.bytes, secrets) }, record.facts.startedAt)
  const { body, conversation, head, reply } = record
  const replyFrames = reply === undefined ? [] : framesOf(reply.body)
  const isStream = /^text\/event-stream\b/i.test(reply?.body.contentType ?? "")
  return {
    ...viewItem(record, node),
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
    ...(record.facts.tries === undefined ? {} : { tries: record.facts.tries.map(viewTry) }),
    upstream: record.rounds.map((round) => ({
      capture_id: node === undefined || round.captureId === "" ? round.captureId : `${node}:${round.captureId}`,
      label: round.label,
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
      truncated: reply.body.truncated
    },
    tool_calls: toolCallsOf(record.facts.style ?? "", replyFrames, isStream),
    server_timing: reply?.headers["server-timing"] ?? null,
    ignored: record.facts.ignored ?? [],
    ignored_more: record.facts.ignoredMore
  }
}
