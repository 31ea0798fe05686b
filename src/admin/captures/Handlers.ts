/**
 * Packet captures at work. Bodies may be megabytes each, so the reply is put together one item at a time.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { apiId, jsonText } from "../../http/reply.ts"
import { type CapturedRound, responseText, type RoundSummary } from "../../recordings/captures/CapturedRound.ts"
import { Captures } from "../../recordings/captures/Captures.ts"
import { logChange } from "../changes.ts"
import { makeNodeItems, type NodeItem, type NodeItems, type NodeList } from "../nodeItems.ts"
import type { CaptureItem, CaptureSummary } from "./Api.ts"
import { AdminCapturesGroup } from "./Api.ts"

/** An id as callers see it, and the node that has it. */
type Names = Pick<NodeItems, "named" | "node">

const headOf = (round: Omit<CapturedRound, "requestBody" | "bytes">, { named, node }: Names) => {
  const id = node()
  return {
    id: named(round.id),
    created_at: Math.floor(round.createdAt / 1000),
    label: round.label,
    url: round.url,
    account_id: round.account,
    status_code: round.status,
    response_truncated: round.truncated,
    chain_key: named(round.chainKey),
    ...(round.cause === undefined ? {} : { cause: round.cause }),
    ...(id === undefined ? {} : { node: id })
  }
}

const itemOf = (round: CapturedRound, names: Names): typeof CaptureItem.Type => ({
  ...headOf(round, names),
  request_body: round.requestBody,
  response_body: responseText(round)
})

const summaryOf = (round: RoundSummary, names: Names): typeof CaptureSummary.Type => ({
  ...headOf(round, names),
  request_bytes: round.requestBytes,
  response_bytes: round.responseBytes,
  request_id: round.requestId,
  closed: round.closed
})

const unknown = gatewayError("not_found", "There is no capture of this id")

export const AdminCapturesHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminCapturesGroup),
  "admin-captures",
  Effect.fnUntraced(function*(handlers) {
    const captures = yield* Captures
    const store = yield* ConfigStore
    const nodes = yield* makeNodeItems

    /** This node's rounds; `question` is whether they come without bodies. */
    const local = Effect.fnUntraced(function*(question: string): Effect.fn.Return<NodeList> {
      const summary = question === "summary"
      const rounds: ReadonlyArray<CapturedRound | RoundSummary> = summary
        ? yield* captures.summaries
        : yield* captures.list
      const items: Array<NodeItem> = []
      for (const [i, round] of rounds.entries()) {
        if (i > 0 && !summary) yield* Effect.yieldNow
        const item = "bytes" in round ? itemOf(round, nodes) : summaryOf(round, nodes)
        items.push({ at: round.createdAt, place: -i, json: JSON.stringify(item) })
      }
      return { head: "", items }
    })
    const merged = nodes.merged("captures", local)

    /** One round of this node's, as JSON. */
    const detail = Effect.fnUntraced(function*(id: string) {
      const round = yield* captures.round(id)
      if (round === undefined) return yield* unknown
      return JSON.stringify({ ...itemOf(round, nodes), request_id: round.requestId, closed: round.closed })
    })
    nodes.peers.answers("capture", detail)
    nodes.peers.answers("clear captures", () => Effect.as(captures.clear, ""))

    return handlers
      .handle(
        "list",
        Effect.fnUntraced(function*({ query }) {
          const { enabled, limit, max_body_bytes } = (yield* store.current).captures
          const { items, missing } = yield* merged(query.summary === "true" ? "summary" : "")
          const head = JSON.stringify({
            enabled,
            limit,
            max_body_bytes,
            ...nodes.told(missing)
          }).slice(0, -1)
          return jsonText(`${head},"items":[${items.map(({ json }) => json).join(",")}]}`)
        })
      )
      .handle(
        "get",
        Effect.fnUntraced(function*({ params }) {
          const elsewhere = nodes.elsewhere(params.id)
          const text = elsewhere === undefined
            ? yield* detail(nodes.own(params.id))
            : yield* nodes.peers.askOne(elsewhere.node, "capture", elsewhere.id)
          return text === undefined ? yield* unknown : jsonText(text)
        })
      )
      .handle("clear", () =>
        captures.clear.pipe(
          Effect.andThen(nodes.peers.askAll("clear captures", "")),
          Effect.tap(logChange("the captures were cleared")),
          Effect.map(({ missing }) => ({
            success: true as const,
            detail: "capture logs cleared" as const,
            ...nodes.told(missing)
          }))
        ))
  })
)
