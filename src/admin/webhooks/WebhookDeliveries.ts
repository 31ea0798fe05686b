/**
 * What operators see of deliveries, and how they test a webhook. The server delivers (`server/webhooks`).
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { NoticeType } from "../../domain/notices.ts"

/** The outcome of one delivery. */
export interface Delivered {
  /** The id of the event. */
  readonly id: string
  readonly type: NoticeType
  /** When it was sent, in Unix milliseconds. */
  readonly at: number
  readonly ms: number
  /** HTTP status of the answer; `null` without one. */
  readonly status: number | null
  /** Why there is no answer, or why the answer is no success. */
  readonly error: string | null
}

/** The state of a webhook on this node, since its start. */
export interface WebhookState {
  /** `gone`: its receiver has answered 410, and nothing is sent until the webhook is changed. */
  readonly state: "active" | "gone"
  /** Events that wait to be delivered, also again. */
  readonly waiting: number
  /** Events that were never delivered: the receiver refused each try, was gone, or too many waited. */
  readonly dropped: number
  readonly delivered: number
  readonly last: Delivered | undefined
}

export class WebhookDeliveries extends Context.Service<WebhookDeliveries, {
  /** The state of a configured webhook. */
  readonly stateOf: (name: string) => WebhookState
  /** The last deliveries of a configured webhook, the newest first: at most 100, in memory. `undefined` for an unknown webhook. */
  readonly recentOf: (name: string) => ReadonlyArray<Delivered> | undefined
  /** Sends the event of a kept delivery again: immediately, one time, and with the same id. `undefined` for one that is not kept. */
  readonly resend: (name: string, id: string) => Effect.Effect<Delivered | undefined>
  /** Sends `webhook.test` immediately, and one time; `undefined` for an unknown webhook. */
  readonly test: (name: string) => Effect.Effect<Delivered | undefined>
}>()("model-gateway/admin/WebhookDeliveries") {}
