/**
 * Serves the webhooks.
 */
import * as Effect from "effect/Effect"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { Webhooks } from "../../config/entries/Webhooks.ts"
import { shownWebhook } from "../../config/hidden.ts"
import type { RawConfig } from "../../config/json.ts"
import { webhooksOf } from "../../config/webhooks.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { noticeTypes } from "../../domain/notices.ts"
import { formatTimestamp } from "../../domain/time.ts"
import type { ReplyBody } from "../../http/reply.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, revisionIn } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AdminWebhooksGroup, WebhooksRequest } from "./Api.ts"
import { type Delivered, WebhookDeliveries } from "./WebhookDeliveries.ts"

const { endpoints } = AdminWebhooksGroup
const readWebhooks = jsonObjectBodyOf([WebhooksRequest])
const readTest = adminBodyOf(endpoints.test)
const readResend = adminBodyOf(endpoints.resend)

const unknownWebhook = gatewayError("not_found", "No such webhook is configured", { param: "name" })

type WebhooksReply = ReplyBody<typeof endpoints.get>

/** The webhooks as the file has them, without their secrets. The configuration in effect has valid ones alone. */
const shownWebhooks = (raw: RawConfig) => webhooksOf(raw).map(shownWebhook) as unknown as WebhooksReply["webhooks"]

const outcomeOf = ({ at, error, id, ms, status, type }: Delivered) => ({
  id,
  type,
  at: formatTimestamp(at),
  ms,
  status,
  error
})

const events = (Object.keys(noticeTypes) as Array<keyof typeof noticeTypes>).map((type) => ({
  type,
  when: noticeTypes[type].when
}))

export const AdminWebhooksHandlers = adminHandlers(AdminWebhooksGroup, function*() {
  const store = yield* ConfigStore
  const entries = yield* Webhooks
  const deliveries = yield* WebhookDeliveries
  const { configHash } = yield* ConfigTransfer
  return {
    get: Effect.fnUntraced(function*() {
      const revision = yield* configHash
      const webhooks = shownWebhooks(yield* store.currentRaw)
      const states = webhooks.map(({ name }) => {
        const { last, ...state } = deliveries.stateOf(name)
        return { name, ...state, last: last === undefined ? null : outcomeOf(last) }
      })
      return { webhooks, states, events, revision }
    }),
    set: Effect.fnUntraced(function*({ headers, request }) {
      const { webhooks } = yield* readWebhooks(request)
      const setting = entries.set(webhooks, { expected: revisionIn(headers["if-match"]) })
      const saved = yield* changed("the webhooks were changed", setting)
      return { success: true, webhooks: shownWebhooks(yield* store.currentRaw), ...lastingOf(saved) }
    }),
    test: Effect.fnUntraced(function*({ request }) {
      const { name } = yield* readTest(request)
      const outcome = yield* deliveries.test(name)
      if (outcome === undefined) return yield* unknownWebhook
      return { success: outcome.error === null, name, ...outcomeOf(outcome) }
    }),
    deliveries: Effect.fnUntraced(function*({ query: { name } }) {
      const recent = deliveries.recentOf(name)
      return recent === undefined ? yield* unknownWebhook : { deliveries: recent.map(outcomeOf) }
    }),
    resend: Effect.fnUntraced(function*({ request }) {
      const { id, name } = yield* readResend(request)
      if (deliveries.recentOf(name) === undefined) return yield* unknownWebhook
      const outcome = yield* deliveries.resend(name, id)
      if (outcome === undefined) {
        return yield* gatewayError("not_found", "No delivery of this event is kept", { param: "id" })
      }
      return { success: outcome.error === null, name, ...outcomeOf(outcome) }
    })
  }
})
