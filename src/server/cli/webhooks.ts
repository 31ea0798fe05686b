/** What `webhooks test` does: it sends `webhook.test` to webhooks of a configuration. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { inLine } from "../../domain/printed.ts"
import { layerWebClient } from "../../upstream/transports/webClient.ts"
import { sendOnce, testMessage } from "../webhooks/send.ts"

/** Tests the webhook of a name, or all, one after another: a line for each, and the number of those that failed. */
export const testWebhooks = ({ webhooks }: GatewayConfig, name: string | undefined) =>
  Effect.gen(function*() {
    const client = yield* HttpClient.HttpClient
    const chosen = webhooks.filter((webhook) => name === undefined || webhook.name === name)
    const lines: Array<string> = []
    let failed = 0
    for (const webhook of chosen) {
      const message = testMessage(webhook.name, yield* Clock.currentTimeMillis)
      const { error, ms, status } = yield* sendOnce(client, webhook, message)
      if (error !== null) failed++
      lines.push(inLine(`${webhook.name}: ${error ?? `delivered, HTTP ${status}`} (${ms} ms)`))
    }
    return { failed, lines }
  }).pipe(Effect.provide(layerWebClient))
