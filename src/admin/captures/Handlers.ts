/**
 * Packet captures at work. Bodies may be megabytes each, so the reply is put together one item at a time.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { type CapturedRound, responseText, type RoundSummary } from "../../captures/CapturedRound.ts"
import { Captures } from "../../captures/Captures.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { apiId, jsonText, respond } from "../../http/reply.ts"
import { logChange } from "../changes.ts"
import type { CaptureItem, CaptureSummary } from "./Api.ts"
import { AdminCapturesGroup } from "./Api.ts"

const headOf = (round: Omit<CapturedRound, "requestBody" | "bytes">) => ({
  id: round.id,
  created_at: Math.floor(round.createdAt / 1000),
  label: round.label,
  url: round.url,
  account_id: round.account,
  status_code: round.status,
  response_truncated: round.truncated,
  chain_key: round.chainKey,
  ...(round.cause === undefined ? {} : { cause: round.cause })
})

const itemOf = (round: CapturedRound): typeof CaptureItem.Type => ({
  ...headOf(round),
  request_body: round.requestBody,
  response_body: responseText(round)
})

const summaryOf = (round: RoundSummary): typeof CaptureSummary.Type => ({
  ...headOf(round),
  request_bytes: round.requestBytes,
  response_bytes: round.responseBytes,
  request_id: round.requestId,
  closed: round.closed
})

export const AdminCapturesHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminCapturesGroup),
  "admin-captures",
  Effect.fnUntraced(function*(handlers) {
    const captures = yield* Captures
    const store = yield* ConfigStore
    return handlers
      .handleRaw(
        "list",
        Effect.fnUntraced(function*({ endpoint, query }) {
          const { enabled, limit, max_body_bytes } = (yield* store.current).captures
          if (query.summary === "true") {
            return respond(endpoint, {
              enabled,
              limit,
              max_body_bytes,
              items: (yield* captures.summaries).map(summaryOf)
            })
          }
          const head = JSON.stringify({ enabled, limit, max_body_bytes }).slice(0, -1)
          const items: Array<string> = []
          for (const round of yield* captures.list) {
            if (items.length > 0) yield* Effect.yieldNow
            items.push(JSON.stringify(itemOf(round)))
          }
          return jsonText(`${head},"items":[${items.join(",")}]}`)
        })
      )
      .handle(
        "get",
        Effect.fnUntraced(function*({ params }) {
          const round = yield* captures.round(params.id)
          if (round === undefined) return yield* gatewayError("not_found", "There is no capture of this id")
          return { ...itemOf(round), request_id: round.requestId, closed: round.closed }
        })
      )
      .handle("clear", () =>
        Effect.andThen(captures.clear, logChange("the captures were cleared")).pipe(
          Effect.as({ success: true, detail: "capture logs cleared" } as const)
        ))
  })
)
