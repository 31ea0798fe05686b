/**
 * One delivery of an event, in the form of Standard Webhooks: a POST of `{type, timestamp, data}` whose id, time and body are signed.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Redacted from "effect/Redacted"
import { createHmac, randomBytes } from "node:crypto"
import type { Delivered } from "../../admin/webhooks/WebhookDeliveries.ts"
import type { WebhookConfig } from "../../config/GatewayConfig.ts"
import { keyOfSecret } from "../../config/webhooks.ts"
import type { Notice, NoticeType } from "../../domain/notices.ts"
import { monotonicMillis } from "../../domain/time.ts"

/** An event as it is sent: each try has the same id and body. */
export interface Message {
  readonly id: string
  readonly type: NoticeType
  readonly body: string
}

export const messageOf = (id: string, { at, data, type }: Pick<Notice, "at" | "data" | "type">): Message => ({
  id,
  type,
  body: JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
})

/** The event that tests a webhook. */
export const testMessage = (webhook: string, at: number): Message =>
  messageOf(`evt_${randomBytes(16).toString("hex")}`, { type: "webhook.test", at, data: { webhook } })

/** The signatures of a message at a time in Unix seconds: by the secret, and by the one before it. */
export const signaturesOf = (
  { secret, secret_previous }: Pick<WebhookConfig, "secret" | "secret_previous">,
  { body, id }: Pick<Message, "id" | "body">,
  seconds: number
): string =>
  [secret, secret_previous].flatMap((each) => {
    const key = each === undefined ? undefined : keyOfSecret(Redacted.value(each))
    if (key === undefined) return []
    return `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`
  }).join(" ")

/** The time of one delivery. */
export const longestDelivery = "10 seconds"

/** What the answer's status says of a delivery; `null` for success. */
const errorOf = (status: number): string | null => {
  if (status >= 200 && status < 300) return null
  if (status === 410) return "the receiver is gone"
  return status >= 300 && status < 400
    ? "the receiver redirects, which is not followed"
    : `the receiver answers with HTTP ${status}`
}

/** Sends a message once. The answer's body is not read. */
export const sendOnce = Effect.fnUntraced(function*(
  client: HttpClient.HttpClient,
  webhook: WebhookConfig,
  message: Message
): Effect.fn.Return<Delivered> {
  const clock = yield* Clock.Clock
  const at = clock.currentTimeMillisUnsafe()
  const began = monotonicMillis(clock)
  const seconds = Math.floor(at / 1_000)
  const request = HttpClientRequest.post(webhook.url).pipe(
    HttpClientRequest.setHeaders([
      ["user-agent", "model-gateway"],
      ...webhook.headers.map(({ name, value }): [string, string] => [name, Redacted.value(value)]),
      ["webhook-id", message.id],
      ["webhook-timestamp", String(seconds)],
      ["webhook-signature", signaturesOf(webhook, message, seconds)]
    ]),
    HttpClientRequest.bodyText(message.body, "application/json")
  )
  const answer = HttpClient.withScope(client).execute(request).pipe(
    Effect.map(({ status }) => ({ status, error: errorOf(status) })),
    Effect.catchCause(() => Effect.succeed({ status: null, error: "the receiver cannot be reached" })),
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: longestDelivery,
      orElse: () => Effect.succeed({ status: null, error: `the receiver does not answer within ${longestDelivery}` })
    })
  )
  const { error, status } = yield* answer
  return { id: message.id, type: message.type, at, ms: Math.round(monotonicMillis(clock) - began), status, error }
})
