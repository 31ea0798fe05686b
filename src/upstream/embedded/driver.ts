/** Scratch until the in-process transport stands. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { ConnectionLimits } from "../connection.ts"
import { Provider } from "../reference/Provider.ts"
import { makeSessionDriver } from "../session/driver.ts"
import type { Driver, UpstreamModel } from "../Upstream.ts"

export const makeEmbeddedDriver = (options: {
  readonly furtherModels: ReadonlyArray<UpstreamModel>
  readonly limits: ConnectionLimits
}): Effect.Effect<Driver> =>
  Effect.map(Clock.Clock, (clock) => {
    const provider = new Provider({}, () => clock.currentTimeMillisUnsafe())
    const client = HttpClient.make((request, url) =>
      Effect.gen(function*() {
        const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
        const call = provider.handle({
          method: request.method,
          path: url.pathname,
          query: url.search,
          authorization: request.headers["authorization"] ?? "Bearer embedded",
          body
        })
        const at = call.steps.findIndex((step) => step._tag === "Head")
        const head = call.steps[at]
        if (head?._tag !== "Head") return yield* Effect.never
        const rest = call.steps.slice(at + 1)
        const bytes = Stream.fromIterable(rest).pipe(
          Stream.mapEffect((step) =>
            step._tag === "Wait"
              ? Effect.as(Effect.sleep(step.millis), new Uint8Array())
              : step._tag === "Chunk"
              ? Effect.sync(() => {
                call.onProgress(step.sent)
                return step.bytes
              })
              : step._tag === "Reset"
              ? Effect.fail(new Error("reset"))
              : Effect.never
          ),
          Stream.ensuring(Effect.sync(() => call.end("finished")))
        )
        return HttpServerResponse.toClientResponse(
          HttpServerResponse.stream(bytes, {
            status: head.status,
            headers: head.headers,
            contentType: head.headers["content-type"] ?? ""
          }),
          { request }
        )
      })
    )
    const driver = makeSessionDriver(client, { baseUrl: "http://embedded", ...options })
    return { ...driver, name: "embedded", capabilities: { ...driver.capabilities, anonymous: true } }
  })
