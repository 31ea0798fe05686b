/**
 * The test of the service through itself, at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { invalidRequest } from "../../domain/GatewayError.ts"
import { apiId, respond } from "../../http/reply.ts"
import { adminBodyOf } from "../adminBody.ts"
import { headerText } from "../headerText.ts"
import { SelfClient } from "../SelfClient.ts"
import { AdminSelfTestGroup } from "./Api.ts"

const readTest = adminBodyOf(AdminSelfTestGroup.endpoints.test, { mayBeEmpty: true })

const defaultModel = "upstream-chat"
const defaultMessage = "你好"

const given = (text: string | null | undefined): string | undefined => {
  const trimmed = text?.trim()
  return trimmed === "" ? undefined : trimmed
}

export const AdminSelfTestHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminSelfTestGroup),
  "admin-self-test",
  Effect.fnUntraced(function*(handlers) {
    const self = yield* SelfClient
    const store = yield* ConfigStore
    return handlers.handleRaw(
      "test",
      Effect.fnUntraced(function*({ endpoint, request }) {
        const body = yield* readTest(request)
        const { configured_keys, keys } = yield* store.current
        const key = given(body.api_key) ?? configured_keys[0] ?? keys[0]
        if (key === undefined) return yield* invalidRequest("api_key is required: no key is configured", "api_key")
        const response = yield* self.execute(
          HttpClientRequest.post("/v1/chat/completions").pipe(
            HttpClientRequest.bearerToken(yield* Effect.fromResult(headerText(key, "api_key"))),
            HttpClientRequest.bodyJsonUnsafe({
              model: given(body.model) ?? defaultModel,
              messages: [{ role: "user", content: given(body.message) ?? defaultMessage }],
              stream: false
            })
          )
        ).pipe(Effect.orDie)
        const json = yield* response.json.pipe(Effect.catch(() => Effect.orElseSucceed(response.text, () => "")))
        return respond(endpoint, {
          success: response.status >= 200 && response.status < 300,
          status_code: response.status,
          response: json
        })
      })
    )
  })
)
