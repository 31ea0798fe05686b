/**
 * Packet captures at work. Bodies may be megabytes each, so the reply is put together one item at a time.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type CapturedRound, responseText } from "../../captures/CapturedRound.ts"
import { Captures } from "../../captures/Captures.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { apiId } from "../../http/reply.ts"
import { logChange } from "../changes.ts"
import type { CaptureItem } from "./Api.ts"
import { AdminCapturesGroup } from "./Api.ts"

const itemOf = (round: CapturedRound): typeof CaptureItem.Type => ({
  id: round.id,
  created_at: Math.floor(round.createdAt / 1000),
  label: round.label,
  url: round.url,
  account_id: round.account,
  status_code: round.status,
  request_body: round.requestBody,
  response_body: responseText(round),
  response_truncated: round.truncated,
  chain_key: round.chainKey
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
        Effect.fnUntraced(function*() {
          const { enabled, limit, max_body_bytes } = (yield* store.current).captures
          const head = JSON.stringify({ enabled, limit, max_body_bytes }).slice(0, -1)
          const items: Array<string> = []
          for (const round of yield* captures.list) {
            if (items.length > 0) yield* Effect.yieldNow
            items.push(JSON.stringify(itemOf(round)))
          }
          return HttpServerResponse.text(`${head},"items":[${items.join(",")}]}`, { contentType: "application/json" })
        })
      )
      .handle("clear", () =>
        Effect.andThen(captures.clear, logChange("the captures were cleared")).pipe(
          Effect.as({ success: true, detail: "capture logs cleared" } as const)
        ))
  })
)
